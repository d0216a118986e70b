/** The errors that clients see, in OpenAI's form: one table of codes, one constructor. */
import { FAULTS, type Fault } from '@signalbox/kernel/fault';
import type { Variant } from '@signalbox/kernel/tiers';
import { renderJson, type JsonValue } from './json-text.js';

export interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;
  /** A sentence for people. Never contains a secret, or a provider's text on 5xx. */
  readonly message: string;
  /** A bigint in it is nano-USD and is rendered as exact dollars. */
  readonly metadata?: { readonly [key: string]: JsonValue };
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds until the cap that refused is reset; absent = never. Not rendered, but needed for variant B's Retry-After. */
  readonly resetMs?: number;
}

interface ErrorMeaning {
  readonly status: number;
  readonly type: string;
  /** `code` of the body where it differs from the table's name. */
  readonly code?: string | null;
  readonly message: string;
}

const INVALID = 'invalid_request_error';

/** Errors of the API by name. Provider errors inside a broken stream are in refusals.ts. */
export const API_ERRORS = {
  bad_json: { status: 400, type: INVALID, code: null, message: 'The body is not a valid JSON object.' },
  missing_required_parameter: { status: 400, type: INVALID, message: 'A required parameter is missing.' },
  invalid_value: { status: 400, type: INVALID, message: 'A parameter has an invalid value.' },
  invalid_type: { status: 400, type: INVALID, message: 'A parameter has the wrong type.' },
  unknown_plugin: { status: 400, type: INVALID, message: 'There is no such plugin.' },
  plugin_unavailable: { status: 400, type: INVALID, message: 'This plugin is not installed here.' },
  plugin_conflicts_with_policy: { status: 400, type: INVALID, message: 'A plugin cannot meet the policy of this request.' },
  context_length_exceeded: { status: 400, type: INVALID, message: 'The conversation is longer than the model can read.' },
  content_policy_violation: { status: 400, type: INVALID, message: 'The provider refused the request by its content policy.' },
  missing_api_key: { status: 401, type: INVALID, code: null, message: 'No API key was given. Send it as "Authorization: Bearer <key>".' },
  invalid_api_key: { status: 401, type: INVALID, message: 'The API key is not valid. Keys of this service begin with sbx_live_.' },
  api_key_expired: { status: 401, type: INVALID, message: 'The API key has expired.' },
  api_key_revoked: { status: 401, type: INVALID, message: 'The API key has been revoked.' },
  account_suspended: { status: 401, type: INVALID, message: 'The account is suspended.' },
  invalid_session: { status: 401, type: INVALID, message: 'The session has ended. Sign in again.' },
  cost_cap_exceeded: { status: 402, type: 'payment_required', message: 'A cost cap blocks this request.' },
  trial_credit_exhausted: { status: 402, type: 'payment_required', message: 'The trial credit is used up. Use a credential of your own (PUT /api/providers/{provider}), or ask the operator for a paid tier.' },
  PLUGIN_REQUIRES_PAID: { status: 403, type: 'permission_error', message: 'This plugin needs a paid account.' },
  insufficient_scope: { status: 403, type: 'permission_error', message: 'The API key lacks the scope for this.' },
  invalid_csrf_token: { status: 403, type: 'permission_error', message: 'A call with a session needs its X-CSRF-Token and must come from a page of this site.' },
  model_not_found: { status: 404, type: INVALID, message: 'The model does not exist or is not available to this key.' },
  model_deprecated: { status: 404, type: INVALID, message: 'The model is no longer served.' },
  no_eligible_provider: { status: 404, type: INVALID, message: 'No provider of this model meets the requirements of the request.' },
  key_not_found: { status: 404, type: INVALID, message: 'There is no such API key.' },
  decision_not_found: { status: 404, type: INVALID, message: 'There is no such decision, or it is no longer kept.' },
  request_not_found: { status: 404, type: INVALID, message: 'There is no such request, or it is not booked yet.' },
  statement_not_found: { status: 404, type: INVALID, message: 'There is no statement of this period.' },
  unknown_url: { status: 404, type: INVALID, message: 'There is nothing at this address. Chat completions are at POST /v1/chat/completions, models at GET /v1/models; GET /openapi.json lists all.' },
  method_not_allowed: { status: 405, type: INVALID, message: 'This method is not allowed here.' },
  request_timeout: { status: 408, type: INVALID, message: 'The request took too long to arrive.' },
  answer_not_read: { status: 408, type: INVALID, message: 'The rest of the answer was given up, since nothing of it was read for too long.' },
  idempotency_conflict: { status: 409, type: INVALID, message: 'The idempotency key was used with another body.' },
  idempotency_in_progress: { status: 409, type: INVALID, message: 'A request with this idempotency key is still running.' },
  idempotency_completed: { status: 409, type: INVALID, message: 'A request with this idempotency key has been answered, and its answer is not kept.' },
  payload_too_large: { status: 413, type: INVALID, message: 'The body is too large.' },
  expectation_failed: { status: 417, type: INVALID, message: 'The only supported value of the header Expect is 100-continue.' },
  unsupported_media_type: { status: 415, type: INVALID, message: 'The body must be application/json, and not compressed. Send the header Content-Type: application/json, once.' },
  requests_rate_limited: { status: 429, type: 'requests', code: 'rate_limit_exceeded', message: 'Too many requests. Slow down.' },
  tokens_rate_limited: { status: 429, type: 'tokens', code: 'rate_limit_exceeded', message: 'Too many tokens. Slow down.' },
  insufficient_quota: { status: 429, type: 'insufficient_quota', message: 'The quota is used up.' },
  headers_too_large: { status: 431, type: INVALID, message: 'The headers are too large.' },
  routing_unavailable: { status: 500, type: 'server_error', message: FAULTS.routing_unavailable.publicMessage },
  internal_error: { status: 500, type: 'server_error', message: FAULTS.internal_error.publicMessage },
  quota_unavailable: { status: 503, type: 'server_error', message: FAULTS.quota_unavailable.publicMessage },
  accounts_unavailable: { status: 503, type: 'server_error', message: FAULTS.accounts_unavailable.publicMessage },
  overloaded: { status: 503, type: 'server_error', message: FAULTS.overloaded.publicMessage },
  all_models_unavailable: { status: 503, type: 'server_error', message: 'All models that can serve this request are unavailable right now.' },
} as const satisfies Record<string, ErrorMeaning>;

