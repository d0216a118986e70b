import { afterEach, expect, test } from '@jest/globals';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UsageRecorded__Output } from '@signalbox/contracts/events';
import { createMemoryBus } from '@signalbox/bus/memory';
import { Fault } from '@signalbox/kernel/fault';
import { asNanoUsd } from '@signalbox/kernel/money';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import type { RpcClient } from '@signalbox/rpc/call';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock } from '@signalbox/testkit/clock';
import type { AttemptEnd, AttemptStart } from './journal.js';
import { usageCodec } from './shipping.js';
import { openJournal } from './wal.js';
import { FRAME, FrameBuffer, readFrames, type FrameKind } from './wal-frame.js';
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
  const alive: string[] = [];
  const connection = { isBillingUp: true };
  const told: unknown[] = [];
  const store = { epoch: 'life 1', unheld: [] as string[], repliesToLose: 0 };
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
    unary: async (method, request) => Promise.resolve(answer(method, request as never) as never),
    stream: () => ({ cancel: () => undefined, pause: () => undefined, resume: () => undefined }),
    isConnected: () => true,
    close: () => Promise.resolve(),
  });
  const billing = client(() => {
    if (!connection.isBillingUp) throw new Fault('billing_unavailable', 'away');
    return { ledgerSeq: String(mark) };
  });
  const quota = client((method, request: { finished?: unknown[]; holds?: { requestId: string }[] }) => {
    if (method === 'Reregister') {
      told.push(request);
      if (store.repliesToLose > 0) {
        store.repliesToLose -= 1;
        throw new Fault('link_lost', 'the reply');
      }
      return {};
    }
    if (method === 'Finish') finished.push(...(request.finished ?? []));
    const named = (request.holds ?? []).map(({ requestId }) => requestId);
    alive.push(...named);
    return { epoch: store.epoch, unheldRequestIds: named.filter((requestId) => store.unheld.includes(requestId)) };
  });
  const restoreLedger = (): void => void (mark = 0n);
  return { clock, directory, bus, usage, finished, alive, connection, told, store, restoreLedger, open: () => openJournal({ directory, provider: 'sim', clock, randomBytes, log: silentLog, bus, quota, billing }) };
}

const outcomesIn = (usage: readonly UsageRecorded__Output[]): string[] => usage.flatMap((event) => event.outcomes).map(({ requestId, outcome, toldByEdge }) => `${requestId} ${outcome} ${String(toldByEdge)}`);
const price = '1000000';
const start = (requestId: string): AttemptStart => ({
  requestId, attempt: 1, retryOf: [], accountId: 'acct', keyId: 'key', model: 'm', provider: 'sim', endpointId: 'e',
  card: { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: '0' },
  referenceCard: null, periods: { day: 'd', week: 'w', month: 'm', plan: 'p', reservedAtMs: '1' }, byok: false, routedFrom: '', decisionId: '', startedAtMs: 1, promptTokens: 7,
});
const frame = (kind: FrameKind, seq: number, payload: Buffer): Buffer => {
  const frames = new FrameBuffer();
  frames.add(kind, seq, payload);
  return frames.bytes();
};
const end: AttemptEnd = { tokens: { ...NO_TOKENS, inputUncached: 3, outputText: 4 }, costNanoUsd: asNanoUsd(7n), savingsNanoUsd: asNanoUsd(0n), source: 'PROVIDER', flags: [], status: 200, failure: 'FAILURE_CLASS_UNSPECIFIED', ttftMs: 1, totalMs: 2, finishReason: 'stop', endedAtMs: 2 };

test('a settled attempt reaches the ledger in one contiguous range, and quota is told its charge', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, end);
  void journal.outcome('r1', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(3_000);
  expect(w.usage).toMatchObject([{ firstSeq: '1', lastSeq: '3', ended: [{ requestId: 'r1', costNanoUsd: '7' }], outcomes: [{ outcome: 'DELIVERED', toldByEdge: true }] }]);
  expect(w.finished).toMatchObject([{ requestId: 'r1', chargeNanoUsd: '7', tokens: '7' }]);
  expect(journal.state()).toMatchObject({ lastSeq: 3, ledgerSeq: 3 });
  await journal.close();
});

