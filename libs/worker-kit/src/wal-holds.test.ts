import { expect, test } from '@jest/globals';
import { END, journalRig, start } from './testing/journal-rig.js';

test('a long request is kept alive until its outcome, a short one needs no heartbeat', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  await journal.start(w.startOf('short'));
  await journal.end('short', 1, END);
  void journal.outcome('short', 1, 'DELIVERED', true);
  await journal.start(w.startOf('long'));
  await w.clock.advanceAsync(10_100);
  expect(w.alive).toEqual(['long', 'long']);
  await journal.end('long', 1, END);
  void journal.outcome('long', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(10_100);
  expect(w.alive).toHaveLength(2);
  expect(w.finished).toHaveLength(2);
  await journal.close();
});

test('a new life of quota’s store is told all that is under way and all that the ledger does not have, also after a restart of the worker', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  expect(w.told).toMatchObject([{ epoch: 'life 1', live: [], finished: [], last: true }]);
  w.bus.setConnected(false);
  await journal.start({ ...start('done'), held: { amountNanoUsd: '90', tokens: '9' } });
  await journal.end('done', 1, END);
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

test('a store that holds a request is told that it lives but no amount, which might be more than its limits allow', async () => {
  const w = await journalRig();
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

test('a request that no limit watched is told to quota as soon as quota says that it has no hold, and again; one that a limit watched is not', async () => {
  const w = await journalRig();
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

test('a request that no limit watched and an earlier life of the store admitted is told to the present one before it starts; one that this life admitted starts at once', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  w.store.epoch = 'life 2';
  w.store.unheld = ['forgotten', 'second try'];
  await w.clock.advanceAsync(2_500);
  // Everything under way was reported, so limits apply from now on and would give others what this request takes unknown to them.
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 2', live: [], last: true });
  const held = { amountNanoUsd: '70', tokens: '7' };
  await journal.start({ ...w.startOf('forgotten', 3_000), held });
  const told = (requestId: string) => ({ epoch: 'life 2', live: [{ requestId, amountNanoUsd: '70', tokens: '7', started: true }], finished: [], last: false });
  expect(w.told.slice(2)).toMatchObject([told('forgotten')]);
  await journal.start({ ...w.startOf('second try', 3_000), attempt: 2, held });
  expect(w.told.slice(3)).toMatchObject([told('second try')]);
  expect(w.alive).toEqual(['forgotten', 'second try']);
  await journal.start({ ...w.startOf('present', 100), held });
  expect(w.alive).toHaveLength(2);
  await journal.close();
});

test('a request that no limit watched and that waited longer than its lease is told before it starts; a later attempt of one under way is not', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await w.clock.advanceAsync(60_000);
  w.store.unheld = ['late', 'later'];
  const before = w.told.length;
  await journal.start({ ...w.startOf('late', 31_000), held: { amountNanoUsd: '70', tokens: '7' } });
  expect(w.told.slice(before)).toMatchObject([{ live: [{ requestId: 'late', amountNanoUsd: '70', tokens: '7' }] }]);
  await journal.start({ ...w.startOf('later', 31_000), attempt: 2 });
  expect(w.alive).toEqual(['late']);
  await journal.close();
});

test('a request that no limit watched starts even if quota cannot be told, and its first heartbeat tells it', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  w.store.unheld = ['forgotten'];
  w.store.repliesToLose = 2;
  await journal.start({ ...w.startOf('forgotten', 3_000), held: { amountNanoUsd: '70', tokens: '7' } });
  expect(w.store.repliesToLose).toBe(0);
  const before = w.told.length;
  await w.clock.advanceAsync(300);
  expect(w.told.slice(before)).toMatchObject([{ live: [{ requestId: 'forgotten', amountNanoUsd: '70', tokens: '7' }] }]);
  await journal.close();
});

test('a request that was held in an earlier life of the store does not start, nor does a retry whose hold is gone', async () => {
  const w = await journalRig();
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

test('if the clock of this host is behind, a request that waited longer than its lease is confirmed first, and the others need not be', async () => {
  const w = await journalRig();
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  const startAt = (requestId: string, agoMs: number) => ({ ...start(requestId), periods: { ...start(requestId).periods, reservedAtMs: String(w.clock.nowMs() + 20_000 - agoMs) }, holdEpoch: 'life 1' });
  await journal.start(startAt('first', 0));
  w.store.unheld = ['fresh', 'late'];
  // Young enough to be held: quota is not asked.
  await journal.start(startAt('fresh', 1));
  await expect(journal.start(startAt('late', 32_000))).rejects.toThrow(/^quota_unavailable/);
  expect(journal.state().lastSeq).toBe(2);
  await journal.close();
});

test('quota is told the draw of a request from an advance with its heartbeats, its end, and after a loss', async () => {
  const w = await journalRig();
  const draw = { advanceId: 'adv_1', amountNanoUsd: '90', tokens: '9' };
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  await journal.start({ ...w.startOf('ended'), draw, holdEpoch: 'life 1' });
  await journal.start({ ...w.startOf('alive'), draw, holdEpoch: 'life 1' });
  await journal.end('ended', 1, END);
  void journal.outcome('ended', 1, 'DELIVERED', true);
  await w.clock.advanceAsync(400);
  expect(w.finished).toMatchObject([{ requestId: 'ended', chargeNanoUsd: '7', draw }]);
  expect(w.alive).toEqual(['alive']);
  w.store.epoch = 'life 2';
  await w.clock.advanceAsync(2_500);
  expect(w.told.at(-1)).toMatchObject({ epoch: 'life 2', live: [{ requestId: 'alive', draw }] });
  await journal.close();
});

test('the draw of a request from an advance is told before a worker stops, since the ledger would end the request without giving anything back', async () => {
  const w = await journalRig();
  const draw = { advanceId: 'adv_1', amountNanoUsd: '90', tokens: '9' };
  const journal = await w.open();
  await w.clock.advanceAsync(100);
  await journal.start({ ...w.startOf('ended'), draw, holdEpoch: 'life 1' });
  await journal.end('ended', 1, END);
  void journal.outcome('ended', 1, 'DELIVERED', true);
  await journal.close();
  expect(w.finished).toMatchObject([{ requestId: 'ended', draw }]);
});
