import { describe, expect, test } from '@jest/globals';
import type { AdmitRequest, Limits } from '@signalbox/contracts/quota';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createLocalAdmission } from './local-admission.js';

const CAP = { scope: 'account', period: 'TOTAL', capNanoUsd: '1000' } as const;

function alone(replicas = 1) {
  const clock = createFakeClock();
  const decided: boolean[] = [];
  const local = createLocalAdmission({ clock, replicas, onDecided: (isAdmitted) => decided.push(isAdmitted) });
  let asked = 0;
  const ask = (limits: Limits, more: Partial<AdmitRequest> = {}) =>
    local.admit({ requestId: `r${(asked += 1)}`, accountId: 'acct_1', keyId: 'key_1', counter: 'CHAT', limits, amountNanoUsd: '700', minAmountNanoUsd: '0', tokens: '90', minTokens: '0', byok: false, ...more });
  return { clock, decided, ask };
}

describe('while quota is away', () => {
  test.each<{ readonly name: string; readonly limits: Limits; readonly isServed: boolean }>([
    { name: 'team: an allotment that overage follows', limits: { includedTokens: '10000000' }, isServed: true },
    { name: 'team or business with a hard allotment', limits: { includedTokens: '10000000', hardCap: true }, isServed: false },
    { name: 'free: trial credit', limits: { trialCreditNanoUsd: '5000000000', byokTokens: '100000' }, isServed: false },
    { name: 'a cost cap of the account', limits: { caps: [CAP] }, isServed: false },
    { name: 'a cost cap of the key', limits: { caps: [{ ...CAP, scope: 'key_1' }] }, isServed: false },
    { name: 'enterprise without limits', limits: {}, isServed: true },
  ])('$name: served $isServed', ({ limits, isServed }) => {
    const { ask, decided } = alone();
    const answer = ask(limits);
    expect(answer !== undefined).toBe(isServed);
    expect(decided).toEqual([isServed]);
    if (answer !== undefined) expect(answer).toMatchObject({ decision: 'ADMITTED', heldNanoUsd: '700', heldTokens: '90', epoch: '', periods: { day: '2026-01-01', month: '2026-01', plan: '2026-01', reservedAtMs: '1767225600000' } });
  });

  test('an allotment of BYOK tokens gives 1,000 tokens a minute, shortens the last answer, and lets no hold grow', () => {
    const { ask, clock } = alone();
    const byok = (tokens: string, minTokens: string, accountId = 'acct_1') => ask({ byokTokens: '100000', trialCreditNanoUsd: '1' }, { byok: true, tokens, minTokens, accountId });
    expect(byok('1146', '186')).toMatchObject({ heldTokens: '1000', roomTokens: '1000' });
    expect(byok('1146', '186')).toBeUndefined();
    expect(byok('400', '186', 'acct_2')).toMatchObject({ heldTokens: '400' });
    expect(byok('1146', '601', 'acct_2')).toBeUndefined();
    expect(byok('1146', '600', 'acct_2')).toMatchObject({ heldTokens: '600', roomTokens: '600' });
    clock.advance(59_999);
    expect(byok('1', '1')).toBeUndefined();
    clock.advance(1);
    expect(byok('1', '1')).toMatchObject({ heldTokens: '1' });
  });

  test('requests on own credentials without such an allotment are not counted', () => {
    const { ask } = alone();
    for (let i = 0; i < 3; i += 1) expect(ask({ caps: [CAP], includedTokens: '1' }, { byok: true, tokens: '5000' })).toBeDefined();
  });

  test('requests on own credentials are refused if the allotment of all tokens is hard', () => {
    const { ask } = alone();
    expect(ask({ hardCap: true, includedTokens: '10000000' }, { byok: true })).toBeUndefined();
    expect(ask({ hardCap: true, includedTokens: '10000000', byokTokens: '100000' }, { byok: true })).toBeUndefined();
    expect(ask({ hardCap: true, byokTokens: '100000' }, { byok: true })).toBeDefined();
  });

  test('each edge grants its share of a rate, at least one request, and a refused request uses nothing', () => {
    const { ask, clock } = alone(4);
    const limits: Limits = { requestsPerMinute: 13, burstPerSecond: 9 };
    expect([ask(limits), ask(limits), ask(limits)].map((answer) => answer !== undefined)).toEqual([true, true, false]);
    clock.advance(1_000);
    expect([ask(limits), ask(limits)].map((answer) => answer !== undefined)).toEqual([true, false]);
    clock.advance(59_000);
    expect(ask(limits)).toBeDefined();
    expect(ask({ requestsPerMinute: 2 }, { accountId: 'acct_2' })).toBeDefined();
    expect(ask({ requestsPerMinute: 2 }, { accountId: 'acct_2' })).toBeUndefined();
  });

  test('a key has a rate of its own, and control calls are counted separately and without money', () => {
    const { ask } = alone();
    const limits: Limits = { keyRequestsPerMinute: 1, caps: [CAP] };
    expect(ask(limits, { counter: 'CONTROL' })).toBeDefined();
    expect(ask(limits, { counter: 'CONTROL' })).toBeUndefined();
    expect(ask(limits, { counter: 'CONTROL', keyId: 'key_2' })).toBeDefined();
    expect(ask({ keyRequestsPerMinute: 1 })).toBeDefined();
    expect(ask({ keyRequestsPerMinute: 1 })).toBeUndefined();
  });
});