test('rounds of one request end its hold together: the last with the sum, those before without a word to quota', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start({ ...start('r1'), rounds: { earlierNanoUsd: 0n, earlierTokens: 0n } });
  await journal.end('r1', 1, end);
  await journal.start({ ...start('r1'), attempt: 2, rounds: { earlierNanoUsd: 7n, earlierTokens: 7n } });
  await journal.end('r1', 2, end);
  // Longer than an ordinary attempt is waited for.
  await w.clock.advanceAsync(60_000);
  expect(outcomesIn(w.usage)).toEqual([]);
  void journal.outcome('r1', 1, 'DELIVERED', true, { isFollowed: true });
  void journal.outcome('r1', 2, 'DELIVERED', true);
  await w.clock.advanceAsync(3_000);
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED true', 'r1 DELIVERED true']);
  expect(w.finished).toMatchObject([{ requestId: 'r1', chargeNanoUsd: '14', tokens: '14' }]);
  await journal.close();
});

test.each([true, false])('after a kill the hold of a request in rounds ends with the sum where edge names the last of them, else by the ledger (edge lives: %s)', async (edgeLives) => {
  const w = await world();
  const journal = await w.open();
  await journal.start({ ...start('r1'), rounds: { earlierNanoUsd: 0n, earlierTokens: 0n } });
  await journal.end('r1', 1, end);
  await journal.start({ ...start('r1'), attempt: 2, rounds: { earlierNanoUsd: 7n, earlierTokens: 7n } });
  await journal.end('r1', 2, end);
  await journal.flush();
  await journal.close();
  const successor = await w.open();
  if (edgeLives) {
    void successor.outcome('r1', 1, 'DELIVERED', true, { isFollowed: true });
    void successor.outcome('r1', 2, 'DELIVERED', true);
  }
  await w.clock.advanceAsync(40_000);
  expect(outcomesIn(w.usage)).toHaveLength(2);
  expect(w.finished).toMatchObject(edgeLives ? [{ requestId: 'r1', chargeNanoUsd: '14', tokens: '14' }] : []);
  await successor.close();
});

test('rounds of a process that died are charged when the last one answered, and cost nothing when it broke off before', async () => {
  const w = await world();
  const journal = await w.open();
  const rounds = { earlierNanoUsd: 0n, earlierTokens: 0n };
  const calls: AttemptEnd = { ...end, finishReason: 'tool_calls', callsOnly: true };
  for (const id of ['answered', 'between', 'within']) {
    await journal.start({ ...start(id), rounds });
    await journal.end(id, 1, calls);
  }
  for (const id of ['answered', 'within']) await journal.start({ ...start(id), attempt: 2, rounds });
  await journal.end('answered', 2, end);
  await journal.flush();
  await journal.close();
  const successor = await w.open();
  const recovered = successor.recover();
  await w.clock.advanceAsync(3_000);
  await recovered;
  expect([...outcomesIn(w.usage)].sort()).toEqual(['answered DELIVERED false', 'answered DELIVERED false', 'between DISCARDED false', 'within DISCARDED false', 'within DISCARDED false']);
  await successor.close();
});

test('a prompt that is owed is charged, with the rounds before it, where the process died before it could write that down', async () => {
  const w = await world();
  const journal = await w.open();
  const unbegun: AttemptEnd = { ...end, tokens: { ...NO_TOKENS, inputUncached: 7 }, source: 'ESTIMATED', status: 0, finishReason: 'error' };
  await journal.start(start('owed'));
  await journal.end('owed', 1, { ...unbegun, flags: ['estimated'] });
  await journal.start(start('lost'));
  await journal.end('lost', 1, { ...unbegun, tokens: NO_TOKENS, costNanoUsd: asNanoUsd(0n) });
  // Its answer had begun, and nothing tells a link that broke from a client that left.
  await journal.start(start('begun'));
  await journal.end('begun', 1, { ...unbegun, flags: ['estimated'], status: 200 });
  const rounds = { earlierNanoUsd: 0n, earlierTokens: 0n };
  await journal.start({ ...start('rounds'), rounds });
  await journal.end('rounds', 1, { ...end, finishReason: 'tool_calls', callsOnly: true });
  await journal.start({ ...start('rounds'), attempt: 2, rounds: { earlierNanoUsd: 7n, earlierTokens: 7n } });
  await journal.end('rounds', 2, { ...unbegun, flags: ['estimated'] });
  await journal.close();
  const successor = await w.open();
  const recovered = successor.recover();
  await w.clock.advanceAsync(3_000);
  await recovered;
  expect([...outcomesIn(w.usage)].sort()).toEqual(['begun DISCARDED false', 'lost DISCARDED false', 'owed DELIVERED false', 'rounds DELIVERED false', 'rounds DELIVERED false']);
  expect(w.finished).toContainEqual(expect.objectContaining({ requestId: 'owed', chargeNanoUsd: '7', tokens: '7' }));
  await successor.close();
});

