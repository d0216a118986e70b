/** What a refusal of the Messages API means, and what of it a client may read. */
import { errorText, failure, isObject, type Failure, type FailureClass, type JsonObject } from '../canonical.js';
import { failureOf, isPage, readRefusalJson, readRetryAfter, type Refusal } from '../openai-chat/errors.js';

const CLASSES: Readonly<Record<string, FailureClass>> = {
  invalid_request_error: 'BAD_REQUEST',
  request_too_large: 'CONTEXT_LENGTH',
  authentication_error: 'CREDENTIAL',
  permission_error: 'CREDENTIAL',
  billing_error: 'CREDENTIAL',
  not_found_error: 'NOT_FOUND',
  rate_limit_error: 'RATE_LIMITED',
  overloaded_error: 'PROVIDER_ERROR',
  timeout_error: 'PROVIDER_ERROR',
  api_error: 'PROVIDER_ERROR',
};
const STATUS_CLASSES: Readonly<Record<number, FailureClass>> = { 400: 'BAD_REQUEST', 401: 'CREDENTIAL', 402: 'CREDENTIAL', 403: 'CREDENTIAL', 404: 'NOT_FOUND', 413: 'CONTEXT_LENGTH', 422: 'BAD_REQUEST', 429: 'RATE_LIMITED' };
/** Of the errors that are told inside a 200, as an own answer would have them. */
const FRAME_STATUSES: Readonly<Record<string, number>> = { rate_limit_error: 429, overloaded_error: 529, api_error: 500, timeout_error: 504 };
const CONTEXT = /prompt is too long|context (?:limit|window|length)|too many (?:input )?tokens|input is too long/i;
const NO_CREDIT = /credit balance|spend limit|insufficient (?:funds|quota|balance)|usage limits/i;
/** The same under a type that blames the request, word for word: a sentence that only holds such words may repeat a client's. */
const NO_CREDIT_SENTENCE = /^(?:Your credit balance is too low to access the (?:Anthropic|Claude) API\b|You have reached your specified (?:workspace )?API usage limits\b|This organization has been disabled\b)/;
/** `details.error_code` of a 429 that ends with the month: the account's tier allows no more spending. */
const NO_MORE_SPENDING = 'enforced_spend_limit_reached';
/** A permission that one model wants: of the Messages API there is no other resource. */
const OF_A_MODEL = /\bmodels?\b|\bclaude-|specified resource/i;
const POLICY = /content filtering policy|usage policy/i;
/** One model's or host's lack, not a mistake of the client's. */
const LACK = /(?:not|n't) support(?:ed)?\b|not available/i;
/** A schema that the model's host cannot compile, which other hosts take. */
export const UNCOMPILABLE = /compiled grammar is too large|schema is too complex|too many (?:optional parameters|parameters with union types)/i;

function refine(told: FailureClass, type: string, status: number, message: string): FailureClass {
  if (told === 'CREDENTIAL') return (type === 'permission_error' || status === 403) && OF_A_MODEL.test(message) ? 'NOT_FOUND' : told;
  if (told !== 'BAD_REQUEST') return told === 'RATE_LIMITED' && NO_CREDIT.test(message) ? 'CREDENTIAL' : told;
  if (NO_CREDIT_SENTENCE.test(message)) return 'CREDENTIAL';
  if (CONTEXT.test(message)) return 'CONTEXT_LENGTH';
  return POLICY.test(message) ? 'CONTENT_POLICY' : 'BAD_REQUEST';
}

function classify(error: JsonObject, byStatus: FailureClass, status: number, retryAfterMs: number): Failure {
  const { details } = error;
  if (isObject(details) && details['error_code'] === NO_MORE_SPENDING) return failureOf('CREDENTIAL', status, retryAfterMs, '', '');
  const type = errorText(error['type']);
  const message = errorText(error['message']);
  const told = refine((Object.hasOwn(CLASSES, type) ? CLASSES[type] : undefined) ?? byStatus, type, status, message);
  const reason = failureOf(told, status, retryAfterMs, message, '');
  return told === 'BAD_REQUEST' && (LACK.test(message) || UNCOMPILABLE.test(message)) ? { ...reason, retryable: true } : reason;
}

/** The error object of `{"type":"error","error":{…}}`, or of a list of one as Google wraps it. */
function errorOf(body: Uint8Array): JsonObject | undefined {
  const parsed = readRefusalJson(body);
  const outer: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  return isObject(outer) && isObject(outer['error']) ? outer['error'] : undefined;
}

/** Classifies an answer that is not 2xx. A 4xx without the wire's error comes from something in between, which counts bytes, too (413). */
export function classifyMessagesRefusal({ status, headers, body, nowMs }: Refusal): Failure {
  const retryAfterMs = readRetryAfter(headers, nowMs);
  const error = errorOf(body);
  const byStatus = STATUS_CLASSES[status] ?? 'PROVIDER_ERROR';
  if (error !== undefined && byStatus !== 'PROVIDER_ERROR') return classify(error, byStatus, status, retryAfterMs);
  const isBetween = byStatus === 'BAD_REQUEST' || (status === 403 && isPage(body));
  return { ...failure(isBetween ? 'PROVIDER_ERROR' : byStatus, true, status), retryAfterMs };
}

/** Classifies an `error` event, or an error body that came with a 200. */
export function classifyMessagesError(error: unknown): Failure {
  const told = isObject(error) ? error : {};
  return classify(told, 'PROVIDER_ERROR', FRAME_STATUSES[errorText(told['type'])] ?? 200, 0);
}
