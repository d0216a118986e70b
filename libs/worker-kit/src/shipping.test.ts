import { expect, test } from '@jest/globals';
import { joinUsage, usageCodec } from './shipping.js';
import { endedCodec, outcomeCodec } from './wal-events.js';
import { FRAME } from './wal-frame.js';

test('records joined as they stand in the log read as one message with the same facts', () => {
  const long = 'x'.repeat(20_000);
  const payloads = [endedCodec.encode({ seq: 4, requestId: 'r1', costNanoUsd: '7' }), outcomeCodec.encode({ seq: 5, requestId: 'r1', outcome: 'DELIVERED', toldByEdge: true }), endedCodec.encode({ seq: 7, requestId: long })] as const;
  const joined = joinUsage({ writer: 'wrt_1', firstSeq: 3, lastSeq: 8 }, [
    { seq: 4, kind: FRAME.end, payload: payloads[0] },
    { seq: 5, kind: FRAME.outcome, payload: payloads[1] },
    { seq: 7, kind: FRAME.end, payload: payloads[2] },
  ]);
  expect(usageCodec.decode(joined)).toEqual({ writer: 'wrt_1', firstSeq: '3', lastSeq: '8', ended: [endedCodec.decode(payloads[0]), endedCodec.decode(payloads[2])], outcomes: [outcomeCodec.decode(payloads[1])] });
});