test('after the status, too, its log says whose client left: that one owes the prompt, and the round that called tools', async () => {
  const w = await world();
  const journal = await w.open();
  const begun: AttemptEnd = { ...end, tokens: { ...NO_TOKENS, inputUncached: 7 }, source: 'ESTIMATED', flags: ['estimated'], finishReason: 'error' };
  await journal.start(start('left'));
  await journal.end('left', 1, { ...begun, clientLeft: true });
  // Cut off by edge, or its link broke.
  await journal.start(start('lost'));
  await journal.end('lost', 1, begun);
  const rounds = { earlierNanoUsd: 0n, earlierTokens: 0n };
  await journal.start({ ...start('rounds'), rounds });
  await journal.end('rounds', 1, { ...end, finishReason: 'tool_calls', callsOnly: true });
  await journal.start({ ...start('rounds'), attempt: 2, rounds: { earlierNanoUsd: 7n, earlierTokens: 7n } });
  await journal.end('rounds', 2, { ...end, finishReason: 'tool_calls', callsOnly: true, clientLeft: true });
  await journal.close();
  const successor = await w.open();
  const recovered = successor.recover();
  await w.clock.advanceAsync(3_000);
  await recovered;
  expect([...outcomesIn(w.usage)].sort()).toEqual(['left DELIVERED false', 'lost DISCARDED false', 'rounds DELIVERED false', 'rounds DELIVERED false']);
  await successor.close();
});

test('that a client left stands in the end: the word of it need not be waited for', async () => {
  const w = await world();
  const journal = await w.open();
  const begun: AttemptEnd = { ...end, tokens: { ...NO_TOKENS, inputUncached: 7 }, source: 'ESTIMATED', flags: ['estimated'], finishReason: 'error' };
  await journal.start(start('left'));
  await journal.end('left', 1, { ...begun, clientLeft: true });
  await journal.start(start('cut off'));
  await journal.end('cut off', 1, begun);
  expect(journal.outcome('left', 1, 'DELIVERED', true)).toBeUndefined();
  await expect(journal.outcome('cut off', 1, 'DELIVERED', true)).resolves.toBeUndefined();
  await w.clock.advanceAsync(3_000);
  expect([...outcomesIn(w.usage)].sort()).toEqual(['cut off DELIVERED true', 'left DELIVERED true']);
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
  appendFileSync(listSegments(w.directory).at(-1)?.path ?? '', frame(FRAME.end, 3, Buffer.alloc(100)).subarray(0, 60));
  const successor = await w.open();
  await w.clock.advanceAsync(3_000);
  expect(successor.state().writer).toBe(journal.state().writer);
  const ended = w.usage.flatMap((event) => event.ended);
  expect(ended).toMatchObject([{ requestId: 'r1', source: 'ORPHAN', costNanoUsd: '12' }, { requestId: 'r2', source: 'ORPHAN', costNanoUsd: '0' }]);
  expect(outcomesIn(w.usage)).toEqual([]);
  const recovered = successor.recover();
  await w.clock.advanceAsync(3_000);
  await recovered;
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED false', 'r2 DISCARDED false']);
  await successor.close();
});

test('an end with other cards than its start is booked, and read back, with those', async () => {
  const w = await world();
  const journal = await w.open();
  const begun = start('r1');
  const cards = { card: { ...begun.card, id: 'card_2', outputText: '5000000' }, referenceCard: { ...begun.card, id: 'list_2' } };
  await journal.start(begun);
  await journal.start(start('r2'));
  await journal.end('r1', 1, { ...end, cards });
  await journal.end('r2', 1, end);
  await journal.flush();
  await journal.close();
  const successor = await w.open();
  await w.clock.advanceAsync(3_000);
  expect(w.usage.flatMap((event) => event.ended)).toMatchObject([{ requestId: 'r1', ...cards }, { requestId: 'r2', card: begun.card }]);
  await successor.close();
});

