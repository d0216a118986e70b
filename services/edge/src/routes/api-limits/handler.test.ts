import { expect, test } from '@jest/globals';
import { periodEndMs, periodsAt, qualifiedPeriodId } from '@signalbox/ledger-core/periods';
import { callerWith } from '../../testing/callers.js';
import { answerLimits } from './handler.js';

const NOW_MS = 1_795_200_000_123;
const clock = { nowMs: () => NOW_MS, monotonicMs: () => 0, setTimer: () => ({ cancel: () => undefined }) };
const caller = callerWith({ account: { tier: 'team', includedTokens: '1000', costCaps: [{ capNanoUsd: '2000000000', period: 'month' }] } });

test.each([['a calendar month', undefined], ['a period length of the operator’s', 40]])('tells what is spent in the period of the counters: %s', async (_case, periodSeconds) => {
  const rules = { anchorDay: 0, periodSeconds };
  const periods = periodsAt(NOW_MS, rules);
  const bucket = { scope: 'account', settledNanoUsd: '0', finishedNanoUsd: '0', reservedNanoUsd: '0', tokens: '0', reservedTokens: '0' };
  const quota = {
    unary: () => Promise.resolve({ settledNanoUsd: '500000000', reservedNanoUsd: '0', buckets: [{ ...bucket, periodId: qualifiedPeriodId('month', periods), settledNanoUsd: '500000000' }, { ...bucket, periodId: qualifiedPeriodId('plan', periods), tokens: '70' }] }),
  } as unknown as Parameters<typeof answerLimits>[0];
  const told = JSON.parse(await answerLimits(quota, clock, periodSeconds, caller)) as object;
  const endSeconds = (kind: 'month' | 'plan'): number => Math.floor(Number(periodEndMs(kind, NOW_MS, rules)) / 1_000);
  expect(told).toMatchObject({ caps: [{ period: 'month', limit_usd: 2, spent_usd: 0.5, resets_at: endSeconds('month') }], tokens: { included: 1000, used: 70, resets_at: endSeconds('plan') } });
});

test.each([['midnight has passed here but not for the counters', 3_600_000], ['midnight has passed for the counters but not here', -3_600_000]])('uses the day of the counters if %s', async (_case, apartMs) => {
  const counted = Date.UTC(2026, 10, 21, apartMs > 0 ? 23 : 0, 30);
  const of = { scope: 'account', finishedNanoUsd: '0', reservedNanoUsd: '0', tokens: '0', reservedTokens: '0' };
  const quota = {
    unary: () => Promise.resolve({ settledNanoUsd: '0', reservedNanoUsd: '0', atMs: String(counted), buckets: [{ ...of, periodId: 'day:2026-11-21', settledNanoUsd: '500000000' }] }),
  } as unknown as Parameters<typeof answerLimits>[0];
  const daily = callerWith({ account: { tier: 'team', costCaps: [{ capNanoUsd: '2000000000', period: 'day' }] } });
  const told = JSON.parse(await answerLimits(quota, { ...clock, nowMs: () => counted + apartMs }, undefined, daily)) as object;
  expect(told).toMatchObject({ caps: [{ period: 'day', spent_usd: 0.5, resets_at: Date.UTC(2026, 10, 22) / 1_000 }] });
});

test.each<[string, number | undefined, number | undefined, number | null]>([
  ['the key’s', 600, 5, 5], ['the account’s, if that is lower', 600, 700, 600], ['the account’s, if the key has none', 600, undefined, 600], ['the key’s, if the account has none', undefined, 5, 5], ['none', undefined, undefined, null],
])('tells the lower rate of account and key: %s', async (_whose, ofAccount, ofKey, told) => {
  const quota = { unary: () => Promise.resolve({ settledNanoUsd: '0', reservedNanoUsd: '0', buckets: [] }) } as unknown as Parameters<typeof answerLimits>[0];
  const account = { tier: 'enterprise', ...(ofAccount === undefined ? {} : { requestsPerMinute: ofAccount }) };
  const key = ofKey === undefined ? {} : { limits: { requestsPerMinute: ofKey, costCapPeriod: '', allowedModels: [], costCaps: [] } };
  expect(JSON.parse(await answerLimits(quota, clock, undefined, callerWith({ account, key })))).toMatchObject({ requests_per_minute: told });
});

test('lists tokens over own credentials separately if they have an allotment', async () => {
  const rules = { anchorDay: 0 };
  const plan = { scope: 'account', periodId: qualifiedPeriodId('plan', periodsAt(NOW_MS, rules)), settledNanoUsd: '0', finishedNanoUsd: '0', reservedNanoUsd: '0', tokens: '90', reservedTokens: '9', byokTokens: '60', reservedByokTokens: '4' };
  const quota = { unary: () => Promise.resolve({ settledNanoUsd: '0', reservedNanoUsd: '0', buckets: [plan] }) } as unknown as Parameters<typeof answerLimits>[0];
  const told = async (account: object): Promise<object> => JSON.parse(await answerLimits(quota, clock, undefined, callerWith({ account }))) as object;
  const resetsAt = Math.floor(Number(periodEndMs('plan', NOW_MS, rules)) / 1_000);
  expect(await told({ tier: 'free' })).toMatchObject({ tokens: null, byok_tokens: { included: 100_000, used: 60, reserved: 4, resets_at: resetsAt } });
  expect(await told({ tier: 'team', includedTokens: '1000', byokTokens: '70' })).toMatchObject({ tokens: { included: 1_000, used: 90, reserved: 9 }, byok_tokens: { included: 70, used: 60, reserved: 4 } });
  expect(await told({ tier: 'team' })).toMatchObject({ byok_tokens: null });
});
