import { expect, test } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { asNanoUsd } from '@signalbox/kernel/money';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import type { AttemptEnd } from './journal.js';
import { CALLS_END, END, FIRST_ROUND, frame, journalRig, outcomesIn, SECOND_ROUND, start } from './testing/journal-rig.js';
import { FRAME, readFrames, type FrameKind } from './wal-frame.js';
import { listSegments } from './wal-segment.js';

/** Broke off after the status arrived; estimated by us. */
const begun: AttemptEnd = { ...END, tokens: { ...NO_TOKENS, inputUncached: 7 }, source: 'ESTIMATED', flags: ['estimated'], finishReason: 'error' };
/** Broke off before; the prompt is owed if it is flagged as estimated. */
const unbegun: AttemptEnd = { ...begun, flags: [], status: 0 };

test('a prompt that is owed is charged, with the earlier rounds, even if the process died before it could write the outcome', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('owed'));
  await journal.end('owed', 1, { ...unbegun, flags: ['estimated'] });
  await journal.start(start('lost'));
  await journal.end('lost', 1, { ...unbegun, tokens: NO_TOKENS, costNanoUsd: asNanoUsd(0n) });
  // The answer had begun, and the record does not distinguish a broken link from a client that left.
  await journal.start(start('begun'));
  await journal.end('begun', 1, { ...unbegun, flags: ['estimated'], status: 200 });
  await journal.start({ ...start('rounds'), rounds: FIRST_ROUND });
  await journal.end('rounds', 1, CALLS_END);
  await journal.start({ ...start('rounds'), attempt: 2, rounds: SECOND_ROUND });
  await journal.end('rounds', 2, { ...unbegun, flags: ['estimated'] });
  await journal.close();
  const successor = await w.open();
  await w.recover(successor);
  expect([...outcomesIn(w.usage)].sort()).toEqual(['begun DISCARDED false', 'lost DISCARDED false', 'owed DELIVERED false', 'rounds DELIVERED false', 'rounds DELIVERED false']);
  expect(w.finished).toContainEqual(expect.objectContaining({ requestId: 'owed', chargeNanoUsd: '7', tokens: '7' }));
  await successor.close();
});

test('after the status, too, the log says whether the client left: then the prompt is owed, and so is a round of tool calls', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('left'));
  await journal.end('left', 1, { ...begun, clientLeft: true });
  // Cut off by edge, or the link broke.
  await journal.start(start('lost'));
  await journal.end('lost', 1, begun);
  await journal.start({ ...start('rounds'), rounds: FIRST_ROUND });
  await journal.end('rounds', 1, CALLS_END);
  await journal.start({ ...start('rounds'), attempt: 2, rounds: SECOND_ROUND });
  await journal.end('rounds', 2, { ...CALLS_END, clientLeft: true });
  await journal.close();
  const successor = await w.open();
  await w.recover(successor);
  expect([...outcomesIn(w.usage)].sort()).toEqual(['left DELIVERED false', 'lost DISCARDED false', 'rounds DELIVERED false', 'rounds DELIVERED false']);
  await successor.close();
});

test('the end record says that the client left, so the outcome need not be awaited', async () => {
  const w = await journalRig();
  const journal = await w.open();
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

test('after a restart edge has 30 s to tell of an attempt, whose hold stays in use until then', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  await journal.start(w.startOf('r1'));
  await journal.start(w.startOf('r2'));
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

test('an answer that could not be handed over is concluded to be free, also after a restart, unless edge says otherwise', async () => {
  const w = await journalRig();
  const journal = await w.open();
  for (const id of ['r1', 'r2']) {
    await journal.start(start(id));
    await journal.end(id, 1, { ...END, undelivered: true });
  }
  await w.clock.advanceAsync(31_500);
  expect(outcomesIn(w.usage)).toEqual(['r1 DISCARDED false', 'r2 DISCARDED false']);
  void journal.outcome('r2', 1, 'DELIVERED', true);
  await journal.start(start('r3'));
  await journal.end('r3', 1, { ...END, undelivered: true });
  await w.clock.advanceAsync(3_000);
  await journal.close();
  const successor = await w.open();
  await w.recover(successor);
  expect(outcomesIn(w.usage).slice(2)).toEqual(['r2 DELIVERED true', 'r3 DISCARDED false']);
  await successor.close();
});

test('an attempt that edge tells nothing about is concluded after 30 s, and not before', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, END);
  await w.clock.advanceAsync(29_900);
  expect(outcomesIn(w.usage)).toEqual([]);
  await w.clock.advanceAsync(1_500);
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED false']);
  expect(w.finished).toMatchObject([{ requestId: 'r1', chargeNanoUsd: '7' }]);
  await journal.close();
});

test.each([false, true])('an outcome from edge still counts after the worker has concluded one (restarted: %s)', async (isRestarted) => {
  const w = await journalRig();
  let journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, END);
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

test('an outcome from edge is written even if the worker concluded the same, since it counts more in the ledger', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, END);
  await w.clock.advanceAsync(32_000);
  for (let times = 0; times < 2; times += 1) {
    void journal.outcome('r1', 1, 'DELIVERED', true);
    await w.clock.advanceAsync(2_000);
  }
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED false', 'r1 DELIVERED true']);
  expect(journal.state()).toMatchObject({ lastSeq: 4, ledgerSeq: 4 });
  await journal.close();
});

