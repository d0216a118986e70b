/** Google's finish reasons as ours. */
import type { FinishReason } from '../canonical.js';

const REASONS: Readonly<Record<string, FinishReason>> = {
  STOP: 'stop',
  FUNCTION_CALL: 'tool_calls',
  MAX_TOKENS: 'length',
  CONTINUATION: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  LANGUAGE: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
  MALFORMED_FUNCTION_CALL: 'error',
  MALFORMED_RESPONSE: 'error',
  UNEXPECTED_TOOL_CALL: 'error',
  TOO_MANY_TOOL_CALLS: 'error',
  MISSING_THOUGHT_SIGNATURE: 'error',
  NO_IMAGE: 'error',
  IMAGE_OTHER: 'error',
  OTHER: 'error',
};

/** Whether an error is the model's: it wrote a call that is none, called what it may not, or drew nothing. Of one that Google says not to know anything of itself it is not known. */
export function isModelsFault(reason: unknown): boolean {
  return mapFinishReason(reason) === 'error' && String(reason).toUpperCase() !== 'OTHER';
}

/** undefined while the candidate goes on. Reasons that are not known are errors: Google has one word for an answer that is whole, and each that it has added since says why one is not. */
export function mapFinishReason(reason: unknown): FinishReason | undefined {
  if (typeof reason !== 'string' || reason === '' || reason === 'FINISH_REASON_UNSPECIFIED') return undefined;
  // Gateways may write it in small letters.
  const word = reason.toUpperCase();
  return Object.hasOwn(REASONS, word) ? REASONS[word] : 'error';
}
