import { expect, test } from '@jest/globals';
import { CALLS_END, END, FIRST_ROUND, journalRig, outcomesIn, SECOND_ROUND, start } from './testing/journal-rig.js';

test('rounds of one request end its hold together: the last one tells quota the sum, the earlier ones tell nothing', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start({ ...start('r1'), rounds: FIRST_ROUND });
  await journal.end('r1', 1, END);
  await journal.start({ ...start('r1'), attempt: 2, rounds: SECOND_ROUND });
  await journal.end('r1', 2, END);
  // Longer than the wait for an ordinary attempt.
  await w.clock.advanceAsync(60_000);
  expect(outcomesIn(w.usage)).toEqual([]);
  void journal.outcome('r1', 1, 'DELIVERED', true, { isFollowed: true });
  void journal.outcome('r1', 2, 'DELIVERED', true);
  await w.clock.advanceAsync(3_000);
  expect(outcomesIn(w.usage)).toEqual(['r1 DELIVERED true', 'r1 DELIVERED true']);
  expect(w.finished).toMatchObject([{ requestId: 'r1', chargeNanoUsd: '14', tokens: '14' }]);
  await journal.close();
});

test('rounds that edge tells together reach the ledger together, however lately others were sent', async () => {
  const w = await journalRig();
  const journal = await w.open();
  const ids = Array.from({ length: 40 }, (_, n) => `r${n}`);
  for (const id of ids) {
    await journal.start({ ...start(id), rounds: FIRST_ROUND });
    await journal.end(id, 1, CALLS_END);
    await journal.start({ ...start(id), attempt: 2, rounds: SECOND_ROUND });
    await journal.end(id, 2, END);
  }
  // Told at all distances from what is sent every 300 ms.
  for (const id of ids) {
    void journal.outcome(id, 1, 'DELIVERED', true, { isFollowed: true });
    void journal.outcome(id, 2, 'DELIVERED', true);
    await w.clock.advanceAsync(23);
  }
  await w.clock.advanceAsync(3_000);
  const messages = w.usage.map((event) => event.outcomes.map(({ requestId, attempt }) => `${requestId} ${attempt}`)).filter((told) => told.length > 0);
  expect(messages.flat().sort()).toEqual(ids.flatMap((id) => [`${id} 1`, `${id} 2`]).sort());
  expect(messages.length).toBeGreaterThan(1);
  for (const told of messages) expect(told.length % 2).toBe(0);
  await journal.close();
});

