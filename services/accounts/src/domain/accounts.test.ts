import { expect, test } from '@jest/globals';
import { createIdSource } from '@signalbox/kernel/ids';
import type { Variant } from '@signalbox/kernel/tiers';
import { randomBytes } from '@signalbox/runtime/random';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createMemoryStore } from '../adapters/memory-store.js';
import { createAccounts } from './accounts.js';
import type { AccountRecord } from './records.js';
import { createSecretMaker } from './secrets.js';

const FIVE = 5_000_000_000n;
const WANTED: AccountRecord = {
  id: '', name: 'one', tier: 'free', variant: '', suspended: false, requestsPerMinute: null, burstPerSecond: null, includedTokens: null, overageNanoUsdPerMillion: null, trialCreditNanoUsd: null, keptCreditNanoUsd: null, byokTokens: null, hardCap: false,
  costCaps: [], policyBaselineModel: '', storeAnswers: false, policyStoreAnswers: null, baselineModel: '', allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], routingMode: '', billingAnchorDay: 0, createdAt: 0, policyCostCaps: [], policyHardCap: false, costWeight: null,
};

/** The kept credit after the account was created and after each change. */
async function keptAfter(variant: Variant, made: Partial<AccountRecord>, ...changes: readonly Partial<AccountRecord>[]): Promise<readonly (bigint | null)[]> {
  const clock = createFakeClock();
  const accounts = createAccounts({ store: createMemoryStore(), announcer: { invalidated: () => undefined }, clock, ids: createIdSource(clock, randomBytes), secrets: createSecretMaker(new Secret('a pepper of enough length'), randomBytes), variant });
  const first = await accounts.create({ ...WANTED, ...made }, '', []);
  if ('problem' in first) throw new Error(first.problem);
  const kept = [first.account.keptCreditNanoUsd];
  for (const change of changes) {
    const account = await accounts.set(first.account.id, (current) => ({ ...current, ...change }));
    if (account === undefined || 'problem' in account) throw new Error('not set');
    kept.push(account.keptCreditNanoUsd);
  }
  return kept;
}

test('an account keeps the trial credit of the tier it leaves', async () => {
  expect(await keptAfter('A', {}, { tier: 'team' }, { tier: 'business' }, { tier: 'free' })).toEqual([null, FIVE, FIVE, FIVE]);
  expect(await keptAfter('A', { tier: 'team' }, { tier: 'business' }, { tier: 'free' }, { tier: 'team' })).toEqual([null, null, null, FIVE]);
});

test('of several credits it keeps the largest, and nobody sets it', async () => {
  expect(await keptAfter('A', { trialCreditNanoUsd: 20n * FIVE }, { trialCreditNanoUsd: 1n }, { trialCreditNanoUsd: null, tier: 'team', keptCreditNanoUsd: 99n * FIVE })).toEqual([null, 20n * FIVE, 20n * FIVE]);
  expect(await keptAfter('A', { keptCreditNanoUsd: FIVE, tier: 'team' }, { name: 'two' })).toEqual([null, null]);
});

test('an upgrade ends a trial credit of the account’s own as a limit, unless the same change names one', async () => {
  const clock = createFakeClock();
  const accounts = createAccounts({ store: createMemoryStore(), announcer: { invalidated: () => undefined }, clock, ids: createIdSource(clock, randomBytes), secrets: createSecretMaker(new Secret('a pepper of enough length'), randomBytes), variant: 'A' });
  const after = async (made: Partial<AccountRecord>, change: Partial<AccountRecord>): Promise<readonly (bigint | null)[]> => {
    const first = await accounts.create({ ...WANTED, ...made }, '', []);
    if ('problem' in first) throw new Error(first.problem);
    const account = await accounts.set(first.account.id, (current) => ({ ...current, ...change }), Object.keys(change) as (keyof AccountRecord)[]);
    if (account === undefined || 'problem' in account) throw new Error('not set');
    return [account.trialCreditNanoUsd, account.keptCreditNanoUsd];
  };
  expect(await after({ trialCreditNanoUsd: 10n }, { tier: 'team' })).toEqual([null, 10n]);
  expect(await after({ trialCreditNanoUsd: 10n }, { tier: 'team', trialCreditNanoUsd: 10n })).toEqual([10n, 10n]);
  expect(await after({ trialCreditNanoUsd: 10n }, { name: 'two' })).toEqual([10n, 10n]);
  expect(await after({ trialCreditNanoUsd: 10n, tier: 'team' }, { tier: 'business' })).toEqual([10n, 10n]);
});

test('the deployment\'s contract counts where the account names none', async () => {
  expect(await keptAfter('B', {}, { tier: 'pro' })).toEqual([null, null]);
  expect(await keptAfter('B', { variant: 'A' }, { variant: '', tier: 'pro' })).toEqual([null, FIVE]);
});
