import { afterEach, expect, test } from '@jest/globals';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UsageRecorded__Output } from '@signalbox/contracts/events';
import { createMemoryBus } from '@signalbox/bus/memory';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import type { RpcClient } from '@signalbox/rpc/call';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock } from '@signalbox/testkit/clock';
import type { AttemptEnd, AttemptStart } from './journal.js';
import { usageCodec } from './shipping.js';
import { openJournal } from './wal.js';
import { listSegments } from './wal-segment.js';

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** A ledger that commits whatever the bus delivers, and a quota that takes everything. */
async function world() {
  const clock = createFakeClock();
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-wal-'));
  directories.push(directory);
  const bus = createMemoryBus({ clock });
  const usage: UsageRecorded__Output[] = [];
  const finished: unknown[] = [];
  let mark = 0n;
  await bus.consume({ durable: 'billing', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, async (messages) => {
    for (const message of messages) {
      const event = usageCodec.decode(message.payload);
      usage.push(event);
      if (BigInt(event.firstSeq) <= mark + 1n && BigInt(event.lastSeq) > mark) mark = BigInt(event.lastSeq);
    }
    return messages.map(() => 'done' as const);
  });
  const client = (answer: (method: string, request: never) => object): RpcClient => ({
    unary: (method, request) => Promise.resolve(answer(method, request as never) as never),
    stream: () => ({ cancel: () => undefined, pause: () => undefined, resume: () => undefined }),
    isConnected: () => true,
    close: () => Promise.resolve(),
  });
  const billing = client(() => ({ ledgerSeq: String(mark) }));
  const quota = client((method, request: { finished?: unknown[] }) => {
    if (method === 'Finish') finished.push(...(request.finished ?? []));
    return {};
  });
  return { clock, directory, bus, usage, finished, open: () => openJournal({ directory, provider: 'sim', clock, randomBytes, log: silentLog, bus, quota, billing }) };
}

const price = asPrice(1_000_000n);
const start = (requestId: string): AttemptStart => ({
  requestId, attempt: 1, retryOf: [], accountId: 'acct', keyId: 'key', model: 'm', provider: 'sim', endpointId: 'e',
  card: { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) },
  referenceCard: undefined, periods: { day: 'd', week: 'w', month: 'm', plan: 'p', reservedAtMs: '1' }, heldNanoUsd: asNanoUsd(99n), byok: false, routedFrom: '', decisionId: '', startedAtMs: 1, promptTokens: 7,
});
const end: AttemptEnd = { tokens: { ...NO_TOKENS, inputUncached: 3, outputText: 4 }, costNanoUsd: asNanoUsd(7n), savingsNanoUsd: asNanoUsd(0n), source: 'PROVIDER', flags: [], status: 200, failure: 'FAILURE_CLASS_UNSPECIFIED', ttftMs: 1, totalMs: 2, finishReason: 'stop', endedAtMs: 2 };

test('a settled attempt reaches the ledger in one contiguous range, and quota is told its charge', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, end);
  journal.outcome('r1', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(3_000);
  expect(w.usage).toMatchObject([{ firstSeq: '1', lastSeq: '3', ended: [{ requestId: 'r1', costNanoUsd: '7' }], outcomes: [{ outcome: 'DELIVERED', toldByEdge: true }] }]);
  expect(w.finished).toMatchObject([{ requestId: 'r1', chargeNanoUsd: '7', tokens: '7' }]);
  expect(journal.state()).toMatchObject({ lastSeq: 3n, ledgerSeq: 3n });
  await journal.close();
});

test('a process that died is booked at its last checkpoint, and at 0 when nothing was delivered, despite a torn tail', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.start(start('r2'));
  journal.checkpoint('r1', 1, { ...NO_TOKENS, outputText: 5 });
  await journal.flush();
  await journal.close();
  appendFileSync(listSegments(w.directory).at(-1)?.path ?? '', '0123abcd {"k":"end","q":"3"');
  const successor = await w.open();
  await w.clock.advanceAsync(3_000);
  expect(successor.state().writer).toBe(journal.state().writer);
  const ended = w.usage.flatMap((event) => event.ended);
  expect(ended).toMatchObject([{ requestId: 'r1', source: 'ORPHAN', costNanoUsd: '12' }, { requestId: 'r2', source: 'ORPHAN', costNanoUsd: '0' }]);
  expect(w.usage.flatMap((event) => event.outcomes).map(({ outcome }) => outcome)).toEqual(['DELIVERED', 'DISCARDED']);
  await successor.recover();
  await successor.close();
});

test('sends again from the watermark when the bus was away, and refuses a second holder of the directory', async () => {
  const w = await world();
  const journal = await w.open();
  await expect(w.open()).rejects.toThrow(/in use/);
  w.bus.setConnected(false);
  await journal.start(start('r1'));
  await journal.end('r1', 1, end);
  await w.clock.advanceAsync(2_000);
  expect(w.usage).toEqual([]);
  w.bus.setConnected(true);
  await w.clock.advanceAsync(8_000);
  expect(w.usage.flatMap((event) => event.ended)).toHaveLength(1);
  await journal.close();
});
