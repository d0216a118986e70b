/** Allow and deny lists that change while a request runs: they bind every attempt that has not been sent yet (ADR 76). */
import type { PlannedAttempt__Output } from '@signalbox/contracts/routing';
import { createModelNames, isAutoModelId, modelsLeft, type AllowedModels } from '@signalbox/kernel/model-lists';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';
import type { ChatRequest } from './chat-request.js';
import { allowedModelsOf } from './limits.js';
import { ownCredentialsOf } from './own-credentials.js';
import type { PluginNeighbours } from './plugin-run.js';
import type { Caller } from './ports.js';
import type { Turn } from './turn.js';

/** Which of the lists of allowed models a request is under. */
export function listKindOf({ model, models }: Pick<ChatRequest, 'model' | 'models'>): keyof AllowedModels {
  return isAutoModelId(model) && models.every(isAutoModelId) ? 'viaAuto' : 'byName';
}

export interface AttemptsLeft {
  /** The same array where all are left. */
  readonly attempts: readonly PlannedAttempt__Output[];
  /** What the others fail, as a decision says it; empty where all are left. */
  readonly excludedBy: readonly string[];
}

const ALL_LEFT: AttemptsLeft['excludedBy'] = [];

type Judge = (attempt: PlannedAttempt__Output) => boolean;

/** Whether both lists leave the provider, by the names that routing takes for it. */
function providerJudge({ account }: Caller): Judge {
  const [allowed, denied] = [providersNamed(account.allowProviders), providersForbidden(account.denyProviders)];
  return ({ provider }) => (allowed.length === 0 || allowed.includes(provider)) && !denied.includes(provider);
}

/** A list of names that stayed as it was is not looked at again: routing knows the whole catalog. */
function modelJudge(before: Caller, now: Caller, kind: keyof AllowedModels, attempts: readonly PlannedAttempt__Output[]): Judge {
  const isChanged = (one: readonly string[], other: readonly string[]): boolean => one.length !== other.length || one.some((name, at) => name !== other[at]);
  const changed = (of: (caller: Caller) => readonly string[]): readonly string[] => (isChanged(of(before), of(now)) ? of(now) : []);
  const lists = { allowModels: changed((caller) => allowedModelsOf(caller, kind)), denyModels: changed(({ account }) => account.denyModels) };
  const isLeft = modelsLeft(createModelNames(attempts.map(({ model, modelAliases }) => ({ id: model, aliases: modelAliases }))), lists, kind === 'viaAuto');
  return ({ model }) => isLeft({ id: model });
}

/** Of attempts that were planned under the turn's lists, those that are left under the present ones. Another credential at the same provider is another attempt. */
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
