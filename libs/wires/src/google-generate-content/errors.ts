/** What a refusal of Google's APIs means, and what of it a client may read. */
import { errorText, failure, isObject, type Failure, type FailureClass, type JsonObject } from '../canonical.js';
import { classifyFacts, failureOf, isPage, readRefusalJson, readRetryAfter, retryAfterFromMs, type Refusal } from '../openai-chat/errors.js';

/** ErrorInfo reasons that are about our key, project or account. */
const OURS = /^(?:API_KEY_|ACCESS_TOKEN_|CONSUMER_|SERVICE_DISABLED|BILLING_DISABLED|ACCOUNT_|CREDENTIALS_MISSING|USER_PROJECT_DENIED|IAM_PERMISSION_DENIED)/;
/** Vertex names what the permission is for: one model may be denied to a project that has the others. */
const OF_A_MODEL = /\/publishers\/[^/\s]+\/models\//;
/** Vertex, of a model that is not open to the project, or not had in its region. */
const NO_MODEL = /is not allowed to use Publisher Model|^Publisher Model\b.{0,300} is not servable in region\b/;
const CONTEXT = /payload size exceeds the limit|token count.{0,40}exceeds|maximum number of tokens/i;
const POLICY = /responsible ai|prohibited (?:use|content)|violates? (?:our|google)/i;
const NO_CREDIT = /credits? (?:is|are|has been|have been) depleted|monthly spending cap|billing account|location is not supported/i;
/** One model's lack, not a mistake of the client's. */
const LACK = /(?:not|n't) (?:enabled|supported|available) (?:for|in|by|on)\b|does(?: not|n't) support|ending with a model turn|too many states for serving|maximum allowed nesting depth/i;
/** The status of what is ours behind a 400. Of those that blame the request a message may repeat what a client sent. */
const STATUS_OF_OURS = 'FAILED_PRECONDITION';
const OVERLOADED: ReadonlySet<string> = new Set(['CANCELLED', 'UNKNOWN', 'DEADLINE_EXCEEDED', 'ABORTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS']);

interface GoogleError {
  readonly message: string;
  readonly status: string;
  /** ErrorInfo. */
  readonly reason: string;
  /** RetryInfo, 0 = none. */
  readonly retryAfterMs: number;
}

function detailOf(details: unknown, type: string): JsonObject {
  const list = Array.isArray(details) ? (details as readonly unknown[]).filter(isObject) : [];
  return list.find((detail) => errorText(detail['@type']).endsWith(`.${type}`)) ?? {};
}

/** Milliseconds of a protobuf duration such as `34.5s`. */
function durationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)s$/.exec(text);
  return match === null ? 0 : retryAfterFromMs(Number(match[1]) * 1_000);
}

function errorOf(raw: unknown): GoogleError | undefined {
  // Streams wrap their error in a list.
  const outer: unknown = Array.isArray(raw) ? raw[0] : raw;
  const inner = isObject(outer) ? outer['error'] : undefined;
  if (typeof inner === 'string') return { message: errorText(inner), status: '', reason: '', retryAfterMs: 0 };
  if (!isObject(inner)) return undefined;
  return {
    message: errorText(inner['message']),
    status: errorText(inner['status']),
    reason: errorText(detailOf(inner['details'], 'ErrorInfo')['reason']),
    retryAfterMs: durationMs(errorText(detailOf(inner['details'], 'RetryInfo')['retryDelay'])),
  };
}

function classOf(status: number, error: GoogleError | undefined): FailureClass {
  if (error === undefined) return classifyFacts(status, undefined);
  const { message, reason } = error;
  if (reason === 'IAM_PERMISSION_DENIED' && OF_A_MODEL.test(message)) return 'NOT_FOUND';
  if (OURS.test(reason)) return 'CREDENTIAL';
  if (error.status === STATUS_OF_OURS && NO_MODEL.test(message)) return 'NOT_FOUND';
  // The sentence about "your current quota" stands in every 429, those of the minute included.
  if (status === 429 || error.status === 'RESOURCE_EXHAUSTED') return NO_CREDIT.test(message) ? 'CREDENTIAL' : 'RATE_LIMITED';
  if (status === 499 || OVERLOADED.has(error.status)) return 'PROVIDER_ERROR';
  if (NO_CREDIT.test(message) && (status !== 400 || error.status === STATUS_OF_OURS)) return 'CREDENTIAL';
  if (status === 400 && CONTEXT.test(message)) return 'CONTEXT_LENGTH';
  if (status === 400 && POLICY.test(message)) return 'CONTENT_POLICY';
  return classifyFacts(status, { message, code: error.status, text: `${error.status} ${message}`, param: '' });
}

/** Classifies an answer that is not 2xx. */
export function classifyGoogleRefusal({ status, headers, body, nowMs }: Refusal): Failure {
  const error = errorOf(readRefusalJson(body));
  const told = error === undefined && status === 403 && isPage(body) ? 'PROVIDER_ERROR' : classOf(status, error);
  const reason = failureOf(told, status, readRetryAfter(headers, nowMs) || (error?.retryAfterMs ?? 0), error?.message ?? '', '');
  return reason.class === 'BAD_REQUEST' && LACK.test(error?.message ?? '') ? { ...reason, retryable: true } : reason;
}

/** Classifies an error that came inside a 200. */
export function classifyErrorFrame(frame: JsonObject): Failure {
  const error = errorOf(frame);
  const code = isObject(frame['error']) ? frame['error']['code'] : undefined;
  const status = typeof code === 'number' && code >= 400 && code < 600 ? code : 500;
  return failureOf(classOf(status, error), status, error?.retryAfterMs ?? 0, error?.message ?? '', '');
}

/** The prompt was refused as a whole. */
export function promptBlocked(): Failure {
  return { ...failure('CONTENT_POLICY', false, 200), publicMessage: 'The provider refused the prompt for reasons of its content policy.' };
}
