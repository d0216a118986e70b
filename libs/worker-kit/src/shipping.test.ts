import { expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createShipping, joinUsage, usageCodec } from './shipping.js';
import { WaitingRecords } from './waiting-records.js';
import { endedCodec, outcomeCodec } from './wal-events.js';
import { FRAME } from './wal-frame.js';

const RANGE = { writer: 'wrt_1', firstSeq: 3, lastSeq: 8 };

function read(waiting: WaitingRecords, most: number) {
  const batch = waiting.oldest(most);
  return batch === undefined ? undefined : usageCodec.decode(joinUsage(RANGE, batch));
}

test('records joined as bytes decode as one message with the same facts', () => {
  const long = 'x'.repeat(200_000);
  const payloads = [endedCodec.encode({ seq: 4, requestId: 'r1', costNanoUsd: '7' }), outcomeCodec.encode({ seq: 5, requestId: 'r1', outcome: 'DELIVERED', toldByEdge: true }), endedCodec.encode({ seq: 7, requestId: long })] as const;
  const waiting = new WaitingRecords();
  expect(read(waiting, 9)).toBeUndefined();
  waiting.add({ seq: 4, kind: FRAME.end, payload: payloads[0] });
  waiting.add({ seq: 5, kind: FRAME.outcome, payload: payloads[1] });
  waiting.add({ seq: 7, kind: FRAME.end, payload: payloads[2] });
  expect(read(waiting, 9)).toEqual({ writer: 'wrt_1', firstSeq: '3', lastSeq: '8', ended: [endedCodec.decode(payloads[0]), endedCodec.decode(payloads[2])], outcomes: [outcomeCodec.decode(payloads[1])] });
});

test('waiting records are sent oldest first, each exactly once', () => {
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
    // The range covers the sequences between two records.
    waiting.dropUpTo((batch?.newestSeq ?? 0) + 1);
  }
  expect(waiting.count).toBe(0);
  waiting.add({ seq: seq + 2, kind: FRAME.end, payload: endedCodec.encode({}) });
  waiting.clear();
  expect([waiting.count, waiting.oldest(1)]).toEqual([0, undefined]);
  expect(shipped).toEqual(Array.from({ length: seq / 2 }, (_, i) => String(2 * (i + 1))));
});