export type ApiErrorName = keyof typeof API_ERRORS;

/** Wait that is given when a cap never resets: one day. */
const NO_RESET_RETRY_AFTER_MS = 86_400_000;
/** Shorter waits are also given in milliseconds. */
const RETRY_AFTER_MS_BELOW = 60_000;
const UNAVAILABLE_RETRY_AFTER_MS = 1_000;

export interface ApiErrorDetails {
  readonly message?: string;
  readonly param?: string;
  readonly metadata?: { readonly [key: string]: JsonValue };
  /** How long to wait; given on 429, 503 and a 402 that passes soon. */
  readonly retryAfterMs?: number;
  readonly resetMs?: number;
}

/** `Retry-After` in whole seconds, rounded up, at least 1; below a minute also `retry-after-ms`. */
export function retryHeaders(waitMs: number): Record<string, string> {
  const ms = Math.max(1, Math.ceil(waitMs));
  const headers: Record<string, string> = { 'Retry-After': String(Math.max(1, Math.ceil(ms / 1_000))) };
  if (ms < RETRY_AFTER_MS_BELOW) headers['retry-after-ms'] = String(ms);
  return headers;
}

function headersFor(status: number, type: string, retryAfterMs: number | undefined): Record<string, string> {
  switch (status) {
    case 401:
      return { 'WWW-Authenticate': 'Bearer' };
    case 402:
      return retryAfterMs === undefined ? { 'x-should-retry': 'false' } : { ...retryHeaders(retryAfterMs), 'x-should-retry': 'true' };
    case 429:
      return type === 'insufficient_quota'
        ? { ...retryHeaders(retryAfterMs ?? NO_RESET_RETRY_AFTER_MS), 'x-should-retry': 'false' }
        : retryHeaders(retryAfterMs ?? UNAVAILABLE_RETRY_AFTER_MS);
    case 500:
      return { 'x-should-retry': 'true' };
    case 503:
      return { ...retryHeaders(retryAfterMs ?? UNAVAILABLE_RETRY_AFTER_MS), 'x-should-retry': 'true' };
    default:
      return {};
  }
}

/** The error of a row, with its standard headers. */
export function apiError(name: ApiErrorName, details: ApiErrorDetails = {}): ApiError {
  const row: ErrorMeaning = API_ERRORS[name];
  return {
    status: row.status,
    type: row.type,
    code: row.code === undefined ? name : row.code,
    param: details.param ?? null,
    message: details.message ?? row.message,
    headers: headersFor(row.status, row.type, details.retryAfterMs),
    ...(details.metadata === undefined ? {} : { metadata: details.metadata }),
    ...(details.resetMs === undefined ? {} : { resetMs: details.resetMs }),
  };
}

/** The error that a client sees for a fault: 500 or 503 (408 and 413 for slow and large bodies), without its internal message. */
export function faultToApiError(fault: Fault): ApiError {
  const { httpStatus, publicCode, publicMessage, retryable } = FAULTS[fault.code];
  return {
    status: httpStatus,
    type: 'server_error',
    code: publicCode,
    param: null,
    message: publicMessage,
    metadata: { retryable },
    headers: headersFor(httpStatus, 'server_error', fault.retryAfterMs),
  };
}

/** JSON text of the `error` object, for a stream chunk. */
export function renderErrorObject(error: ApiError): string {
  const metadata = error.metadata === undefined ? '' : `,"metadata":${renderJson(error.metadata)}`;
  return `{"message":${JSON.stringify(error.message)},"type":${JSON.stringify(error.type)},"param":${JSON.stringify(error.param)},"code":${JSON.stringify(error.code)}${metadata}}`;
}

/** The whole error body; `routerMetadata` is added beside `error` if given. */
export function renderErrorBody(error: ApiError, routerMetadata?: JsonValue): Buffer {
  const extra = routerMetadata === undefined ? '' : `,"router_metadata":${renderJson(routerMetadata)}`;
  return Buffer.from(`{"error":${renderErrorObject(error)}${extra}}`);
}

/** The error as variant B has it: 402 becomes 429 insufficient_quota, 403 becomes 401 invalid_api_key, with the same message. Variant A: unchanged. */
export function forVariant(error: ApiError, variant: Variant): ApiError {
  if (variant === 'A') return error;
  const { metadata } = error;
  if (error.status === 403) return apiError('invalid_api_key', { message: error.message, ...(error.param === null ? {} : { param: error.param }), ...(metadata === undefined ? {} : { metadata }) });
  if (error.status !== 402) return error;
  const quota = apiError('insufficient_quota', { message: error.message, ...(metadata === undefined ? {} : { metadata }), ...(error.resetMs === undefined ? {} : { retryAfterMs: error.resetMs }) });
  // A refusal that passes soon keeps its short wait and may be retried.
  return error.headers?.['Retry-After'] === undefined ? quota : { ...quota, headers: error.headers };
}
