/** Finish reasons of hosts that speak the OpenAI wire, as ours. */
import { labelOf, type FinishReason, type JsonObject } from '../canonical.js';
import { finishWithCalls } from '../choice-parts.js';

/** In small letters: gateways before Google's models give its own words, in capitals. */
const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  eos: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  max_output_tokens: 'length',
  // Z.ai.
  model_context_window_exceeded: 'length',
  // Xiaomi and Tencent, of a model that only repeats itself: they cut it off.
  repetition_truncation: 'length',
  tool_calls: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'function_call',
  content_filter: 'content_filter',
  safety: 'content_filter',
  recitation: 'content_filter',
  blocklist: 'content_filter',
  prohibited_content: 'content_filter',
  spii: 'content_filter',
  language: 'content_filter',
  model_armor: 'content_filter',
  image_safety: 'content_filter',
  image_prohibited_content: 'content_filter',
  image_recitation: 'content_filter',
  // Z.ai.
  sensitive: 'content_filter',
  network_error: 'error',
  // DeepSeek.
  insufficient_system_resource: 'error',
  error: 'error',
  // Google's, from gateways before its models.
  malformed_function_call: 'error',
  malformed_response: 'error',
  unexpected_tool_call: 'error',
  too_many_tool_calls: 'error',
  missing_thought_signature: 'error',
  no_image: 'error',
  image_other: 'error',
  // vLLM and SGLang, where the host stopped the generation.
  abort: 'error',
  aborted: 'error',
  cancelled: 'error',
  canceled: 'error',
  timeout: 'error',
};

/** As the table has it: gateways built on the AI SDK write `content-filter`, and Google's common format what was found behind it, as in `content_filter: PROHIBITED_CONTENT`. */
function wordOf(reason: string): string {
  const end = reason.indexOf(':');
  return (end === -1 ? reason : reason.slice(0, end)).trim().toLowerCase().replaceAll('-', '_');
}

/** False for none: some hosts write the text `null`, or nothing, in each chunk. */
export function isFinishReason(raw: unknown): raw is string {
  return typeof raw === 'string' && raw !== '' && raw !== 'null';
}

/** Errors that are the model's own: a call that is none, or of what it may not call. OpenRouter tells them beside its own word. */
const MODELS_FAULTS: ReadonlySet<string> = new Set(['malformed_function_call', 'malformed_response', 'unexpected_tool_call', 'too_many_tool_calls']);

/** Whether a choice that ended in an error did so by the model's fault. */
export function isModelsFault(choice: JsonObject): boolean {
  return ['finish_reason', 'native_finish_reason'].some((name) => MODELS_FAULTS.has(labelOf(choice[name]).toLowerCase()));
}

/** Unknown reasons are `stop`; `stop` after tool calls is `tool_calls` (some hosts say stop for both), and `tool_calls` without any is `stop`. */
export function mapFinishReason(reason: string, hasToolCalls: boolean): FinishReason {
  const word = wordOf(reason);
  const mapped = Object.hasOwn(REASONS, word) ? REASONS[word] : undefined;
  return finishWithCalls(mapped ?? 'stop', hasToolCalls ? 1 : 0);
}