/** Shipping with a bus that accepts or refuses messages when told to, oldest first, and records the ranges in order. */
async function startedShipping() {
  const clock = createFakeClock();
  const ranges: string[] = [];
  const answers: ((refused?: Error) => void)[] = [];
  let lastSeq = 0;
  let reads = 0;
  let ledgerSeq = 0;
  const watermarks: object[] = [];
  const warnings: string[] = [];
  /** Answers that billing has read and not given yet, while `isSlow`. */
  const unanswered: (() => void)[] = [];
  let isSlow = false;
  const bus = {
    publish: (_subject: string, payload: Uint8Array): Promise<void> => {
      const { firstSeq, lastSeq: last } = usageCodec.decode(Buffer.from(payload));
      ranges.push(`${firstSeq}-${last}`);
      return new Promise((resolve, reject) => answers.push((refused) => (refused === undefined ? resolve() : reject(refused))));
    },
  };
  const quiet = () => undefined;
  const shipping = createShipping({
    writer: 'wrt_1', provider: 'p', clock, lastSeq: () => lastSeq, openSinceMs: () => 0, onRegistered: quiet, onLedger: quiet, isAwaited: () => false,
    read: () => {
      reads += 1;
      return [];
    },
    bus: bus as unknown as Parameters<typeof createShipping>[0]['bus'],
    billing: {
      unary: (name: string, told: object) => {
        const answer = { ledgerSeq: String(ledgerSeq) };
        if (name === 'Watermark') watermarks.push(told);
        return isSlow ? new Promise((resolve) => unanswered.push(() => resolve(answer))) : Promise.resolve(answer);
      },
    } as unknown as Parameters<typeof createShipping>[0]['billing'],
    log: { debug: quiet, info: quiet, warn: (text: string) => void warnings.push(text), error: quiet } as unknown as Parameters<typeof createShipping>[0]['log'],
  });
  shipping.begin();
  await settle();
  reads = 0;
  const add = (count: number): void => {
    for (let i = 0; i < count; i += 1) {
      lastSeq += 1;
      shipping.add([{ seq: lastSeq, kind: FRAME.end, payload: endedCodec.encode({ seq: lastSeq }) }]);
    }
  };
  const confirm = async (): Promise<void> => {
    answers.shift()?.();
    await settle();
  };
  const refuse = async (reason = new Error('refused')): Promise<void> => {
    answers.shift()?.(reason);
    await settle();
  };
  /** Writes start records, which are not booked. */
  const begin = (count: number): void => void (lastSeq += count);
  /** Sets the watermark that the ledger answers next. */
  const book = async (seq: number): Promise<void> => {
    await settle();
    ledgerSeq = seq;
    clock.advance(15_000);
    await settle();
  };
  /** From now on billing answers when told to. */
  const slow = (): void => void (isSlow = true);
  /** What billing reads from now on. */
  const commit = (seq: number): void => void (ledgerSeq = seq);
  const answerNewestFirst = async (): Promise<void> => {
    while (unanswered.length > 0) {
      unanswered.pop()?.();
      await settle();
    }
  };
  return { clock, ranges, shipping, add, book, begin, confirm, refuse, reads: () => reads, watermarks, warnings, slow, commit, answerNewestFirst };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('records are gathered for 50 ms after a quiet time, then for 300 ms from one send to the next', async () => {
  const { clock, ranges, add, confirm } = await startedShipping();
  add(3);
  clock.advance(50);
  add(4);
  await confirm();
  clock.advance(299);
  expect(ranges).toEqual(['1-3']);
  add(1);
  clock.advance(1);
  expect(ranges).toEqual(['1-3', '4-8']);
  await confirm();
  clock.advance(1_000);
  add(1);
  clock.advance(49);
  expect(ranges).toHaveLength(2);
  clock.advance(1);
  expect(ranges).toEqual(['1-3', '4-8', '9-9']);
});

test('the wait of the oldest record is known, also after the ledger went back; start records do not count', async () => {
  const { clock, shipping, add, begin, book } = await startedShipping();
  begin(2);
  clock.advance(60_000);
  expect(shipping.unbookedMs()).toBe(0);
  add(1);
  clock.advance(90_000);
  add(1);
  clock.advance(30_000);
  expect(shipping.unbookedMs()).toBe(120_000);
  await book(3);
  expect(shipping.unbookedMs()).toBe(45_000);
  await book(4);
  expect(shipping.unbookedMs()).toBe(0);
  await book(1);
  clock.advance(5_000);
  expect(shipping.unbookedMs()).toBe(5_000);
});

test('a ledger whose replicas answer in another order than they were asked has not gone back', async () => {
  const { clock, ranges, shipping, add, confirm, warnings, slow, commit, answerNewestFirst } = await startedShipping();
  add(1);
  clock.advance(50);
  await confirm();
  slow();
  clock.advance(1_000);
  commit(1);
  const ended = shipping.end(0);
  await settle();
  await answerNewestFirst();
  await ended;
  clock.advance(1_000);
  await settle();
  expect(warnings).toEqual([]);
  expect(ranges).toEqual(['1-1']);
});

test('billing is told which record is the newest that is to be booked', async () => {
  const { clock, add, begin, watermarks } = await startedShipping();
  begin(1);
  clock.advance(1_000);
  await settle();
  add(2);
  begin(3);
  clock.advance(15_000);
  await settle();
  expect(watermarks).toMatchObject([{ lastSeq: '1', owedSeq: '0' }, { lastSeq: '6', owedSeq: '3' }]);
});

test('much is sent at once without waiting for answers in between, at most eight messages of 256 records', async () => {
  const { clock, ranges, add, confirm } = await startedShipping();
  add(300);
  expect(ranges).toEqual([]);
  clock.advance(50);
  expect(ranges).toEqual(['1-256', '257-300']);
  add(2_048);
  expect(ranges).toHaveLength(2);
  await confirm();
  await confirm();
  expect(ranges.slice(2)).toEqual(Array.from({ length: 8 }, (_, i) => `${301 + i * 256}-${556 + i * 256}`));
  add(4_000);
  expect(ranges).toHaveLength(10);
});

test('messages are sent again from the first that the bus refused, after a pause and without reading the log', async () => {
  const { clock, ranges, add, confirm, refuse, reads } = await startedShipping();
  add(700);
  clock.advance(50);
  expect(ranges.splice(0)).toEqual(['1-256', '257-512', '513-700']);
  await confirm();
  await refuse();
  await confirm();
  add(2_048);
  clock.advance(99);
  expect(ranges).toEqual([]);
  clock.advance(1);
  expect(ranges.slice(0, 3)).toEqual(['257-512', '513-768', '769-1024']);
  expect(reads()).toBe(0);
});

test('what is too large for the bus is sent in smaller messages, from then on', async () => {
  const { clock, ranges, add, confirm, refuse, warnings } = await startedShipping();
  const tooLarge = new Fault('bad_message', 'too large');
  add(256);
  clock.advance(50);
  await refuse(tooLarge);
  clock.advance(100);
  expect(ranges.splice(0)).toEqual(['1-256', '1-128', '129-256']);
  await refuse(tooLarge);
  await refuse(tooLarge);
  clock.advance(200);
  expect(ranges.splice(0)).toEqual(['1-64', '65-128', '129-192', '193-256']);
  for (let i = 0; i < 4; i += 1) await confirm();
  add(100);
  clock.advance(300);
  expect(ranges).toEqual(['257-320', '321-356']);
  // One record cannot be divided: it is tried again for as long as it takes.
  for (let pauseMs = 100; pauseMs <= 5_000; pauseMs *= 2) {
    for (const _message of ranges.splice(0)) await refuse(tooLarge);
    clock.advance(pauseMs);
  }
  for (const _message of ranges.splice(0)) await refuse(tooLarge);
  clock.advance(5_000);
  expect(ranges[0]).toBe('257-257');
  // Within a minute the operator is told of it once.
  expect(warnings.filter((text) => text.includes('max_payload'))).toHaveLength(1);
});

test('records beyond the limit in memory are read from the log', async () => {
  const { clock, ranges, add, refuse, reads } = await startedShipping();
  add(1);
  clock.advance(50);
  add(9_000);
  await refuse();
  expect(reads()).toBe(0);
  clock.advance(100);
  expect(ranges.at(-1)).toBe('1793-2048');
});

test('a flush sends everything and waits for it, even if a batch is already being sent', async () => {
  const { clock, ranges, shipping, add, confirm } = await startedShipping();
  let isFlushed = false;
  add(1);
  clock.advance(50);
  add(2);
  void shipping.flush().then(() => (isFlushed = true));
  await confirm();
  expect([ranges, isFlushed]).toEqual([['1-1', '2-3'], false]);
  await confirm();
  expect([ranges, isFlushed]).toEqual([['1-1', '2-3'], true]);
});
