/** Stop reasons of the Messages API, as ours. */
import type { FinishReason } from '../canonical.js';

/** A safety classifier stopped it. */
export const REFUSAL = 'refusal';

const REASONS: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  [REFUSAL]: 'content_filter',
  // Not in Anthropic's list, but met: a filter stopped it, or the host failed.
  sensitive: 'content_filter',
  error: 'error',
};

/** Unknown reasons are `stop`. */
export function mapStopReason(reason: string): FinishReason {
  return (Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined) ?? 'stop';
}
