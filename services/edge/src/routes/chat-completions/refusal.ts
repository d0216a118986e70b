/** Why a request got no answer, as the error that its client sees. */
import type { Variant } from '@signalbox/kernel/tiers';
import type { Refusal } from '../../domain/answer.js';
import { apiError, faultToApiError, type ApiError } from '../../wire/errors.js';
import { admissionToApiError, allAttemptsFailed, refusalToApiError, STOPPED } from '../../wire/refusals.js';

const PROBLEMS = { type: 'invalid_type', value: 'invalid_value', conflict: 'plugin_conflicts_with_policy' } as const;

/** `nowMs` is the wall clock; `variant` the caller's, in whose words it is told what to do. */
export function errorOfRefusal(refusal: Refusal, nowMs: number, variant: Variant): ApiError {
  switch (refusal.kind) {
    case 'scope':
      return apiError('insufficient_scope', { message: `The API key lacks the scope ${refusal.scope}.` });
    case 'plugin-requires-paid':
      return apiError('PLUGIN_REQUIRES_PAID', { param: 'plugins', message: `The plugin ${refusal.plugin} needs a paid account.`, metadata: { plugin: refusal.plugin } });
    case 'plugin-unavailable':
      return apiError('plugin_unavailable', { param: 'plugins', message: `The plugin ${refusal.plugin} is not installed here.`, metadata: { plugin: refusal.plugin } });
    case 'plugin-problem': {
      const { kind, plugin, param, message } = refusal.problem;
      return apiError(PROBLEMS[kind], { param, message, metadata: { plugin } });
    }
    case 'plugin-failed':
      return apiError('overloaded', { message: `The plugin ${refusal.plugin} could not do its work right now, and without it this request cannot be served. Please retry.`, metadata: { plugin: refusal.plugin, retryable: true } });
    case 'plugins-flooded':
      return apiError('requests_rate_limited', { retryAfterMs: refusal.waitMs });
    case 'unbounded-parts':
      return apiError('invalid_value', { param: 'messages', message: 'Where a cost cap, a credit or an allotment limits the account, files cannot be sent: what they cost cannot be bounded beforehand.' });
    case 'own-credential': {
      const { param, excludedBy } = refusal;
      const message = `Invalid value for '${param}': what lies at a provider under an id is taken on the account's own credential there alone, and none can be used for this request. Send the data itself, or set one with PUT /api/providers/{provider}.`;
      return apiError('invalid_value', { param, message, ...(excludedBy.length === 0 ? {} : { metadata: { excluded_by: excludedBy } }) });
    }
    case 'routing':
      return refusalToApiError(refusal.decision, refusal.model, variant);
    case 'admission':
      return admissionToApiError(refusal.admission, nowMs, refusal.least);
    case 'attempts':
      return allAttemptsFailed(refusal.attempts, refusal.retryAfterMs, refusal.isCutShort);
    case 'stopping':
      return refusal.isCharged ? STOPPED : apiError('overloaded', { message: 'The service is being stopped or replaced. The request can be sent again.', metadata: { retryable: true }, ...(refusal.retryAfterMs === undefined ? {} : { retryAfterMs: refusal.retryAfterMs }) });
    case 'fault':
      return faultToApiError(refusal.fault);
  }
}

const UNCOUNTED: ReadonlySet<Refusal['kind']> = new Set<Refusal['kind']>(['scope', 'plugin-requires-paid', 'plugin-unavailable', 'plugin-problem', 'unbounded-parts', 'own-credential', 'routing']);

/** True for what admission never counts: the flood guard does (contract, section 1). */
export function isUncounted(refusal: Refusal): boolean {
  return UNCOUNTED.has(refusal.kind);
}
