/** What a refusal of Cohere's means, and what of it a client may read. */
import { errorText, isObject, type Failure, type FailureClass } from '../canonical.js';
import { classifyFacts, failureOf, isPage, readRefusalJson, readRetryAfter, type Refusal } from '../openai-chat/errors.js';

/** Of a trial key: the month's calls are used up, which no waiting of ours mends. */
const MONTH_USED_UP = /\/ ?month/i;
const INVALID_TOKEN = 498;
const CLIENT_CLOSED = 499;

function messageOf(raw: unknown): string | undefined {
  if (!isObject(raw)) return undefined;
  const inner = isObject(raw['error']) ? raw['error']['message'] : (raw['message'] ?? raw['error']);
  return typeof inner === 'string' ? errorText(inner) : undefined;
}

function classOf(status: number, message: string | undefined): FailureClass {
  if (status === INVALID_TOKEN) return 'CREDENTIAL';
  if (status === CLIENT_CLOSED) return 'PROVIDER_ERROR';
  if (status === 429 && MONTH_USED_UP.test(message ?? '')) return 'CREDENTIAL';
  return classifyFacts(status, message === undefined ? undefined : { message, code: '', text: message, param: '' });
}

/** Classifies an answer that is not 2xx. */
export function classifyCohereRefusal({ status, headers, body, nowMs }: Refusal): Failure {
  const message = messageOf(readRefusalJson(body));
  const told = message === undefined && status === 403 && isPage(body) ? 'PROVIDER_ERROR' : classOf(status, message);
  return failureOf(told, status, readRetryAfter(headers, nowMs), message ?? '', '');
}

/** Classifies a body or event of a 200 that holds an error and no answer. */
export function classifyErrorFrame(raw: unknown): Failure {
  const message = messageOf(raw) ?? '';
  return failureOf(classOf(500, message), 200, 0, message, '');
}
