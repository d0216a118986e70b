import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createFakeAccounts } from '../testing/accounts.js';
import { createKeyUses } from './key-uses.js';

const START_SECONDS = 1_767_225_600;

function bench() {
  const clock = createFakeClock(START_SECONDS * 1_000);
  const accounts = createFakeAccounts();
  const uses = createKeyUses({ accounts, clock });
  uses.start();
  return { clock, uses, accounts };
}

test('uses are reported together after a few seconds, each key with its latest use', async () => {
  const { clock, uses, accounts } = bench();
  uses.note('key_1');
  await clock.advanceAsync(2_000);
  uses.note('key_1');
  uses.note('key_2');
  expect(accounts.touches).toEqual([]);
  await clock.advanceAsync(3_000);
  expect(accounts.touches).toEqual([{ key_1: START_SECONDS + 2, key_2: START_SECONDS + 2 }]);
});

test('a busy key is reported once a minute, an idle one not at all, and neither is remembered without end', async () => {
  const { clock, uses, accounts } = bench();
  for (let second = 0; second < 125; second += 1) {
    uses.note('key_1');
    await clock.advanceAsync(1_000);
  }
  expect(accounts.touches.map((touch) => (touch['key_1'] ?? 0) - START_SECONDS)).toEqual([4, 64, 124]);
  await clock.advanceAsync(120_000);
  expect([accounts.touches.length, uses.size()]).toEqual([3, 0]);
});

test('uses that accounts could not take are reported when it is back, with the latest time', async () => {
  const { clock, uses, accounts } = bench();
  accounts.isAway = true;
  uses.note('key_1');
  uses.note('key_2');
  await clock.advanceAsync(6_000);
  uses.note('key_2');
  accounts.isAway = false;
  await clock.advanceAsync(4_000);
  expect(accounts.touches).toEqual([{ key_1: START_SECONDS, key_2: START_SECONDS + 6 }]);
});

test('many keys are reported in several calls', async () => {
  const { clock, uses, accounts } = bench();
  for (let index = 0; index < 1_200; index += 1) uses.note(`key_${index}`);
  await clock.advanceAsync(5_000);
  expect(accounts.touches.map((touch) => Object.keys(touch).length)).toEqual([500, 500, 200]);
});

test('a stop reports the remaining uses, and does not fail while accounts is away', async () => {
  const { clock, uses, accounts } = bench();
  uses.note('key_1');
  await clock.advanceAsync(5_000);
  uses.note('key_1');
  await uses.stop();
  expect(accounts.touches).toHaveLength(2);
  accounts.isAway = true;
  uses.note('key_1');
  await uses.stop();
  expect(clock.pendingTimers()).toBe(0);
});
