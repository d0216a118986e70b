/** Allow and deny lists that change while a request runs apply to every attempt that has not been sent yet (ADR 76). */
import type { PlannedAttempt__Output } from '@signalbox/contracts/routing';
import { createModelNames, isAutoModelId, modelsLeft, type AllowedModels } from '@signalbox/kernel/model-lists';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';
import type { ChatRequest } from './chat-request.js';
import { allowedModelsOf } from './limits.js';
import { ownCredentialsOf } from './own-credentials.js';
import type { PluginNeighbours } from './plugin-run.js';
import type { Caller } from './ports.js';
import type { Turn } from './turn.js';

/** Which list of allowed models applies to a request. */
export function listKindOf({ model, models }: Pick<ChatRequest, 'model' | 'models'>): keyof AllowedModels {
  return isAutoModelId(model) && models.every(isAutoModelId) ? 'viaAuto' : 'byName';
}

export interface AttemptsLeft {
  /** The same array if all are left. */
  readonly attempts: readonly PlannedAttempt__Output[];
  /** Why others were excluded, by the names that a routing decision uses; empty if all are left. */
  readonly excludedBy: readonly string[];
}

const ALL_LEFT: AttemptsLeft['excludedBy'] = [];

type Judge = (attempt: PlannedAttempt__Output) => boolean;

/** Whether the account's lists allow the provider, under any name that routing knows for it. */
function providerJudge({ account }: Caller): Judge {
  const [allowed, denied] = [providersNamed(account.allowProviders), providersForbidden(account.denyProviders)];
  return ({ provider }) => (allowed.length === 0 || allowed.includes(provider)) && !denied.includes(provider);
}

/** Whether changed lists allow the model. Unchanged lists are not applied again: routing did, with the names of the whole catalog. */
function modelJudge(before: Caller, now: Caller, kind: keyof AllowedModels, attempts: readonly PlannedAttempt__Output[]): Judge {
  const isChanged = (one: readonly string[], other: readonly string[]): boolean => one.length !== other.length || one.some((name, at) => name !== other[at]);
  const changed = (of: (caller: Caller) => readonly string[]): readonly string[] => (isChanged(of(before), of(now)) ? of(now) : []);
  const lists = { allowModels: changed((caller) => allowedModelsOf(caller, kind)), denyModels: changed(({ account }) => account.denyModels) };
  const isLeft = modelsLeft(createModelNames(attempts.map(({ model, modelAliases }) => ({ id: model, aliases: modelAliases }))), lists, kind === 'viaAuto');
  return ({ model }) => isLeft({ id: model });
}

/** The attempts, planned under the turn's lists, that the present lists still allow. An attempt on an own credential is left only if that credential is unchanged. */
export function attemptsLeft({ presentCaller }: Pick<PluginNeighbours, 'presentCaller'>, { caller, request }: Turn, attempts: readonly PlannedAttempt__Output[]): AttemptsLeft {
  const now = attempts.length === 0 ? caller : (presentCaller?.(caller) ?? caller);
  if (now === caller) return { attempts, excludedBy: ALL_LEFT };
  const isProviderLeft = providerJudge(now);
  const isModelLeft = modelJudge(caller, now, listKindOf(request), attempts);
  const [had, has] = [ownCredentialsOf(caller).handles, ownCredentialsOf(now).handles];
  const excludedBy = new Set<string>();
  const left = attempts.filter((attempt) => {
    const isListed = isProviderLeft(attempt) && isModelLeft(attempt);
    const isPaid = !attempt.byok || had.get(attempt.provider) === has.get(attempt.provider);
    if (!isListed) excludedBy.add('allow_list');
    if (!isPaid) excludedBy.add('own_credential');
    return isListed && isPaid;
  });
  return left.length === attempts.length ? { attempts, excludedBy: ALL_LEFT } : { attempts: left, excludedBy: [...excludedBy] };
}
