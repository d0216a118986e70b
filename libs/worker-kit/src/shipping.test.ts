import { expect, test } from '@jest/globals';
import { joinUsage, usageCodec } from './shipping.js';
import { WaitingRecords } from './waiting-records.js';
import { endedCodec, outcomeCodec } from './wal-events.js';
import { FRAME } from './wal-frame.js';

const RANGE = { writer: 'wrt_1', firstSeq: 3, lastSeq: 8 };

function read(waiting: WaitingRecords, most: number) {
  const batch = waiting.oldest(most);
  return batch === undefined ? undefined : usageCodec.decode(joinUsage(RANGE, batch));
}

test('records joined as they stand in the log read as one message with the same facts', () => {
  const long = 'x'.repeat(200_000);
  const payloads = [endedCodec.encode({ seq: 4, requestId: 'r1', costNanoUsd: '7' }), outcomeCodec.encode({ seq: 5, requestId: 'r1', outcome: 'DELIVERED', toldByEdge: true }), endedCodec.encode({ seq: 7, requestId: long })] as const;
  const waiting = new WaitingRecords();
  expect(read(waiting, 9)).toBeUndefined();
  waiting.add({ seq: 4, kind: FRAME.end, payload: payloads[0] });
  waiting.add({ seq: 5, kind: FRAME.outcome, payload: payloads[1] });
  waiting.add({ seq: 7, kind: FRAME.end, payload: payloads[2] });
  expect(read(waiting, 9)).toEqual({ writer: 'wrt_1', firstSeq: '3', lastSeq: '8', ended: [endedCodec.decode(payloads[0]), endedCodec.decode(payloads[2])], outcomes: [outcomeCodec.decode(payloads[1])] });
});

test('of those that wait the oldest come first, and none twice or never', () => {
  const waiting = new WaitingRecords();
  const shipped: string[] = [];
  let seq = 0;
  for (const { added, most } of [{ added: 3, most: 2 }, { added: 0, most: 9 }, { added: 500, most: 256 }, { added: 9, most: 250 }, { added: 0, most: 256 }]) {
    for (let i = 0; i < added; i += 1) {
      seq += 2;
      waiting.add({ seq, kind: FRAME.end, payload: endedCodec.encode({ seq, requestId: `r${seq}`, model: 'm'.repeat(seq) }) });
    }
    const batch = waiting.oldest(most);
    shipped.push(...(read(waiting, most)?.ended ?? []).map(({ seq: each }) => each));
    expect(batch?.newestSeq).toBe(Number(shipped.at(-1)));
    // What lies between two records is told of with the range.
    waiting.dropUpTo((batch?.newestSeq ?? 0) + 1);
  }
  expect(waiting.count).toBe(0);
  waiting.add({ seq: seq + 2, kind: FRAME.end, payload: endedCodec.encode({}) });
  waiting.clear();
  expect([waiting.count, waiting.oldest(1)]).toEqual([0, undefined]);
  expect(shipped).toEqual(Array.from({ length: seq / 2 }, (_, i) => String(2 * (i + 1))));
});
