/** Reads a whole answer with megabytes of log probabilities, which would take too long in a single turn of the event loop. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { failure, type AnswerResult } from '@signalbox/wires/canonical';
import type { Segment } from '@signalbox/wires/json-bounds';
import { elementsOf, putBack, setApart } from '@signalbox/wires/set-apart';
import { othersTurn } from './large-request.js';
import type { ProviderAdapter } from './provider.js';

export interface SegmentedAnswer {
  readonly adapter: ProviderAdapter;
  readonly request: DispatchRequest__Output;
  /** HTTP status of the answer. */
  readonly status: number;
  readonly body: Buffer;
  /** As found by AnswerTally; each is read in a turn of its own. */
  readonly segments: readonly Segment[];
  /** Checked after each turn; true when nobody waits for the answer any more. */
  readonly isOver: () => boolean;
}

/** Undefined when `isOver` became true. */
export async function readInSteps({ adapter, request, status, body, segments, isOver }: SegmentedAnswer): Promise<AnswerResult | undefined> {
  const elements: Buffer[] = [];
  for (const segment of segments) {
    await othersTurn();
    if (isOver()) return undefined;
    const read = elementsOf(body, segment);
    if (read === undefined) return { ok: false, failure: failure('GARBAGE', true, status), usage: undefined };
    elements.push(read);
  }
  await othersTurn();
  if (isOver()) return undefined;
  const apart = setApart(body, segments);
  const result = adapter.readAnswer(apart.body, request);
  if (!result.ok) return result;
  const choices = putBack(result.answer.choices, apart.mark, elements);
  // If they cannot all be put back, this is no ordinary answer; it is read in one go.
  return choices === undefined ? adapter.readAnswer(body, request) : { ok: true, answer: { ...result.answer, choices } };
}
