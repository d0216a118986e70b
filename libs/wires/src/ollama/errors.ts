/** What a refusal of Ollama's means, and what of it a client may read. */
import type { Failure } from '../canonical.js';
import { classifyErrorFrame, classifyRefusal, type Refusal } from '../openai-chat/errors.js';

/** One model's lack, such as tools or thinking: another endpoint may have it. */
const LACK = /does not support/i;

const elsewhere = (failure: Failure): Failure => (failure.class === 'BAD_REQUEST' && LACK.test(failure.publicMessage) ? { ...failure, retryable: true } : failure);

/** Classifies an answer that is not 2xx: `{"error":"text"}`. */
export function classifyOllamaRefusal(refusal: Refusal): Failure {
  return elsewhere(classifyRefusal(refusal));
}

/** Classifies the `error` of a line or body that came with a 200. */
export function classifyOllamaError(error: unknown): Failure {
  return elsewhere(classifyErrorFrame(error));
}
