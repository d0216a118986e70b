/** Why a request got no answer, as the error that its client sees. */
import type { Refusal } from '../../domain/answer.js';
import { apiError, faultToApiError, type ApiError } from '../../wire/errors.js';
import { admissionToApiError, allAttemptsFailed, refusalToApiError } from '../../wire/refusals.js';

/** `nowMs` is the wall clock. */
export function errorOfRefusal(refusal: Refusal, nowMs: number): ApiError {
  switch (refusal.kind) {
    case 'scope':
      return apiError('insufficient_scope', { message: `The API key lacks the scope ${refusal.scope}.` });
    case 'plugin-requires-paid':
      return apiError('PLUGIN_REQUIRES_PAID', { param: 'plugins', message: `The plugin ${refusal.plugin} needs a paid account.`, metadata: { plugin: refusal.plugin } });
    case 'plugin-unavailable':
      return apiError('plugin_unavailable', { param: 'plugins', message: `The plugin ${refusal.plugin} is not installed here.`, metadata: { plugin: refusal.plugin } });
    case 'unbounded-parts':
      return apiError('invalid_value', { param: 'messages', message: 'Under a cost cap, images and files must be sent as data URLs: what a reference costs cannot be bounded beforehand.' });
    case 'routing':
      return refusalToApiError(refusal.decision, refusal.model);
    case 'admission':
      return admissionToApiError(refusal.admission, nowMs);
    case 'attempts':
      return allAttemptsFailed(refusal.attempts);
    case 'fault':
      return faultToApiError(refusal.fault);
  }
}

const UNCOUNTED: ReadonlySet<Refusal['kind']> = new Set<Refusal['kind']>(['scope', 'plugin-requires-paid', 'plugin-unavailable', 'unbounded-parts', 'routing']);

/** True for what admission never counts: the flood guard does (contract, section 1). */
export function isUncounted(refusal: Refusal): boolean {
  return UNCOUNTED.has(refusal.kind);
}