test.each([true, false])('after a kill, the hold of a request in rounds ends with the sum if edge names the last round, else by the ledger (edge alive: %s)', async (edgeLives) => {
  const w = await journalRig();
  const journal = await w.open();
  await journal.start({ ...start('r1'), rounds: FIRST_ROUND });
  await journal.end('r1', 1, END);
  await journal.start({ ...start('r1'), attempt: 2, rounds: SECOND_ROUND });
  await journal.end('r1', 2, END);
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

test('rounds of a process that died are charged if the last one answered, and cost nothing if it broke off before', async () => {
  const w = await journalRig();
  const journal = await w.open();
  for (const id of ['answered', 'between', 'within']) {
    await journal.start({ ...start(id), rounds: FIRST_ROUND });
    await journal.end(id, 1, CALLS_END);
  }
  for (const id of ['answered', 'within']) await journal.start({ ...start(id), attempt: 2, rounds: SECOND_ROUND });
  await journal.end('answered', 2, END);
  await journal.flush();
  await journal.close();
  const successor = await w.open();
  await w.recover(successor);
  expect([...outcomesIn(w.usage)].sort()).toEqual(['answered DELIVERED false', 'answered DELIVERED false', 'between DISCARDED false', 'within DISCARDED false', 'within DISCARDED false']);
  await successor.close();
});

test('rounds of a request are concluded 30 s after edge last tended them, and after 10 minutes if it never did', async () => {
  const w = await journalRig();
  const journal = await w.open();
  for (const id of ['tended', 'untended']) {
    await journal.start({ ...start(id), rounds: FIRST_ROUND });
    await journal.end(id, 1, END);
  }
  for (let i = 0; i < 5; i += 1) {
    journal.tend('tended', 1);
    await w.clock.advanceAsync(20_000);
  }
  expect(outcomesIn(w.usage)).toEqual([]);
  // Edge is dead.
  await w.clock.advanceAsync(12_000);
  expect(outcomesIn(w.usage)).toEqual(['tended DELIVERED false']);
  await w.clock.advanceAsync(480_000);
  expect(outcomesIn(w.usage)).toHaveLength(1);
  await w.clock.advanceAsync(12_000);
  expect(outcomesIn(w.usage)).toEqual(['tended DELIVERED false', 'untended DELIVERED false']);
  // Another log may have more rounds: the ledger's totals end the hold.
  expect(w.finished).toEqual([]);
  await journal.close();
});

test('after a restart, a new life of quota’s store is told the charge of the earlier rounds too', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  await journal.start({ ...start('r1'), rounds: FIRST_ROUND });
  await journal.end('r1', 1, { ...END, callsOnly: true });
  await journal.start({ ...start('r1'), attempt: 2, rounds: SECOND_ROUND });
  await journal.end('r1', 2, END);
  await journal.close();
  w.store.epoch = 'life 2';
  const successor = await w.open();
  await w.clock.advanceAsync(100);
  // One hold, as large as the largest one reported.
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 2', live: [{ requestId: 'r1', amountNanoUsd: '7', tokens: '7' }, { requestId: 'r1', amountNanoUsd: '14', tokens: '14' }] });
  await successor.close();
});

test.each([false, true])('a round that was concluded here is reported to a new life of the store as held, not as finished: another log may have more rounds (restarted: %s)', async (isRestarted) => {
  const w = await journalRig();
  let journal = await w.open();
  await w.clock.advanceAsync(100);
  w.bus.setConnected(false);
  await journal.start({ ...start('r1'), attempt: 2, rounds: { earlierNanoUsd: 5n, earlierTokens: 6n } });
  await journal.end('r1', 2, END);
  await journal.start({ ...start('told'), rounds: FIRST_ROUND });
  await journal.end('told', 1, END);
  void journal.outcome('told', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(602_000);
  expect(w.finished).toMatchObject([{ requestId: 'told' }]);
  if (isRestarted) {
    await journal.close();
    journal = await w.open();
  }
  w.store.epoch = 'life 2';
  await w.clock.advanceAsync(2_500);
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 2', live: [{ requestId: 'r1', amountNanoUsd: '12', tokens: '13', started: true }], finished: [{ requestId: 'told', chargeNanoUsd: '7' }], last: true });
  w.bus.setConnected(true);
  await w.clock.advanceAsync(40_000);
  w.store.epoch = 'life 3';
  await w.clock.advanceAsync(2_500);
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 3', live: [], finished: [] });
  await journal.close();
});

test('a new life of the store is not told of a round that was discarded here: another log may have one under way', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  w.bus.setConnected(false);
  await journal.start({ ...start('called'), rounds: FIRST_ROUND });
  await journal.end('called', 1, CALLS_END);
  await journal.start({ ...start('answered'), rounds: FIRST_ROUND });
  await journal.end('answered', 1, END);
  await w.clock.advanceAsync(602_000);
  w.store.epoch = 'life 2';
  await w.clock.advanceAsync(2_500);
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 2', live: [{ requestId: 'answered', amountNanoUsd: '7' }], finished: [] });
  await journal.close();
  w.store.epoch = 'life 3';
  const successor = await w.open();
  await w.clock.advanceAsync(2_500);
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 3', live: [{ requestId: 'answered', amountNanoUsd: '7' }], finished: [] });
  await successor.close();
});