test('after a restart edge has 30 s to tell of an attempt, whose hold stays in use until then', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.start(start('r2'));
  await journal.close();
  const successor = await w.open();
  await w.clock.advanceAsync(29_000);
  expect(w.finished).toEqual([]);
  expect(w.alive).toEqual(['r1', 'r2', 'r1', 'r2', 'r1', 'r2']);
  void successor.outcome('r1', 1, 'SUPERSEDED', true);
  await w.clock.advanceAsync(4_000);
  expect(outcomesIn(w.usage)).toEqual(['r1 SUPERSEDED true', 'r2 DISCARDED false']);
  expect(w.finished).toMatchObject([{ requestId: 'r2', chargeNanoUsd: '0' }]);
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

test('one damaged record costs no other: what stands before and after it is read', async () => {
  const w = await world();
  const journal = await w.open();
  w.bus.setConnected(false);
  for (const id of ['r1', 'r2', 'r3']) {
    await journal.start(start(id));
    await journal.end(id, 1, end);
  }
  await journal.close();
  const path = listSegments(w.directory).at(-1)?.path ?? '';
  const bytes = readFileSync(path);
  // The second time that r2 stands there is its end.
  const at = bytes.indexOf('r2', bytes.indexOf('r2') + 1);
  bytes[at] = 0;
  writeFileSync(path, bytes);
  w.bus.setConnected(true);
  const successor = await w.open();
  await w.clock.advanceAsync(3_000);
  expect(w.usage.flatMap((event) => event.ended).map(({ requestId, source }) => `${requestId} ${source}`).sort()).toEqual(['r1 PROVIDER', 'r2 ORPHAN', 'r3 PROVIDER']);
  await successor.close();
});

test('a long request is kept alive until its outcome, a short one needs no heartbeat', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('short'));
  await journal.end('short', 1, end);
  void journal.outcome('short', 1, 'DELIVERED', true);
  await journal.start(start('long'));
  await w.clock.advanceAsync(10_100);
  expect(w.alive).toEqual(['long', 'long']);
  await journal.end('long', 1, end);
  void journal.outcome('long', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(10_100);
  expect(w.alive).toHaveLength(2);
  expect(w.finished).toHaveLength(2);
  await journal.close();
});

test('an answer that nobody was there for is concluded to be free, also by a successor, unless edge says otherwise', async () => {
  const w = await world();
  const journal = await w.open();
  for (const id of ['r1', 'r2']) {
    await journal.start(start(id));
    await journal.end(id, 1, { ...end, undelivered: true });
  }
  await w.clock.advanceAsync(31_500);
  expect(outcomesIn(w.usage)).toEqual(['r1 DISCARDED false', 'r2 DISCARDED false']);
  void journal.outcome('r2', 1, 'DELIVERED', true);
  await journal.start(start('r3'));
  await journal.end('r3', 1, { ...end, undelivered: true });
  await w.clock.advanceAsync(3_000);
  await journal.close();
  const successor = await w.open();
  const recovered = successor.recover();
  await w.clock.advanceAsync(3_000);
  await recovered;
  expect(outcomesIn(w.usage).slice(2)).toEqual(['r2 DELIVERED true', 'r3 DISCARDED false']);
  await successor.close();
});

test('an attempt that edge says nothing of is concluded after 30 s, and not before', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, end);
  await w.clock.advanceAsync(29_900);
  expect(outcomesIn(w.usage)).toEqual([]);
  await w.clock.advanceAsync(1_500);
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED false']);
  expect(w.finished).toMatchObject([{ requestId: 'r1', chargeNanoUsd: '7' }]);
  await journal.close();
});

test('rounds of a request are concluded 30 s after edge tended them last, and after 10 minutes where it never did', async () => {
  const w = await world();
  const journal = await w.open();
  const rounds = { earlierNanoUsd: 0n, earlierTokens: 0n };
  for (const id of ['tended', 'untended']) {
    await journal.start({ ...start(id), rounds });
    await journal.end(id, 1, end);
  }
  for (let i = 0; i < 5; i += 1) {
    journal.tend('tended', 1);
    await w.clock.advanceAsync(20_000);
  }
  expect(outcomesIn(w.usage)).toEqual([]);
  // Edge has died.
  await w.clock.advanceAsync(12_000);
  expect(outcomesIn(w.usage)).toEqual(['tended DELIVERED false']);
  await w.clock.advanceAsync(480_000);
  expect(outcomesIn(w.usage)).toHaveLength(1);
  await w.clock.advanceAsync(12_000);
  expect(outcomesIn(w.usage)).toEqual(['tended DELIVERED false', 'untended DELIVERED false']);
  // Another log may have more of them: what the ledger has of all ends the hold.
  expect(w.finished).toEqual([]);
  await journal.close();
});

