import { describe, expect, test } from '@jest/globals';
import { LEASE_MS, newAccountState, sweepLeases, type AccountState, type Wall } from './account-state.js';
import { admit, confirm, heartbeat, release, type AdmitCommand } from './admission.js';
import type { Draw } from './advance.js';
import { reregister } from './rebuild.js';
import { applyTotals, finish } from './settlement.js';
import { periodsAt } from './periods.js';

const NOON = Date.parse('2026-11-21T12:00:00Z');
const WALLS: readonly Wall[] = [{ scope: 'account', period: 'day', meter: 'charge', limit: 1_000n }];
const ADVANCE: AdmitCommand = {
  requestId: 'advance', keyId: 'key_1', counter: 'chat', amount: 100n, minAmount: 0n, tokens: 10n, minTokens: 0n, byok: false, requestsPerMinute: undefined, burstPerSecond: undefined,
  keyRequestsPerMinute: undefined, walls: WALLS, anchorDay: 0, periodSeconds: undefined, needsTotals: false,
};
const draw = (amount: bigint, tokens = 1n): Draw => ({ advanceId: 'advance', amount, tokens });
const held = (state: AccountState): bigint => state.buckets.get('account|total')?.heldCharge ?? 0n;
const spent = (state: AccountState): bigint => (state.buckets.get('account|total')?.finishedCharge ?? 0n) + (state.buckets.get('account|total')?.charge ?? 0n);
const charge = (requestId: string, amount: bigint, drawn: Draw): Parameters<typeof finish>[1] => ({ requestId, charge: amount, tokens: 1n, byok: false, keyId: 'key_1', periods: undefined, writer: 'w', draw: drawn });

function advanced(): AccountState {
  const state = newAccountState();
  expect(admit(state, ADVANCE, '', NOON)).toMatchObject({ decision: 'admitted', held: 100n });
  return state;
}

describe('what a request was served with leaves its advance once, with the first message that names the request', () => {
  const first: readonly [string, (state: AccountState) => unknown, bigint, bigint][] = [
    ['a heartbeat', (state) => heartbeat(state, 'r', 0n, 0n, NOON, 'w', draw(30n)), 100n, 0n],
    ['one that asks for more', (state) => heartbeat(state, 'r', 50n, 0n, NOON, 'w', draw(30n)), 120n, 0n],
    ['the question whether it is held', (state) => confirm(state, 'r', NOON, draw(30n)), 100n, 0n],
    ['its charge', (state) => finish(state, charge('r', 7n, draw(30n)), NOON), 70n, 7n],
    ['its release', (state) => release(state, 'r', NOON, draw(30n)), 70n, 0n],
    ['what its worker tells anew', (state) => reregister(state, { requestId: 'r', keyId: 'key_1', amount: 0n, tokens: 0n, byok: false, periods: periodsAt(NOON, { anchorDay: 0 }), isStarted: true, draw: draw(30n) }, NOON), 100n, 0n],
  ];
  test.each(first)('%s', (_, tell, heldThen, spentThen) => {
    const state = advanced();
    for (let times = 0; times < 3; times += 1) tell(state);
    expect([held(state), spent(state), state.holds.get('advance')?.amount]).toEqual([heldThen, spentThen, 70n]);
  });

  test.each(first)('%s, and its charge after that', (_, tell) => {
    const state = advanced();
    tell(state);
    for (let times = 0; times < 2; times += 1) finish(state, charge('r', 7n, draw(30n)), NOON);
    expect([held(state), state.holds.get('advance')?.amount]).toEqual([70n, 70n]);
  });
});

test('a drawn hold grows within the limits of its advance, and no further', () => {
  const state = advanced();
  expect(heartbeat(state, 'r', 930n, 0n, NOON, 'w', draw(30n))).toBe(true);
  expect(heartbeat(state, 'r', 931n, 0n, NOON, 'w', draw(30n))).toBe(false);
  expect(held(state)).toBe(1_000n);
});

