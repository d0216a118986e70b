import { describe, expect, test } from '@jest/globals';
import { BUCKET_MEMORY_MS, FORGET_INTERVAL_MS, newAccountState, sweep, type AccountState, type Wall } from './account-state.js';
import { admit, heartbeat, release, type AdmitCommand, type AdmitVerdict } from './admission.js';
import { periodsAt, qualifiedPeriodId } from './periods.js';
import { reregister } from './rebuild.js';
import { applyTotals, finish } from './settlement.js';

const NOON = Date.parse('2026-11-21T12:00:00Z');
const DAY_MS = 86_400_000;
const BEFORE_MIDNIGHT = Date.parse('2026-11-21T23:59:50Z');
const AFTER_MIDNIGHT = BEFORE_MIDNIGHT + 15_000;

const command = (requestId: string, more: Partial<AdmitCommand> = {}): AdmitCommand => ({
  requestId, keyId: 'key_1', counter: 'chat', amount: 10n, minAmount: 0n, tokens: 1n, minTokens: 0n, byok: false, requestsPerMinute: undefined, burstPerSecond: undefined,
  keyRequestsPerMinute: undefined, walls: [], anchorDay: 0, periodSeconds: undefined, needsTotals: false, ...more,
});
const verdict = (state: AccountState, asked: AdmitCommand, nowMs: number): AdmitVerdict => {
  const answer = admit(state, asked, '', nowMs);
  if (typeof answer === 'string') throw new Error(`expected a verdict, not ${answer}`);
  return answer;
};

describe('where a request counts', () => {
  test('each key and day by itself, the account over both', () => {
    const state = newAccountState();
    const walls: Wall[] = [{ scope: 'key', period: 'day', meter: 'charge', limit: 15n }, { scope: 'account', period: 'total', meter: 'charge', limit: 45n }];
    const ask = (requestId: string, keyId: string, nowMs: number): string => verdict(state, command(requestId, { keyId, walls }), nowMs).decision;
    expect(ask('a', 'key_1', BEFORE_MIDNIGHT)).toBe('admitted');
    expect(ask('b', 'key_2', BEFORE_MIDNIGHT)).toBe('admitted');
    expect(ask('c', 'key_1', BEFORE_MIDNIGHT)).toBe('blocked');
    expect(ask('d', 'key_1', AFTER_MIDNIGHT)).toBe('admitted');
    expect(ask('e', 'key_1', AFTER_MIDNIGHT)).toBe('blocked');
    expect(ask('f', 'key_2', AFTER_MIDNIGHT)).toBe('admitted');
    expect(ask('g', 'key_3', AFTER_MIDNIGHT)).toBe('blocked');
  });

  test('a fact of a period that was forgotten counts in it anew', () => {
    const state = newAccountState();
    const { periods } = verdict(state, command('a'), NOON);
    release(state, 'a', NOON);
    sweep(state, NOON + BUCKET_MEMORY_MS + 40 * DAY_MS);
    expect(state.buckets.has('account|day:2026-11-21')).toBe(false);
    finish(state, { requestId: 'late', charge: 7n, tokens: 1n, byok: false, keyId: 'key_1', periods }, NOON + BUCKET_MEMORY_MS + 40 * DAY_MS);
    expect(['account|day:2026-11-21', 'key_1|day:2026-11-21', 'account|total', 'key_1|total'].map((name) => state.buckets.get(name)?.finishedCharge)).toEqual([7n, 7n, 7n, 7n]);
  });
});

test('what limits can be read of stays: days for a week, weeks and months for forty days, open ones as long as they are', () => {
  const state = newAccountState();
  const daily: Wall[] = [{ scope: 'key', period: 'day', meter: 'charge', limit: 15n }];
  verdict(state, command('open', { walls: daily }), NOON);
  heartbeat(state, 'open', 0n, 0n, NOON);
  for (let day = 1; day <= 120; day += 1) {
    const nowMs = NOON + day * DAY_MS;
    verdict(state, command(`r${day}`), nowMs);
    release(state, `r${day}`, nowMs);
    sweep(state, nowMs);
  }
  const namesOf = (kind: string): string[] => [...state.buckets.keys()].filter((name) => name.startsWith(`key_1|${kind}:`));
  expect(['day', 'week', 'month'].map((kind) => namesOf(kind).length)).toEqual([9, 7, 3]);
  // Today, seven days before, and the day of the request that still runs: its hold grows by the limits of that day.
  expect(namesOf('day')[0]).toBe('key_1|day:2026-11-21');
  expect(heartbeat(state, 'open', 15n, 0n, NOON + 120 * DAY_MS)).toBe(true);
  expect(heartbeat(state, 'open', 16n, 0n, NOON + 120 * DAY_MS)).toBe(false);
});