test.each([false, true])('the word of edge still counts after the worker concluded without it (restarted: %s)', async (isRestarted) => {
  const w = await world();
  let journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, end);
  await w.clock.advanceAsync(32_000);
  if (isRestarted) {
    await journal.close();
    journal = await w.open();
    await w.clock.advanceAsync(100);
  }
  void journal.outcome('r1', 1, 'DISCARDED', true);
  void journal.outcome('r1', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(2_000);
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED false', 'r1 DISCARDED true']);
  expect(w.finished).toMatchObject([{ chargeNanoUsd: '7' }, { chargeNanoUsd: '0', tokens: '0' }]);
  expect(journal.state()).toMatchObject({ lastSeq: 4, ledgerSeq: 4 });
  await journal.close();
});

test('the word of edge is written down after the worker concluded the same: the ledger counts it more', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, end);
  await w.clock.advanceAsync(32_000);
  for (let times = 0; times < 2; times += 1) {
    void journal.outcome('r1', 1, 'DELIVERED', true);
    await w.clock.advanceAsync(2_000);
  }
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED false', 'r1 DELIVERED true']);
  expect(journal.state()).toMatchObject({ lastSeq: 4, ledgerSeq: 4 });
  await journal.close();
});

test('what edge tells of a dead process is kept until billing knows its successor', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  journal.checkpoint('r1', 1, { ...NO_TOKENS, outputText: 5 });
  await journal.close();
  w.connection.isBillingUp = false;
  const successor = await w.open();
  void successor.outcome('r1', 1, 'SUPERSEDED', true);
  await w.clock.advanceAsync(1_000);
  w.connection.isBillingUp = true;
  await w.clock.advanceAsync(8_000);
  expect(w.usage.flatMap((event) => event.ended)).toMatchObject([{ requestId: 'r1', source: 'ORPHAN', costNanoUsd: '12' }]);
  expect(outcomesIn(w.usage)).toEqual(['r1 SUPERSEDED true']);
  await successor.close();
});

test('edge is not told that its word was heard before a kill cannot lose it', async () => {
  const w = await world();
  const journal = await w.open();
  for (const requestId of ['ended', 'early', 'foreseen']) await journal.start(start(requestId));
  for (const requestId of ['ended', 'foreseen']) await journal.end(requestId, 1, end);
  for (const requestId of ['ended', 'early']) {
    const before = readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length;
    const telling = journal.outcome(requestId, 1, 'DISCARDED', true);
    expect(readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length).toBe(before);
    await telling;
    expect(readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length).toBeGreaterThan(before);
    // Told again: heard, and nothing is written twice.
    await journal.outcome(requestId, 1, 'DISCARDED', true);
  }
  // Whoever reads the log after a kill concludes it by himself.
  expect(journal.outcome('foreseen', 1, 'DELIVERED', true)).toBeUndefined();
  await journal.close();
});

test('that an answer kept in reserve was given is known from edge alone: its word is heard once it is written', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, end);
  const before = readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length;
  const telling = journal.outcome('r1', 1, 'DELIVERED', true, { isReserve: true });
  expect(telling).toBeInstanceOf(Promise);
  await telling;
  expect(readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length).toBeGreaterThan(before);
  await journal.close();
});

test.each([
  ['that an attempt is not charged', false, 'DISCARDED' as const], ['that a round of calls was answered', true, 'DELIVERED' as const],
])('%s is heard by the successor of a dead process once billing knows it', async (_case, callsOnly, outcome) => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, { ...end, callsOnly });
  await journal.close();
  w.connection.isBillingUp = false;
  const successor = await w.open();
  let isHeard = false;
  void successor.outcome('r1', 1, outcome, true)?.then(() => (isHeard = true));
  await w.clock.advanceAsync(1_000);
  // A kill now would lose it.
  expect(isHeard).toBe(false);
  w.connection.isBillingUp = true;
  await w.clock.advanceAsync(8_000);
  expect([isHeard, outcomesIn(w.usage)]).toEqual([true, [`r1 ${outcome} true`]]);
  await successor.close();
});

