/** What a wire other than OpenAI's says of one choice, and the OpenAI shapes it is told in. */
import type { FinishReason, JsonObject } from './canonical.js';

/** Beside one of these, or tool calls, a message's content may be null; else it is a string, as in streams: a null could not be sent back. */
export const INSTEAD_OF_CONTENT = ['refusal', 'function_call', 'audio'] as const;

export interface CallParts {
  /** Empty = the provider gave none: one is made. */
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  /** Provider-only state to be sent back with the call. */
  readonly extra?: JsonObject | undefined;
}

/** `stop` after calls is `tool_calls`, and `tool_calls` without any is `stop`. */
export function finishWithCalls(reason: FinishReason, callCount: number): FinishReason {
  if (reason === 'stop' && callCount > 0) return 'tool_calls';
  return reason === 'tool_calls' && callCount === 0 ? 'stop' : reason;
}

/** The answer stopped where it stood: its last call may be half told. */
export function isCutShort(reason: FinishReason): boolean {
  return reason === 'length' || reason === 'content_filter';
}

/** Id of a call that came without one: `seed` differs between requests. */
export function madeCallId(seed: string, choice: number, position: number): string {
  return `call_${seed}${choice === 0 ? '' : `${String(choice)}_`}${String(position)}`;
}

/** Canonical call, without `index`. */
export function callObject(call: CallParts, id: string): object {
  return { id, type: 'function', function: { name: call.name, arguments: call.arguments }, ...(call.extra === undefined ? {} : { extra_content: call.extra }) };
}

/** UTF-8 bytes of a call's generated text. */
export function callBytes(call: CallParts): number {
  return Buffer.byteLength(call.name) + Buffer.byteLength(call.arguments);
}
