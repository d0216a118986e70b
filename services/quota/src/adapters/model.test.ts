import { afterAll, expect, test } from '@jest/globals';
import { stopTestStores } from '@signalbox/testkit/stores';
import { compareModel } from '../testing/model.js';

test.each([
  ['each of 2,000 random commands', false],
  ['each turn of 2,000 random commands that are told several at once', true],
])('scripts and the pure state machine agree after %s', async (_, isGathered) => {
  const { commands, decisions, missed, freed, granted, confirmed, drawn } = await compareModel(20, 100, isGathered);
  expect(commands).toBe(2_000);
  expect(decisions).toEqual(['admitted', 'blocked', 'burst', 'ended', 'rate', 'wall']);
  expect([missed.size, freed.size, granted.size, confirmed.size]).toEqual([2, 2, 2, 2]);
  expect([...drawn].sort()).toEqual(['all', 'late', 'nothing', 'over', 'part']);
}, 60_000);

afterAll(async () => {
  await stopTestStores();
});