test('an outcome that came before the end survives a kill between both', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  void journal.outcome('r1', 1, 'DISCARDED', true);
  await journal.end('r1', 1, end);
  // As a kill leaves it: the end is written, what follows from it is not.
  const { path } = listSegments(w.directory).at(-1) ?? { path: '' };
  const kept: Buffer[] = [];
  let hasEnded = false;
  readFrames(readFileSync(path), ({ kind, seq, payload }) => {
    if (!hasEnded) kept.push(Buffer.from(frame(kind as FrameKind, seq, payload)));
    hasEnded ||= kind === FRAME.end;
  });
  await journal.close();
  writeFileSync(path, Buffer.concat(kept));
  const successor = await w.open();
  await w.clock.advanceAsync(3_000);
  expect(w.usage.flatMap((event) => event.outcomes).map(({ outcome, toldByEdge }) => ({ outcome, toldByEdge }))).not.toContainEqual(expect.objectContaining({ outcome: 'DELIVERED' }));
  expect(w.finished).not.toContainEqual(expect.objectContaining({ chargeNanoUsd: '7' }));
  await successor.close();
});

test('a ledger that went back is sent its records again, though the bus remembers that it had them', async () => {
  const w = await world();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, end);
  void journal.outcome('r1', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(3_000);
  w.restoreLedger();
  await w.clock.advanceAsync(20_000);
  expect(w.usage.flatMap((event) => event.ended).map(({ requestId }) => requestId)).toEqual(['r1', 'r1']);
  expect(journal.state().ledgerSeq).toBe(3);
  await journal.close();
});

test('a new life of the counters is told all that is under way and all that the ledger does not have, also by a successor', async () => {
  const w = await world();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  expect(w.told).toMatchObject([{ epoch: 'life 1', live: [], finished: [], last: true }]);
  w.bus.setConnected(false);
  await journal.start({ ...start('done'), held: { amountNanoUsd: '90', tokens: '9' } });
  await journal.end('done', 1, end);
  void journal.outcome('done', 1, 'DELIVERED', true);
  await journal.start({ ...start('live'), held: { amountNanoUsd: '80', tokens: '8' }, holdEpoch: 'life 1' });
  w.store.epoch = 'life 2';
  await w.clock.advanceAsync(2_500);
  expect(w.told[1]).toMatchObject({ epoch: 'life 2', live: [{ requestId: 'live', amountNanoUsd: '80', tokens: '8', started: true }], finished: [{ requestId: 'done', chargeNanoUsd: '7' }], last: true });
  await journal.close();
  const successor = await w.open();
  await w.clock.advanceAsync(100);
  expect(w.told[2]).toMatchObject({ epoch: 'life 2', live: [{ requestId: 'live', amountNanoUsd: '0' }], finished: [{ requestId: 'done' }], last: true });
  await successor.close();
});

test('of a request in rounds a successor tells a new life of the counters what the rounds before are charged, too', async () => {
  const w = await world();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  await journal.start({ ...start('r1'), rounds: { earlierNanoUsd: 0n, earlierTokens: 0n } });
  await journal.end('r1', 1, { ...end, callsOnly: true });
  await journal.start({ ...start('r1'), attempt: 2, rounds: { earlierNanoUsd: 7n, earlierTokens: 7n } });
  await journal.end('r1', 2, end);
  await journal.close();
  w.store.epoch = 'life 2';
  const successor = await w.open();
  await w.clock.advanceAsync(100);
  // One hold, as large as the largest that is told.
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 2', live: [{ requestId: 'r1', amountNanoUsd: '7', tokens: '7' }, { requestId: 'r1', amountNanoUsd: '14', tokens: '14' }] });
  await successor.close();
});

test('a new life of the counters is not told that a round was given up here: another log may have one that is under way', async () => {
  const w = await world();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  w.bus.setConnected(false);
  const rounds = { earlierNanoUsd: 0n, earlierTokens: 0n };
  await journal.start({ ...start('called'), rounds });
  await journal.end('called', 1, { ...end, finishReason: 'tool_calls', callsOnly: true });
  await journal.start({ ...start('answered'), rounds });
  await journal.end('answered', 1, end);
  await w.clock.advanceAsync(602_000);
  w.store.epoch = 'life 2';
  await w.clock.advanceAsync(2_500);
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 2', live: [], finished: [{ requestId: 'answered', chargeNanoUsd: '7' }] });
  await journal.close();
  w.store.epoch = 'life 3';
  const successor = await w.open();
  await w.clock.advanceAsync(2_500);
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 3', live: [], finished: [{ requestId: 'answered' }] });
  await successor.close();
});