test('an outcome that edge tells for a dead process is kept until billing knows its successor', async () => {
  const w = await journalRig();
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

test('an outcome is not acknowledged to edge before a kill cannot lose it', async () => {
  const w = await journalRig();
  const journal = await w.open();
  for (const requestId of ['ended', 'early', 'foreseen']) await journal.start(start(requestId));
  for (const requestId of ['ended', 'foreseen']) await journal.end(requestId, 1, END);
  for (const requestId of ['ended', 'early']) {
    const before = readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length;
    const telling = journal.outcome(requestId, 1, 'DISCARDED', true);
    expect(readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length).toBe(before);
    await telling;
    expect(readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length).toBeGreaterThan(before);
    // Told again: acknowledged, and nothing is written twice.
    await journal.outcome(requestId, 1, 'DISCARDED', true);
  }
  // After a kill the same outcome would be concluded from the log.
  expect(journal.outcome('foreseen', 1, 'DELIVERED', true)).toBeUndefined();
  await journal.close();
});

test('only edge knows that an answer kept in reserve was given, so its outcome is acknowledged once it is written', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, END);
  const before = readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length;
  const telling = journal.outcome('r1', 1, 'DELIVERED', true, { isReserve: true });
  expect(telling).toBeInstanceOf(Promise);
  await telling;
  expect(readFileSync(listSegments(w.directory).at(-1)?.path ?? '').length).toBeGreaterThan(before);
  await journal.close();
});

test.each<[string, boolean, AttemptEnd, string]>([
  ['is not charged if a complete answer is kept in reserve', false, END, '2 DISCARDED'],
  ['is charged once edge has said that it is given instead of that one', true, END, '2 DELIVERED'],
  ['is charged after one that broke off', false, { ...END, finishReason: 'error' }, '2 DELIVERED'],
])('the part of an answer that a dead worker had %s', async (_case, isGiven, first, outcome) => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, first);
  await journal.start({ ...start('r1'), attempt: 2, retryOf: [1] });
  journal.checkpoint('r1', 2, { ...NO_TOKENS, outputText: 9 });
  if (isGiven) await journal.outcome('r1', 1, 'SUPERSEDED', true, { isReserve: true });
  await journal.close();
  const successor = await w.open();
  await w.recover(successor);
  expect(w.usage.flatMap(({ outcomes }) => outcomes).map((told) => `${told.attempt} ${told.outcome}`)).toContain(outcome);
  await successor.close();
});

test.each([
  ['that an attempt is not charged', false, 'DISCARDED' as const], ['that a round of calls was answered', true, 'DELIVERED' as const],
])('%s is accepted by the successor of a dead process once billing knows it', async (_case, callsOnly, outcome) => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('r1'));
  await journal.end('r1', 1, { ...END, callsOnly });
  await journal.close();
  w.connection.isBillingUp = false;
  const successor = await w.open();
  let isHeard = false;
  void successor.outcome('r1', 1, outcome, true)?.then(() => (isHeard = true));
  await w.clock.advanceAsync(1_000);
  // A kill now would lose the outcome.
  expect(isHeard).toBe(false);
  w.connection.isBillingUp = true;
  await w.clock.advanceAsync(8_000);
  expect([isHeard, outcomesIn(w.usage)]).toEqual([true, [`r1 ${outcome} true`]]);
  await successor.close();
});

test('an outcome that came before the end survives a kill between both', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start(start('r1'));
  void journal.outcome('r1', 1, 'DISCARDED', true);
  await journal.end('r1', 1, END);
  // As after a kill: the end is written, but not the outcome.
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

test('an attempt that edge gave up before it arrived does not start', async () => {
  const w = await journalRig();
  const journal = await w.open();
  expect(journal.outcome('r1', 1, 'DISCARDED', true)).toBeUndefined();
  await expect(journal.start(start('r1'))).rejects.toMatchObject({ code: 'cancelled' });
  await expect(journal.start({ ...start('r1'), attempt: 2 })).resolves.toBeUndefined();
  await journal.close();
});
