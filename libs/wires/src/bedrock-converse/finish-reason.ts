/** Stop reasons of Converse, as ours. */
import type { FinishReason } from '../canonical.js';

const REASONS: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  guardrail_intervened: 'content_filter',
  content_filtered: 'content_filter',
  // Claude's own word, of the classifiers that some of its models have.
  refusal: 'content_filter',
  malformed_model_output: 'error',
  malformed_tool_use: 'error',
};

/** Errors that are the model's own. */
export function isModelsFault(reason: unknown): boolean {
  return reason === 'malformed_model_output' || reason === 'malformed_tool_use';
}

/** Unknown reasons are `stop`. */
export function mapStopReason(reason: string): FinishReason {
  return (Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined) ?? 'stop';
}
