/** Cohere's finish reasons as ours. */
import type { FinishReason } from '../canonical.js';

const REASONS: Readonly<Record<string, FinishReason>> = {
  COMPLETE: 'stop',
  STOP_SEQUENCE: 'stop',
  MAX_TOKENS: 'length',
  ERROR_LIMIT: 'length',
  TOOL_CALL: 'tool_calls',
  ERROR_TOXIC: 'content_filter',
  ERROR: 'error',
  TIMEOUT: 'error',
};

/** Reasons that are not known are `stop`. */
export function mapFinishReason(reason: unknown): FinishReason {
  return typeof reason === 'string' && Object.hasOwn(REASONS, reason) ? (REASONS[reason] ?? 'stop') : 'stop';
}
