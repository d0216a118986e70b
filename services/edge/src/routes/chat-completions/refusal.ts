/** The API error for each reason why a request got no answer. */
import type { Refusal } from '../../domain/answer.js';
import type { ChatRequest } from '../../domain/chat-request.js';
import { limitsOf } from '../../domain/limits.js';
import type { Caller } from '../../domain/ports.js';
import { apiError, faultToApiError, type ApiError } from '../../wire/errors.js';
import { admissionToApiError, allAttemptsFailed, callerToApiError, refusalToApiError, STOPPED } from '../../wire/refusals.js';

const PROBLEMS = { type: 'invalid_type', value: 'invalid_value', conflict: 'plugin_conflicts_with_policy' } as const;

/** The refused request and its caller, whose variant decides the wording. */
export interface Refused {
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  readonly caller: Caller;
  readonly request: ChatRequest;
}

const TOKEN_LIMITS: ReadonlySet<unknown> = new Set(['max_tokens', 'max_completion_tokens']);

export function errorOfRefusal(refusal: Refusal, refused: Refused): ApiError {
  const error = plainErrorOf(refusal, refused);
  const { maxTokensParam: param } = refused.request;
  // The client may have used the other name of the field.
  return param !== undefined && TOKEN_LIMITS.has(error.param) ? { ...error, param } : error;
}

/** A hint for requests refused because of files, with a leading blank; '' = none applies. */
function fileHint({ caller, request }: Refused): string {
  if (caller.variant === 'B' || !request.hasUnboundedParts || request.pluginIds.includes('pdf-reader')) return '';
  return ' A PDF can be sent with `plugins: ["pdf-reader"]`, on paid accounts: its text takes its place.';
}

function plainErrorOf(refusal: Refusal, refused: Refused): ApiError {
  const { nowMs, caller } = refused;
  switch (refusal.kind) {
    case 'scope':
      return apiError('insufficient_scope', { message: `The API key lacks the scope ${refusal.scope}.` });
    case 'caller':
      return callerToApiError(refusal.state);
    case 'plugin-requires-paid':
      return apiError('PLUGIN_REQUIRES_PAID', { param: 'plugins', message: `The plugin ${refusal.plugin} needs a paid account.`, metadata: { plugin: refusal.plugin } });
    case 'plugin-unavailable':
      return apiError('plugin_unavailable', { param: 'plugins', message: `The plugin ${refusal.plugin} is not installed here.`, metadata: { plugin: refusal.plugin } });
    case 'plugin-problem': {
      const { kind, plugin, param, message } = refusal.problem;
      // Errors about the tools of several plugins name no plugin.
      return apiError(PROBLEMS[kind], { param, message, ...(plugin === '' ? {} : { metadata: { plugin } }) });
    }
    case 'plugin-failed':
      return apiError('overloaded', { message: `The plugin ${refusal.plugin} could not do its work right now, and without it this request cannot be served. Please retry.`, metadata: { plugin: refusal.plugin, retryable: true } });
    case 'plugins-flooded':
      return apiError('requests_rate_limited', { message: 'Rate limit reached: plugins have worked in vain for this account too often within a minute.', retryAfterMs: refusal.waitMs });
    case 'unbounded-parts':
      return apiError('invalid_value', { param: 'messages', message: `Where a cost cap, a credit or an allotment limits the account, files cannot be sent: what they cost cannot be bounded beforehand.${fileHint(refused)}` });
    case 'own-credential': {
      const { param, excludedBy } = refusal;
      const message = `Invalid value for '${param}': what lies at a provider under an id is taken on the account's own credential there alone, and none can be used for this request. Send the data itself, or set one with PUT /api/providers/{provider}.`;
      return apiError('invalid_value', { param, message, ...(excludedBy.length === 0 ? {} : { metadata: { excluded_by: excludedBy } }) });
    }
    case 'routing': {
      const error = refusalToApiError(refusal.decision, refusal.model, caller.variant);
      return refusal.decision.excludedBy.includes('file_input') ? { ...error, message: `${error.message}${fileHint(refused)}` } : error;
    }
    case 'admission':
      return admissionToApiError(refusal.admission, nowMs, { least: refusal.least, limits: limitsOf(caller) });
    case 'attempts':
      return allAttemptsFailed(refusal.attempts, refusal.retryAfterMs, refusal.isCutShort);
    case 'stopping':
      return refusal.isCharged ? STOPPED : apiError('overloaded', { message: 'The service is being stopped or replaced. The request can be sent again.', metadata: { retryable: true }, ...(refusal.retryAfterMs === undefined ? {} : { retryAfterMs: refusal.retryAfterMs }) });
    case 'fault':
      return faultToApiError(refusal.fault);
  }
}

const UNCOUNTED: ReadonlySet<Refusal['kind']> = new Set<Refusal['kind']>(['scope', 'plugin-requires-paid', 'plugin-unavailable', 'plugin-problem', 'unbounded-parts', 'own-credential', 'routing']);

/** True for refusals before admission, which no rate counts: the flood guard counts them instead. */
export function isUncounted(refusal: Refusal): boolean {
  return UNCOUNTED.has(refusal.kind);
}