test('counters that hold a request are told that it lives, and of no amount: it may be larger than their limits leave', async () => {
  const w = await world();
  w.store.repliesToLose = 1;
  const journal = await w.open();
  await journal.start({ ...start('here'), held: { amountNanoUsd: '80', tokens: '8' }, holdEpoch: 'life 1' });
  await journal.start({ ...start('unlimited'), held: { amountNanoUsd: '70', tokens: '7' } });
  await w.clock.advanceAsync(4_500);
  expect(w.told[1]).toMatchObject({ epoch: 'life 1', live: [{ requestId: 'here', amountNanoUsd: '0', tokens: '0', started: true }, { requestId: 'unlimited', amountNanoUsd: '70', tokens: '7' }] });
  w.store.epoch = 'life 2';
  await w.clock.advanceAsync(2_500);
  expect(w.told[2]).toMatchObject({ epoch: 'life 2', live: [{ requestId: 'here', amountNanoUsd: '80', tokens: '8' }, { requestId: 'unlimited' }] });
  await journal.close();
});

test('what no limit watched and quota does not hold is told to it as soon as it says so, and again; what a limit watched is not', async () => {
  const w = await world();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  await journal.start({ ...start('here'), held: { amountNanoUsd: '80', tokens: '8' }, holdEpoch: 'life 1' });
  await journal.start({ ...start('unlimited'), held: { amountNanoUsd: '70', tokens: '7' } });
  await journal.start({ ...start('held'), held: { amountNanoUsd: '60', tokens: '6' } });
  const before = w.told.length;
  w.store.unheld = ['here', 'unlimited'];
  await w.clock.advanceAsync(300);
  const told = { epoch: 'life 1', live: [{ requestId: 'unlimited', amountNanoUsd: '70', tokens: '7', started: true }], finished: [], last: false };
  expect(w.told.slice(before)).toMatchObject([told]);
  await w.clock.advanceAsync(10_000);
  expect(w.told.slice(before + 1)).toMatchObject([told]);
  w.store.unheld = [];
  await journal.close();
});

test('an attempt that edge gave up before it came does not start', async () => {
  const w = await world();
  const journal = await w.open();
  expect(journal.outcome('r1', 1, 'DISCARDED', true)).toBeUndefined();
  await expect(journal.start(start('r1'))).rejects.toMatchObject({ code: 'cancelled' });
  await expect(journal.start({ ...start('r1'), attempt: 2 })).resolves.toBeUndefined();
  await journal.close();
});

test('what was held in an earlier life of the counters does not start, nor a retry whose hold is gone', async () => {
  const w = await world();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  await expect(journal.start({ ...start('r1'), holdEpoch: 'life 0' })).rejects.toThrow(/^quota_unavailable/);
  await journal.start({ ...start('r2'), attempt: 2, holdEpoch: 'life 1' });
  w.store.unheld = ['r3'];
  await expect(journal.start({ ...start('r3'), attempt: 2, holdEpoch: 'life 1' })).rejects.toThrow(/^quota_unavailable/);
  await journal.start({ ...start('r4'), holdEpoch: '' });
  expect(journal.state().lastSeq).toBe(2);
  await journal.close();
});

test('where the clock of this host is behind, what waited longer than its lease does not start unheld, and the others do not pay for it', async () => {
  const w = await world();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  const startAt = (requestId: string, agoMs: number) => ({ ...start(requestId), periods: { ...start(requestId).periods, reservedAtMs: String(w.clock.nowMs() + 20_000 - agoMs) }, holdEpoch: 'life 1' });
  await journal.start(startAt('first', 0));
  w.store.unheld = ['fresh', 'late'];
  // Known to be held by its age alone: quota is not asked.
  await journal.start(startAt('fresh', 1));
  await expect(journal.start(startAt('late', 32_000))).rejects.toThrow(/^quota_unavailable/);
  expect(journal.state().lastSeq).toBe(2);
  await journal.close();
});