test('a hold that was raised to what an attempt before had cost gives the next attempt no room beyond the limits', () => {
  const state = newAccountState();
  const walls: Wall[] = [{ scope: 'account', period: 'total', meter: 'charge', limit: 100n }, { scope: 'account', period: 'plan', meter: 'routed', limit: 20n }];
  const { periods } = verdict(state, command('tried again', { walls }), NOON);
  verdict(state, command('other', { walls }), NOON);
  finish(state, { requestId: 'other', charge: 60n, tokens: 6n, byok: false, keyId: 'key_1', periods }, NOON);
  reregister(state, { requestId: 'tried again', keyId: 'key_1', amount: 500n, tokens: 50n, byok: false, periods, isStarted: true }, NOON);
  expect([[40n, 14n], [41n, 14n], [40n, 15n]].map(([amount = 0n, tokens = 0n]) => heartbeat(state, 'tried again', amount, tokens, NOON))).toEqual([true, false, false]);
  // It lives, whatever its attempt before has cost.
  expect([heartbeat(state, 'tried again', 0n, 0n, NOON), state.holds.get('tried again')?.amount]).toEqual([true, 500n]);
});

test('a rate is forgotten when all that counted has fallen out, not before', () => {
  const state = newAccountState();
  const ask = (requestId: string, keyId: string, nowMs: number): string => verdict(state, command(requestId, { keyId, keyRequestsPerMinute: 1, burstPerSecond: 50 }), nowMs).decision;
  for (let i = 0; i < 20; i += 1) expect(ask(`a${String(i)}`, `key_${String(i)}`, NOON + i)).toBe('admitted');
  sweep(state, NOON + 59_000);
  expect([ask('b', 'key_0', NOON + 59_000), state.windows.size > 20]).toEqual(['rate', true]);
  const later = NOON + 59_000 + FORGET_INTERVAL_MS;
  sweep(state, later);
  expect(state.windows.size).toBe(0);
  expect([ask('c', 'key_0', later), ask('d', 'key_0', later)]).toEqual(['admitted', 'rate']);
});

test('a hard allotment counts tokens over own credentials with all others, from the hold to the ledger, and theirs counts them alone', () => {
  const state = newAccountState();
  const hard: Wall = { scope: 'account', period: 'plan', meter: 'routed', limit: 20n };
  const own: Wall = { scope: 'account', period: 'plan', meter: 'byok', limit: 15n };
  const ask = (requestId: string, byok: boolean, tokens: bigint) => verdict(state, command(requestId, { byok, tokens, amount: 0n, walls: byok ? [own, hard] : [hard] }), NOON);
  expect(ask('a', true, 10n)).toMatchObject({ decision: 'admitted', planTokens: 10n, planByokTokens: 10n, room: { tokens: 15n } });
  expect(ask('b', false, 10n)).toMatchObject({ decision: 'admitted', planTokens: 20n, planByokTokens: 0n });
  expect(ask('c', true, 1n)).toMatchObject({ decision: 'blocked', wall: { index: 1, spend: 0n, reserved: 20n } });
  expect(ask('d', false, 1n)).toMatchObject({ decision: 'blocked', wall: { index: 0, spend: 0n, reserved: 20n } });
  finish(state, { requestId: 'a', charge: 0n, tokens: 9n, byok: true, keyId: 'key_1', periods: undefined }, NOON);
  expect(heartbeat(state, 'b', 0n, 11n, NOON)).toBe(true);
  expect(heartbeat(state, 'b', 0n, 12n, NOON)).toBe(false);
  finish(state, { requestId: 'b', charge: 0n, tokens: 9n, byok: false, keyId: 'key_1', periods: undefined }, NOON);
  expect(ask('e', true, 3n)).toMatchObject({ decision: 'wall', wall: { index: 1, spend: 18n } });
  expect(ask('f', false, 3n)).toMatchObject({ decision: 'wall', wall: { index: 0, spend: 18n } });
  const plan = qualifiedPeriodId('plan', periodsAt(NOON, { anchorDay: 0 }));
  applyTotals(state, { seq: 2n, totals: [{ scope: 'account', periodId: plan, charge: 0n, tokens: 9n, byok: 9n }], requestIds: ['a', 'b'] }, NOON, 'x');
  expect(ask('g', false, 3n)).toMatchObject({ decision: 'wall', wall: { spend: 18n } });
  expect(ask('h', true, 2n)).toMatchObject({ decision: 'admitted', planTokens: 20n, planByokTokens: 11n });
});

test('the tightest rate is shown, with the time until all of it is free', () => {
  const state = newAccountState();
  const limits = { requestsPerMinute: 10, keyRequestsPerMinute: 3 };
  verdict(state, command('a', limits), NOON);
  expect(verdict(state, command('b', limits), NOON + 5_000).rate).toEqual({ limit: 3, remaining: 1, resetMs: 61_000 });
  expect(verdict(state, command('c', { requestsPerMinute: 10 }), NOON + 30_000).rate).toEqual({ limit: 10, remaining: 7, resetMs: 61_000 });
  expect(verdict(state, command('d', limits), NOON + 66_000).rate).toEqual({ limit: 3, remaining: 2, resetMs: 61_000 });
});