test('an advance that is used up is over, and the ledger need not be asked for what it became', () => {
  const state = advanced();
  state.loaded = 'life';
  finish(state, charge('r', 7n, draw(60n, 6n)), NOON);
  release(state, 'rest', NOON, draw(40n, 4n));
  expect([state.holds.size, held(state)]).toEqual([0, 0n]);
  expect(sweepLeases(state, NOON + LEASE_MS)).toEqual([]);
  expect(state.loaded).toBe('life');
});

test('one whose edge is gone ends with its lease; what was drawn from it and is in use stays', () => {
  const state = advanced();
  heartbeat(state, 'used', 0n, 0n, NOON, 'w', draw(30n));
  confirm(state, 'waiting', NOON + 10, draw(20n));
  expect(sweepLeases(state, NOON + LEASE_MS)).toEqual(['advance']);
  expect(held(state)).toBe(50n);
  expect(heartbeat(state, 'late', 0n, 0n, NOON + LEASE_MS, 'w', draw(10n))).toBe(true);
  expect(state.holds.has('late')).toBe(false);
});

test('more than is left of it is held all the same: never less than what the request may cost', () => {
  const state = advanced();
  heartbeat(state, 'a', 0n, 0n, NOON, 'w', draw(90n));
  heartbeat(state, 'b', 0n, 0n, NOON, 'w', draw(30n));
  expect(held(state)).toBe(120n);
});

test('a request that the ledger names before its worker told of it gives back what it drew when that is told, once', () => {
  const state = advanced();
  applyTotals(state, { seq: 1n, totals: [{ scope: 'account', periodId: 'total', charge: 7n, tokens: 1n, byok: 0n }], requestIds: ['r'] }, NOON);
  expect(held(state)).toBe(100n);
  for (let times = 0; times < 3; times += 1) finish(state, charge('r', 7n, draw(30n)), NOON);
  expect([held(state), spent(state), state.holds.get('advance')?.amount]).toEqual([70n, 7n, 70n]);
});

test('in whatever order and however often requests are told of: never less is held than what they may still cost, and nothing once all are over', () => {
  let random = 7;
  const pick = (bound: number): number => {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((random / 2 ** 32) * bound);
  };
  for (let round = 0; round < 300; round += 1) {
    const state = advanced();
    const amounts = [10n, 20n, 30n];
    const isTold = new Set<number>();
    let settled = 0n;
    let seq = 0n;
    const tell = (index: number): void => {
      const [requestId, amount, drawn] = [`r${index}`, amounts[index] ?? 0n, draw(amounts[index] ?? 0n)];
      const kind = pick(5);
      if (kind === 0) heartbeat(state, requestId, 0n, 0n, NOON, 'w', drawn);
      else if (kind === 1) confirm(state, requestId, NOON, drawn);
      else if (kind === 2) finish(state, charge(requestId, amount / 2n, drawn), NOON);
      else if (kind === 3 && !isTold.has(index)) {
        // The ledger has it.
        isTold.add(index);
        settled += amount / 2n;
        applyTotals(state, { seq: (seq += 1n), totals: [{ scope: 'account', periodId: 'total', charge: settled, tokens: 0n, byok: 0n }], requestIds: [requestId] }, NOON);
      } else release(state, 'rest', NOON, draw(40n, 7n));
      const open = amounts.filter((_, at) => !isTold.has(at) && !state.finished.has(`r${at}`)).reduce((sum, each) => sum + each, 0n);
      expect(held(state)).toBeGreaterThanOrEqual(open);
      // What the ledger has told before a worker did counts twice until then.
      expect(held(state) + spent(state) - settled).toBeLessThanOrEqual(100n);
    };
    for (let step = 0; step < 12; step += 1) tell(pick(3));
    for (const [index, amount] of amounts.entries()) finish(state, charge(`r${index}`, amount / 2n, draw(amount)), NOON);
    release(state, 'rest', NOON, draw(40n, 7n));
    expect([held(state), spent(state), state.holds.size]).toEqual([0n, 30n, 0]);
    for (const bucket of state.buckets.values()) expect(bucket.heldTokens).toBe(0n);
  }
});
