/** What a refusal of a host of the OpenAI wire means, and what of it a client may read. */
import { withoutKeys } from '@signalbox/kernel/key-shapes';
import { errorText, isError, isObject, RETRY_AFTER_MS_MAX, type Failure, type FailureClass, type JsonObject } from '../canonical.js';

export interface Refusal {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Uint8Array;
  readonly nowMs: number;
}

const BODY_BYTES_MAX = 65_536;
const PUBLIC_MESSAGE_CHARS_MAX = 300;
/** xAI says `maximum prompt length`, Moonshot `model token limit`, llama.cpp `context size`, Claude `context limit`, vLLM `maximum model length`, SGLang and DeepInfra `input length (…) exceeds …`, Together names `max_new_tokens`. */
const CONTEXT = /context[ _](?:length|window|size|limit)|maximum (?:context|prompt length|model length)|model token limit|max length exceeded|tokens \+ `?max_new_tokens|too many (?:input )?tokens|token length (?:too long|exceeds?\b)|tokens in request more than|prompt (?:is )?too long|input is too long|exceeds max length|input (?:length|tokens?(?: count)?)\b.{0,40}\bexceeds (?:the )?maximum|range of input length|reduce the length/i;
const POLICY = /(?:cyber|bio)_policy|possible cybersecurity risk|content[ _](?:filter|policy|management policy)|safety system|moderation|usage guidelines|data_inspection_failed|inappropriate content|sensitive content|violating our usage polic/i;
/** Codes too: OpenAI's of a balance and of limits of spending, some of which stand beside another type, and Groq's of its own (400). */
const NO_CREDIT = /insufficient[ _](?:quota|balance|credit|funds)|credit[ _]balance|used all available credits|billing_(?:hard_limit|not_active)|(?:spend|organization_usage)_limit|blocked_api_access|exceeded[ _](?:your )?current[ _]quota|arrearage/i;
/** Alibaba's words for its limit of tokens a minute, under the code of an account without credit. Its documentation of rate limits tells which message means what. */
const TOKENS_A_MINUTE = /^Allocated quota exceeded\b|\/model-studio\/error-code#token-limit\b/;
/** Z.ai's codes, under 429 too, for an account that is inactive, locked or gone, or whose plan has ended. */
const LOCKED_ACCOUNT = /^(?:111[0-2]|1121|1309) /;
/** What OpenAI (429) and Groq (413) say of one request that asks for more tokens than the account may use in a minute: no wait makes room for it. */
const TOO_LARGE = /^Request too large for .{1,300}: Limit (\d+), Requested (\d+)\b/;
/** `organization_restricted`: Groq, under 400. */
const BAD_KEY = /(?:invalid|incorrect)[ _]api[ _]key|api[ _]key[ _](?:not valid|invalid)|api_key_invalid|organization_restricted/i;
/** Refusals of a key under a status that blames the request, word for word as Google and xAI say them. A sentence that only holds such words may repeat a client's. */
const BAD_KEY_SENTENCE = /^(?:API key not valid\. Please pass a valid API key\.|API key expired\. Please renew the API key\.|Incorrect API key provided: \S{1,40}\. You can obtain (?:one|an API key from https:\/\/console\.x\.ai)\.)$/;
/** OpenRouter's words where credit is left, for less than was asked: one client's `max_tokens` must not rest the key of all. */
const TOO_DEAR = /^This request requires more credits, or fewer max_tokens\. You requested up to \d+ tokens, but can only afford [1-9]/;
/** OpenRouter and Xiaomi have the model, and nobody there who takes what the request holds, such as images: others are served. */
const NOT_OF_THIS_KIND = /^No endpoints found that (?:support|can handle)\b/;
/** A permission that one model wants. Scopes such as `model.request` are of the key. */
const OF_A_MODEL = /(?:\b|_)model(?!s?\.\w)|deployment/i;
const RATE = /rate[ _]limit|tokens per minute|too many requests/i;
const OVERLOAD = /overloaded|unavailable|server[ _]error|capacity|timeout/i;
/** One model's or host's lack, not a mistake of the client's. JSON and tools `cannot be combined` at Groq, Cerebras takes no tools of which only some are strict, vLLM as many images as it was started for; DeepSeek and xAI name a `variant` that they do not know, of parts and choices; Fireworks and other strict hosts take no field that is not theirs. */
const LACK = /no endpoints found that|extra inputs are not permitted|unknown variant\b|did not match any variant|(?:not|n't) support(?:ed)?\b|unsupported_(?:parameter|value)\b|cannot be combined with|mixed values for 'strict'|may be provided in one (?:request|prompt)|is not a multimodal model|compiled grammar is too large|schema is too complex|too many states for serving|too many (?:optional parameters|parameters with union types)/i;
/** Fields and words of how much a model is to think: which it has is the model's own. */
const EFFORT = /reasoning|thinking/i;
const EFFORT_LACK = /must be one of|supported values|should be '|cannot be disabled|only type=enabled/i;
/** Groq's codes for an answer that its model wrote wrongly: not a call of the tools, or not the JSON, that it was asked for. */
const MISWRITTEN = /\b(?:tool_use_failed|json_validate_failed|output_parse_failed)\b/;
/** What hosts say of a body that broke off on its way within them (Ollama, before its cloud): what is sent is whole. */
const BROKE_OFF = /^(?:unexpected EOF|cannot parse request body)$/;
const NO_MODEL = /model[ _]not[ _](?:found|exist)|deploymentnotfound|does not exist|unknown model/i;
/** Codes under 400 for a model that is gone, or not open to the operator's account: Mistral and Perplexity, Groq, Together, Azure. */
const NO_MODEL_CODE = /\b(?:invalid_model|model_decommissioned|model_terms_required|model_not_available|OperationNotSupported)\b/;
/** The same as whole sentences of OpenAI and OpenRouter: one that only holds such words may repeat a client's. */
const NO_MODEL_SENTENCE = /^(?:Your organization must be verified to (?:stream|use|generate)\b|\S+ is not a valid model ID$)/;
/** OpenAI streams some models only to organizations that it has verified, and answers the others in one piece. */
const STREAMS_WAIT = /^Your organization must be verified to stream\b/;

const PUBLIC_CLASSES: ReadonlySet<FailureClass> = new Set(['BAD_REQUEST', 'CONTEXT_LENGTH', 'CONTENT_POLICY']);
const FINAL_CLASSES: ReadonlySet<FailureClass> = new Set(['BAD_REQUEST', 'CONTENT_POLICY']);

/** What a refusal's body says. */
export interface ErrorFacts {
  readonly message: string;
  /** Code and type, the provider's own words: messages repeat what a client sent. */
  readonly code: string;
  /** Code, type and message in one, to be searched. */
  readonly text: string;
  readonly param: string;
  /** Words of a host behind the one that was asked: a credential that they blame is not the one here. */
  readonly isRelayed?: boolean;
}

function textOf(value: unknown): string {
  return typeof value === 'number' ? String(value) : errorText(value);
}

function factsOf(raw: unknown): ErrorFacts | undefined {
  const outer: unknown = Array.isArray(raw) ? raw[0] : raw;
  if (!isObject(outer)) return undefined;
  const inner: JsonObject = isObject(outer['error']) ? outer['error'] : typeof outer['error'] === 'string' ? { message: outer['error'] } : outer;
  // Mistral puts the list of what is wrong into `message`.
  const told: unknown = inner['detail'] ?? (isObject(inner['message']) ? inner['message']['detail'] : undefined);
  const detail: unknown = Array.isArray(told) ? told[0] : told;
  const place: unknown = isObject(detail) && Array.isArray(detail['loc']) ? detail['loc'][1] : undefined;
  const message = textOf(inner['message']) || textOf(detail) || (isObject(detail) ? textOf(detail['msg']) || textOf(detail['error']) || textOf(detail['message']) : '');
  // xAI puts the code beside `error`, not into it.
  const code = [inner['code'] ?? outer['code'], inner['type']].map(textOf).join(' ');
  return { message, code, param: textOf(inner['param']) || textOf(place), text: `${code} ${message}` };
}

/** OpenRouter's words for a refusal of the host that it asked, which it repeats beside them, as JSON text or not. */
const RELAYED = 'Provider returned error';
const RELAYED_STATUSES: ReadonlySet<number> = new Set([400, 413, 422]);

/** What a refusal's body says: of a request that a host behind this one refused, what that one says. */
function factsUnder(status: number, raw: unknown): ErrorFacts | undefined {
  const facts = factsOf(raw);
  if (facts?.message !== RELAYED || !RELAYED_STATUSES.has(status)) return facts;
  const error = isObject(raw) ? raw['error'] : undefined;
  const metadata = isObject(error) ? error['metadata'] : undefined;
  const told = isObject(metadata) ? metadata['raw'] : undefined;
  const body: unknown = typeof told === 'string' ? (readRefusalJson(Buffer.from(told)) ?? { message: told }) : told;
  const relayed = factsOf(body);
  return relayed === undefined || relayed.message === '' ? facts : { ...relayed, isRelayed: true };
}

/** A sentence without anything that looks like a key, id or address, at most 300 characters. */
export function publicSentence(message: string): string {
  const marked = message
    .replace(/https?:\/\/\S+/gi, '')
    .replace(/\barn:aws[\w-]*:\S+/gi, '[redacted]')
    .replace(/\bBearer\s+\S+/gi, '[redacted]')
    .replace(/\b(?:sk|gsk|pk|rk|xai|key|org|proj|csk|fw|tgp|pplx)[-_][\w*.-]{4,}/gi, '[redacted]')
    .replace(/[A-Za-z0-9_+/=*-]{24,}/g, '[redacted]');
  const clean = withoutKeys(marked, '[redacted]')
    .replace(/[\u0000-\u001f\u007f]+/g, ' ')
    .trim();
  return clean.length > PUBLIC_MESSAGE_CHARS_MAX ? `${clean.slice(0, PUBLIC_MESSAGE_CHARS_MAX - 1)}…` : clean;
}

function isTooLarge({ message }: ErrorFacts): boolean {
  const [, limit, requested] = TOO_LARGE.exec(message) ?? [];
  return Number(requested) > Number(limit);
}

/** True for the credential's fault under a status that blames the request, or none: words that a client may have sent do not count. */
function blamesCredential({ code, message, param }: ErrorFacts): boolean {
  return NO_CREDIT.test(code) || BAD_KEY.test(code) || (param === '' && BAD_KEY_SENTENCE.test(message));
}

/** What 403 refuses: the prompt, one model, or the credential as a whole. */
function classifyForbidden({ code, text }: ErrorFacts): FailureClass {
  if (NO_CREDIT.test(code) || BAD_KEY.test(code)) return 'CREDENTIAL';
  if (POLICY.test(text)) return 'CONTENT_POLICY';
  // Together refuses a prompt so that leaves no room for its answer.
  if (CONTEXT.test(text)) return 'CONTEXT_LENGTH';
  return OF_A_MODEL.test(text) ? 'NOT_FOUND' : 'CREDENTIAL';
}

/** True for a page of HTML: what stands before a host answers so, also to the words of a prompt. */
export function isPage(body: Uint8Array): boolean {
  return /^\s*</.test(Buffer.from(body.buffer, body.byteOffset, Math.min(body.length, 64)).toString('latin1'));
}

/** Class by status and words; without facts the body was not the wire's error. */
export function classifyFacts(status: number, facts: ErrorFacts | undefined): FailureClass {
  const text = facts?.text ?? '';
  if (status === 403 && facts !== undefined) return classifyForbidden(facts);
  if (status === 402 && facts !== undefined && TOO_DEAR.test(facts.message)) return 'NOT_FOUND';
  // 412: Fireworks of an account that is suspended, by its name; no request of ours has conditions.
  if (status === 401 || status === 402 || status === 403 || status === 412) return 'CREDENTIAL';
  if (facts !== undefined && (status === 429 || status === 413) && isTooLarge(facts)) return 'CONTEXT_LENGTH';
  if (status === 429 && LOCKED_ACCOUNT.test(facts?.code ?? '')) return 'CREDENTIAL';
  if (status === 429) return NO_CREDIT.test(text) && !TOKENS_A_MINUTE.test(facts?.message ?? '') ? 'CREDENTIAL' : 'RATE_LIMITED';
  if (status === 404 && facts !== undefined && NOT_OF_THIS_KIND.test(facts.message)) return 'BAD_REQUEST';
  if (status === 404 || status === 405 || status === 410) return 'NOT_FOUND';
  // 408, 409, 425: try again; 498: Groq's capacity code; 3xx: redirects are never followed.
  if (status >= 500 || status < 400 || status === 408 || status === 409 || status === 425 || status === 498) return 'PROVIDER_ERROR';
  // A 4xx that is not the wire's error comes from something in between, which counts bytes, too. Cerebras says nothing beside 413 of a long prompt.
  if (facts === undefined) return status === 413 ? 'CONTEXT_LENGTH' : 'PROVIDER_ERROR';
  if (blamesCredential(facts)) return facts.isRelayed === true ? 'PROVIDER_ERROR' : 'CREDENTIAL';
  if (status === 413 && RATE.test(text)) return 'RATE_LIMITED';
  if (CONTEXT.test(text) || status === 413) return 'CONTEXT_LENGTH';
  if (POLICY.test(text)) return 'CONTENT_POLICY';
  if (BROKE_OFF.test(facts.message)) return 'PROVIDER_ERROR';
  if (NO_MODEL.test(text) || NO_MODEL_CODE.test(facts.code) || NO_MODEL_SENTENCE.test(facts.message)) return 'NOT_FOUND';
  return 'BAD_REQUEST';
}

/** A failure whose message and parameter go to the client only when the class allows it. */
export function failureOf(failureClass: FailureClass, status: number, retryAfterMs: number, message: string, param: string): Failure {
  const isPublic = PUBLIC_CLASSES.has(failureClass);
  return {
    class: failureClass,
    status,
    retryAfterMs,
    publicMessage: isPublic ? publicSentence(message) : '',
    publicParam: isPublic && /^[\w.[\]]{1,64}$/.test(param) ? param : '',
    retryable: !FINAL_CLASSES.has(failureClass),
  };
}

/** Whether it refuses what another model or host may take, what its own model wrote, or without a word of why. */
function isOfOne({ message, text, code, param }: ErrorFacts): boolean {
  return message === RELAYED || LACK.test(text) || MISWRITTEN.test(code) || (EFFORT_LACK.test(text) && EFFORT.test(`${param} ${text}`));
}

function build(failureClass: FailureClass, status: number, retryAfterMs: number, facts: ErrorFacts | undefined): Failure {
  const told = failureOf(failureClass, status, retryAfterMs, facts?.message ?? '', facts?.param ?? '');
  if (failureClass === 'NOT_FOUND' && STREAMS_WAIT.test(facts?.message ?? '')) return { ...told, isEndpointWell: true, refusesStreams: true };
  return failureClass === 'BAD_REQUEST' && facts !== undefined && isOfOne(facts) ? { ...told, retryable: true } : told;
}

/** Whole milliseconds within 0…RETRY_AFTER_MS_MAX; 0 for what is no number. */
export function retryAfterFromMs(ms: number): number {
  return Number.isFinite(ms) ? Math.min(RETRY_AFTER_MS_MAX, Math.max(0, Math.ceil(ms))) : 0;
}

function headerOf(headers: Refusal['headers'], name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value.trim() : (value?.[0]?.trim() ?? '');
}

/** When it was answered, by the clock that names moments to come; `nowMs` by the clock here, which may be apart from it, where the provider tells no `Date`. */
function answeredAtMs(headers: Refusal['headers'], nowMs: number): number {
  const toldMs = Date.parse(headerOf(headers, 'date'));
  return Number.isNaN(toldMs) ? nowMs : toldMs;
}

/** Milliseconds of `retry-after-ms` or `Retry-After` (seconds or a date), clamped to 0…RETRY_AFTER_MS_MAX; 0 = none. */
export function readRetryAfter(headers: Refusal['headers'], nowMs: number): number {
  const inMs = headerOf(headers, 'retry-after-ms');
  if (/^\d+(\.\d+)?$/.test(inMs)) return retryAfterFromMs(Number(inMs));
  const text = headerOf(headers, 'retry-after');
  if (text === '') return 0;
  return /^\d+(\.\d+)?$/.test(text) ? retryAfterFromMs(Number(text) * 1_000) : retryAfterFromMs(Date.parse(text) - answeredAtMs(headers, nowMs));
}

const EPOCH_S_MIN = 1_000_000_000;
const EPOCH_MS_MIN = 1_000_000_000_000;

/** Milliseconds until the `X-RateLimit-Reset` that OpenRouter puts into its error, in the place of `Retry-After`: seconds or milliseconds of the epoch; 0 = none. */
function readReset(raw: unknown, nowMs: number): number {
  const error = isObject(raw) ? raw['error'] : undefined;
  const metadata = isObject(error) ? error['metadata'] : undefined;
  const headers = isObject(metadata) ? metadata['headers'] : undefined;
  const told = isObject(headers) ? Number(textOf(headers['X-RateLimit-Reset'])) : 0;
  return told >= EPOCH_S_MIN ? retryAfterFromMs((told >= EPOCH_MS_MIN ? told : told * 1_000) - nowMs) : 0;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Where a stream was asked for, some hosts (Xiaomi) write a refusal as its only event. */
const AS_EVENT = /^data:(.*)$/m;

/** The JSON of a refusal's body; undefined when it is none or too long to be one. */
export function readRefusalJson(body: Uint8Array): unknown {
  if (body.length > BODY_BYTES_MAX) return undefined;
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8');
  return parsedJson(text) ?? parsedJson(AS_EVENT.exec(text)?.[1] ?? '');
}

/** What xAI writes in plain text of a request whose fields are not those that it knows. */
const PLAIN = /^Failed to deserialize the JSON body into the target type\b/;

function readPlain(body: Uint8Array): unknown {
  const message = body.length > BODY_BYTES_MAX ? '' : Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8').trim();
  return PLAIN.test(message) ? { message } : undefined;
}

/** Classifies an answer that is not 2xx. */
export function classifyRefusal({ status, headers, body, nowMs }: Refusal): Failure {
  const raw = readRefusalJson(body) ?? readPlain(body);
  const facts = factsUnder(status, raw);
  const told = facts === undefined && status === 403 && isPage(body) ? 'PROVIDER_ERROR' : classifyFacts(status, facts);
  const hintMs = readRetryAfter(headers, nowMs) || (told === 'RATE_LIMITED' ? readReset(raw, answeredAtMs(headers, nowMs)) : 0);
  // No wait makes a request shorter.
  return build(told, status, told === 'CONTEXT_LENGTH' ? 0 : hintMs, facts);
}

/** The error that a 200's body or frame holds: under `error`, as the whole of it (Mistral, vLLM), in one of its choices (OpenRouter) or beside them under `x_groq`. undefined = none. */
export function errorIn(frame: JsonObject): unknown {
  if (isError(frame['error'])) return frame['error'];
  if (frame['object'] === 'error') return frame;
  const { choices, x_groq: groq } = frame;
  if (isObject(groq) && isError(groq['error'])) return groq['error'];
  if (!Array.isArray(choices)) return undefined;
  // Of each chunk of each stream: nothing is made for it.
  for (const choice of choices as readonly unknown[]) if (isObject(choice) && isError(choice['error'])) return choice['error'];
  return undefined;
}

/** Classifies an error object that came inside a 200: in a stream's frame or as the body. */
export function classifyErrorFrame(raw: unknown): Failure {
  const code = isObject(raw) ? [raw['status'], raw['code']].map(Number).find((told) => Number.isInteger(told) && told >= 400 && told < 600) : undefined;
  const facts = factsUnder(code ?? 0, { error: raw });
  if (code !== undefined) return build(classifyFacts(code, facts), code, 0, facts);
  const text = facts?.text ?? '';
  if (OVERLOAD.test(text)) return build('PROVIDER_ERROR', 200, 0, facts);
  if (facts !== undefined && TOKENS_A_MINUTE.test(facts.message)) return build('RATE_LIMITED', 200, 0, facts);
  if (facts !== undefined && blamesCredential(facts)) return build('CREDENTIAL', 200, 0, facts);
  if (RATE.test(text)) return build('RATE_LIMITED', 200, 0, facts);
  if (CONTEXT.test(text)) return build('CONTEXT_LENGTH', 200, 0, facts);
  if (POLICY.test(text)) return build('CONTENT_POLICY', 200, 0, facts);
  if (/invalid_request/.test(text)) return build('BAD_REQUEST', 200, 0, facts);
  return build('PROVIDER_ERROR', 200, 0, facts);
}
