import { describe, expect, test } from '@jest/globals';
import { callerWith } from '../testing/callers.js';
import { allowedModelsOf, isLimited, limitsOf } from './limits.js';

const key = (limits: object): Parameters<typeof callerWith>[0] => ({ key: { limits: { costCapPeriod: '', allowedModels: [], costCaps: [], ...limits } } });

describe('limits', () => {
  test.each<['A' | 'B', string, object]>([
    ['A', 'free', { requestsPerMinute: 60, burstPerSecond: 5, trialCreditNanoUsd: '5000000000', byokTokens: '100000' }],
    ['A', 'team', { requestsPerMinute: 600, burstPerSecond: 30, includedTokens: '10000000' }],
    ['A', 'business', { requestsPerMinute: 3_000, burstPerSecond: 150, includedTokens: '50000000' }],
    ['A', 'enterprise', {}],
    ['B', 'free', { requestsPerMinute: 100, burstPerSecond: 5 }],
    ['B', 'pro', { requestsPerMinute: 1_000, burstPerSecond: 50 }],
    ['B', 'enterprise', {}],
  ])('variant %s, tier %s has its published terms', (variant, tier, terms) => {
    expect(limitsOf(callerWith({ variant, account: { tier } }))).toEqual({ caps: [], hardCap: false, billingAnchorDay: 0, ...terms });
  });

  test('settings of the account override those of its tier, and the burst follows the rate', () => {
    expect(limitsOf(callerWith({ account: { requestsPerMinute: 2_000, includedTokens: '5', trialCreditNanoUsd: '7' } }))).toMatchObject({ requestsPerMinute: 2_000, burstPerSecond: 100, includedTokens: '5', trialCreditNanoUsd: '7' });
    expect(limitsOf(callerWith({ account: { requestsPerMinute: 20 } }))).toMatchObject({ burstPerSecond: 5 });
    expect(limitsOf(callerWith({ account: { requestsPerMinute: 20, burstPerSecond: 1 } }))).toMatchObject({ burstPerSecond: 1 });
  });

  test.each<[string, 'A' | 'B', object, string | undefined]>([
    ['is no limit on a tier without one', 'A', { tier: 'team', keptCreditNanoUsd: '20000000000' }, undefined],
    ['is no limit on a tier without one', 'B', { tier: 'free', keptCreditNanoUsd: '20000000000' }, undefined],
    ['applies again in a trial', 'A', { tier: 'free', keptCreditNanoUsd: '20000000000' }, '20000000000'],
    ['does not lower the tier’s credit', 'A', { tier: 'free', keptCreditNanoUsd: '7' }, '5000000000'],
    ['gives way to one of the account’s own', 'A', { tier: 'free', trialCreditNanoUsd: '7', keptCreditNanoUsd: '5000000000' }, '7'],
    ['gives way to one of the account’s own', 'A', { tier: 'team', trialCreditNanoUsd: '0', keptCreditNanoUsd: '5000000000' }, '0'],
  ])('a credit kept from earlier terms %s: %s %j', (_name, variant, account, credit) => {
    expect(limitsOf(callerWith({ variant, account })).trialCreditNanoUsd).toBe(credit);
  });

  test('include the caps of the account and of the key', () => {
    const caller = callerWith({ ...key({ costCapNanoUsd: '9', requestsPerMinute: 3 }), account: { costCaps: [{ capNanoUsd: '5', period: 'week' }] } });
    expect(limitsOf(caller)).toMatchObject({ keyRequestsPerMinute: 3, caps: [{ scope: 'account', period: 'WEEK', capNanoUsd: '5' }, { scope: 'key_1', period: 'TOTAL', capNanoUsd: '9' }] });
  });

  test('include every cap: the operator’s, the account’s own, and those of the key', () => {
    const caller = callerWith({
      ...key({ costCaps: [{ capNanoUsd: '1', period: 'day' }, { capNanoUsd: '2', period: 'total' }], costCapNanoUsd: '1', costCapPeriod: 'day' }),
      account: { costCaps: [{ capNanoUsd: '3', period: 'week' }], policyCostCaps: [{ capNanoUsd: '4', period: 'week' }, { capNanoUsd: '5', period: 'month' }] },
    });
    expect(limitsOf(caller).caps).toEqual([
      { scope: 'account', period: 'WEEK', capNanoUsd: '3' }, { scope: 'account', period: 'WEEK', capNanoUsd: '4' }, { scope: 'account', period: 'MONTH', capNanoUsd: '5' },
      { scope: 'key_1', period: 'DAY', capNanoUsd: '1' }, { scope: 'key_1', period: 'TOTAL', capNanoUsd: '2' },
    ]);
  });

  test('an account may set itself a hard cap, and cannot remove the operator’s', () => {
    for (const [hardCap, policyHardCap] of [[true, false], [false, true], [true, true]] as const) expect(limitsOf(callerWith({ account: { hardCap, policyHardCap } })).hardCap).toBe(true);
  });

  test('an allotment for own credentials can be set on any tier', () => {
    expect(limitsOf(callerWith({ account: { tier: 'enterprise', byokTokens: '7' } }))).toMatchObject({ byokTokens: '7' });
    expect(limitsOf(callerWith({ account: { tier: 'free', byokTokens: '7' } }))).toMatchObject({ byokTokens: '7' });
  });

  test.each<[string[], string[], string[]]>([
    [[], [], []],
    [['a', 'b'], [], ['a', 'b']],
    [[], ['b', 'c'], ['b', 'c']],
    [['a', 'b'], ['b', 'c'], ['b']],
  ])('an account that allows %j and a key that allows %j allow %j', (allowModels, allowedModels, both) => {
    const caller = callerWith({ ...key({ allowedModels }), account: { allowModels } });
    expect([allowedModelsOf(caller, 'byName'), allowedModelsOf(caller, 'viaAuto')]).toEqual([both, both]);
  });

  test('lists without a common model allow none, and not all', () => {
    const models = allowedModelsOf(callerWith({ ...key({ allowedModels: ['a'] }), account: { allowModels: ['b'] } }), 'byName');
    expect(models).toHaveLength(1);
    expect(['a', 'b', 'auto']).not.toContain(models[0]);
  });

  test('a key that allows only auto leaves the choice among the account’s models', () => {
    const caller = callerWith({ ...key({ allowedModels: ['auto'] }), account: { allowModels: ['auto', 'a/x'] } });
    expect(allowedModelsOf(caller, 'viaAuto')).toEqual(['a/x']);
    expect(allowedModelsOf(caller, 'byName')).not.toContain('a/x');
  });

  test('a cap of zero is a cap', () => {
    expect(isLimited(limitsOf(callerWith(key({ costCapNanoUsd: '0', costCapPeriod: 'day' }))))).toBe(true);
  });

  test.each<[string, Parameters<typeof callerWith>[0], boolean]>([
    ['Team', {}, false],
    ['Team with a hard cap', { account: { hardCap: true } }, true],
    ['Free, by its credit', { account: { tier: 'free' } }, true],
    ['Free of variant B', { account: { tier: 'free' }, variant: 'B' }, false],
    ['Enterprise with a hard cap but no allotment', { account: { tier: 'enterprise', hardCap: true } }, false],
    ['a capped key', key({ costCapNanoUsd: '1' }), true],
  ])('%s is limited: %#', (_name, caller, expected) => {
    expect(isLimited(limitsOf(callerWith(caller)))).toBe(expected);
  });
});
