/** What a refusal of Bedrock means, and what of it a client may read. */
import { UNCOMPILABLE } from '../anthropic-messages/errors.js';
import { errorText, failure, isObject, type Failure, type FailureClass } from '../canonical.js';
import { failureOf, isPage, readRefusalJson, readRetryAfter, type Refusal } from '../openai-chat/errors.js';

/** By the exception's name without `Exception`, lower case. */
const CLASSES: Readonly<Record<string, FailureClass>> = {
  accessdenied: 'CREDENTIAL',
  expiredtoken: 'CREDENTIAL',
  incompletesignature: 'CREDENTIAL',
  invalidclienttokenid: 'CREDENTIAL',
  invalidsignature: 'CREDENTIAL',
  missingauthenticationtoken: 'CREDENTIAL',
  notauthorized: 'CREDENTIAL',
  optinrequired: 'CREDENTIAL',
  signaturedoesnotmatch: 'CREDENTIAL',
  unrecognizedclient: 'CREDENTIAL',
  internalserver: 'PROVIDER_ERROR',
  modelerror: 'PROVIDER_ERROR',
  modelnotready: 'PROVIDER_ERROR',
  modelstreamerror: 'PROVIDER_ERROR',
  modeltimeout: 'PROVIDER_ERROR',
  serviceunavailable: 'PROVIDER_ERROR',
  resourcenotfound: 'NOT_FOUND',
  unknownoperation: 'NOT_FOUND',
  servicequotaexceeded: 'RATE_LIMITED',
  throttling: 'RATE_LIMITED',
  toomanyrequests: 'RATE_LIMITED',
  requestentitytoolarge: 'CONTEXT_LENGTH',
  validation: 'BAD_REQUEST',
};
const STATUS_CLASSES: Readonly<Record<number, FailureClass>> = { 400: 'BAD_REQUEST', 401: 'CREDENTIAL', 402: 'CREDENTIAL', 403: 'CREDENTIAL', 404: 'NOT_FOUND', 413: 'CONTEXT_LENGTH', 422: 'BAD_REQUEST', 429: 'RATE_LIMITED' };
/** Statuses of the exceptions that are told inside a 200, as an own answer would have them. */
const EVENT_STATUSES: Readonly<Record<string, number>> = { internalserver: 500, modelstreamerror: 424, serviceunavailable: 503, throttling: 429, validation: 400 };

const CONTEXT = /input is too long|prompt is too long|context (?:limit|window|length)|too many (?:input )?tokens|maximum (?:number of )?tokens|input tokens exceeds maximum|exceeds? the maximum (?:input|context)/i;
/** The credential is sound: this model is not open to it, or not under this id. */
const NO_MODEL = /access to (?:the|this) model|model access|model identifier is invalid|on-demand throughput|inference profile|end of its life|legacy|^Access to Anthropic models is not allowed from\b/i;
/** Of an account that may call no model, as new ones often may not, under a type that blames the request. */
const NO_ACCOUNT = /^(?:Operation not allowed|Your account is not authorized to invoke this API operation)\.?$/;
/** Policies of IAM may allow some models and not others. */
const RESOURCE_OF_A_MODEL = /on resource: arn:\S+:(?:foundation-model|inference-profile|application-inference-profile|provisioned-model)\//i;
const POLICY = /content filter|guardrail|usage policy|blocked by/i;
/** One model's lack, not a mistake of the client's. */
const LACK = /(?:not|n't) (?:currently )?support|not available/i;

/** `ThrottlingException:http://…` and `throttlingException` alike are `throttling`. */
function nameOf(type: string): string {
  const bare = type.split(':')[0]?.split('#').at(-1) ?? '';
  return bare.toLowerCase().replace(/exception$/, '');
}

function refine(told: FailureClass, message: string): FailureClass {
  if ((told === 'CREDENTIAL' || told === 'BAD_REQUEST') && NO_MODEL.test(message)) return 'NOT_FOUND';
  if (told === 'CREDENTIAL' && RESOURCE_OF_A_MODEL.test(message)) return 'NOT_FOUND';
  if (told !== 'BAD_REQUEST') return told;
  if (NO_ACCOUNT.test(message)) return 'CREDENTIAL';
  if (CONTEXT.test(message)) return 'CONTEXT_LENGTH';
  return POLICY.test(message) ? 'CONTENT_POLICY' : 'BAD_REQUEST';
}

function classify(name: string, byStatus: FailureClass, message: string, status: number, retryAfterMs: number): Failure {
  const told = refine((Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined) ?? byStatus, message);
  const reason = failureOf(told, status, retryAfterMs, message, '');
  return told === 'BAD_REQUEST' && (LACK.test(message) || UNCOMPILABLE.test(message)) ? { ...reason, retryable: true } : reason;
}

function messageOf(body: unknown): string {
  if (!isObject(body)) return '';
  return errorText(body['message'] ?? body['Message']);
}

/** Classifies an answer that is not 2xx. A 4xx that is no JSON comes from something in between, which counts bytes, too (413). */
export function classifyConverseRefusal({ status, headers, body, nowMs }: Refusal): Failure {
  const retryAfterMs = readRetryAfter(headers, nowMs);
  const byStatus = STATUS_CLASSES[status] ?? 'PROVIDER_ERROR';
  const parsed = readRefusalJson(body);
  const isBetween = byStatus === 'BAD_REQUEST' || (status === 403 && isPage(body));
  if (!isObject(parsed)) return { ...failure(isBetween ? 'PROVIDER_ERROR' : byStatus, true, status), retryAfterMs };
  const header = headers['x-amzn-errortype'];
  const type = typeof header === 'string' ? header : (header?.[0] ?? (typeof parsed['__type'] === 'string' ? parsed['__type'] : ''));
  return classify(nameOf(type), byStatus, messageOf(parsed), status, retryAfterMs);
}

/** Classifies an exception that came inside a stream. */
export function classifyConverseException(type: string, payload: unknown): Failure {
  const name = nameOf(type);
  return classify(name, 'PROVIDER_ERROR', messageOf(payload), EVENT_STATUSES[name] ?? 200, 0);
}
