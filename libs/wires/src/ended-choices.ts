/** How choices of a stream end that have their reason while others go on. */
import type { FinishReason, StreamEvent } from './canonical.js';

export type ChoiceEnd = readonly [index: number, reason: FinishReason];

/**
 * The events of one read, the last of which names `ends` where it is said while others of the `choices` go on. Not those
 * before: whoever is cut off behind one of them has not been given all that these choices said.
 */
export function withEnds(events: readonly StreamEvent[], ends: readonly ChoiceEnd[], choices: number): readonly StreamEvent[] {
  const last = events.at(-1);
  if (last?.type !== 'chunk' || last.finish || ends.length === 0 || ends.length >= choices) return events;
  const ended = Buffer.from(JSON.stringify(ends.map(([index, reason]) => ({ index, delta: {}, logprobs: null, finish_reason: reason }))));
  return [...events.slice(0, -1), { ...last, ended }];
}
