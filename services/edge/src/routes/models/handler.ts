/** GET /v1/models and GET /v1/models/{id}. */
import type { ListModelsRequest, ListModelsResponse__Output } from '@signalbox/contracts/routing';
import { Fault } from '@signalbox/kernel/fault';
import { isAutoModelId } from '@signalbox/kernel/model-lists';
import type { RpcClient } from '@signalbox/rpc/call';
import { allowedModelsOf } from '../../domain/limits.js';
import { ownCredentialsOf } from '../../domain/own-credentials.js';
import type { Caller } from '../../domain/ports.js';
import { apiError, type ApiError } from '../../wire/errors.js';
import { modelNotFound } from '../../wire/model-names.js';
import { autoModel, renderModel, renderModelList } from '../../wire/models.js';
import { modelDeprecated } from '../../wire/refusals.js';

const LIST_DEADLINE_MS = 2_000;

export type ModelsAnswer = { readonly kind: 'ok'; readonly body: Buffer } | { readonly kind: 'refused'; readonly error: ApiError };

export interface ModelsQuestion {
  readonly caller: Caller;
  /** Undefined = the whole list. */
  readonly model: string | undefined;
  readonly isDetailed: boolean;
}

/** Lists only models that the key may use. Throws a Fault `routing_unavailable`. */
export async function answerModels(routing: RpcClient, { caller, model, isDetailed }: ModelsQuestion): Promise<ModelsAnswer> {
  const { key, account, variant } = caller;
  if (!key.scopes.includes('inference') && !key.scopes.includes('models:read')) return { kind: 'refused', error: apiError('insufficient_scope', { message: 'The API key lacks the scope models:read.' }) };
  const isAuto = model !== undefined && isAutoModelId(model);
  const own = ownCredentialsOf(caller);
  try {
    const { models, ...missing } = await routing.unary<ListModelsRequest, ListModelsResponse__Output>(
      'ListModels',
      { allowModels: allowedModelsOf(caller, 'byName'), denyModels: account.denyModels, allowProviders: account.allowProviders, denyProviders: account.denyProviders, byokProviders: own.providers, byokZdrProviders: own.zdrProviders, byokOwnAddressProviders: own.ownAddressProviders, detail: isDetailed, model: model === undefined || isAuto ? '' : model },
      { deadlineMs: LIST_DEADLINE_MS },
    );
    if (model === undefined) return { kind: 'ok', body: renderModelList(models, variant, isDetailed) };
    if (isAuto) return { kind: 'ok', body: renderModel(autoModel(variant, models), variant, isDetailed) };
    const [found] = models;
    if (found !== undefined) return { kind: 'ok', body: renderModel(found, variant, isDetailed) };
    return { kind: 'refused', error: missing.retired ? modelDeprecated(model, missing.fallbackModels) : apiError('model_not_found', { param: 'model', message: modelNotFound(model, missing, variant) }) };
  } catch (error) {
    throw new Fault('routing_unavailable', 'models could not be listed', { cause: error });
  }
}
