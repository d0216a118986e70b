/** Reading a whole answer with probabilities in megabytes, which one turn of the event loop is too short for. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { failure, type AnswerResult } from '@signalbox/wires/canonical';
import type { Segment } from '@signalbox/wires/json-bounds';
import { elementsOf, putBack, setApart } from '@signalbox/wires/set-apart';
import { othersTurn } from './large-request.js';
import type { ProviderAdapter } from './provider.js';

export interface SegmentedAnswer {
  readonly adapter: ProviderAdapter;
  readonly request: DispatchRequest__Output;
  /** HTTP status it came with. */
  readonly status: number;
  readonly body: Buffer;
  /** As AnswerTally found them; each has a turn of its own. */
  readonly segments: readonly Segment[];
  /** Asked after each turn: nobody waits for it any more. */
  readonly isOver: () => boolean;
}

/** Undefined when nobody waited for it to the end. */
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
  // Without all of them in their places it is an answer that no model writes.
  return choices === undefined ? adapter.readAnswer(body, request) : { ok: true, answer: { ...result.answer, choices } };
}
