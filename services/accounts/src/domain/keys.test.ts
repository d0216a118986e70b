import { describe, expect, test } from '@jest/globals';
import { createIdSource, parseId } from '@signalbox/kernel/ids';
import { randomBytes } from '@signalbox/runtime/random';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createHmac } from 'node:crypto';
import { createMemoryStore } from '../adapters/memory-store.js';
import { createAccounts } from './accounts.js';
import { createKeys, NO_LIMITS } from './keys.js';
import type { AccountRecord, KeyLimitsRecord } from './records.js';
import { createSecretMaker } from './secrets.js';

const PEPPER = 'a pepper of enough length';
const WANTED: AccountRecord = {
  id: '', name: 'one', tier: 'team', variant: '', suspended: false, requestsPerMinute: null, burstPerSecond: null, includedTokens: null, overageNanoUsdPerMillion: null, trialCreditNanoUsd: null, keptCreditNanoUsd: null, byokTokens: null, hardCap: false,
  costCaps: [], policyBaselineModel: '', storeAnswers: false, policyStoreAnswers: null, baselineModel: '', allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], routingMode: '', billingAnchorDay: 0, createdAt: 0, policyCostCaps: [], policyHardCap: false, costWeight: null,
};

async function world() {
  const clock = createFakeClock();
  const told: string[] = [];
  const options = { store: createMemoryStore(), announcer: { invalidated: ({ reason }: { reason: string }) => void told.push(reason) }, clock, ids: createIdSource(clock, randomBytes), secrets: createSecretMaker(new Secret(PEPPER), randomBytes), variant: 'A' as const };
  const accounts = createAccounts(options);
  const keys = createKeys(options);
  const withPepper = (pepper: string) => createKeys({ ...options, secrets: createSecretMaker(new Secret(pepper), randomBytes) });
  const isTheirsBefore = await withPepper('whatever it will be').isPepperTheirs();
  const made = await accounts.create(WANTED, 'first', []);
  if ('problem' in made || made.first === undefined) throw new Error('not made');
  const seenBy = (secret: string) => keys.authenticate(createHmac('sha256', PEPPER).update(secret).digest(), options.secrets.pepperId);
  const stateOf = async (secret: string) => (await seenBy(secret))?.status;
  return { clock, told, accounts, keys, account: made.account, first: made.first, seenBy, stateOf, withPepper, isTheirsBefore };
}
const ask = (accountId: string, actorKeyId: string) => ({ accountId, name: 'ci', expiresInSeconds: null, scopes: [] as string[], limits: NO_LIMITS, actorKeyId });

describe('keys', () => {
  test('refuses more scopes than the maker has, and gives the maker’s by default', async () => {
    const { keys, account, first } = await world();
    expect(await keys.create({ ...ask(account.id, first.key.id), scopes: ['admin'] })).toEqual({ problem: expect.stringMatching(/^insufficient_scope: /) });
    expect(await keys.create(ask(account.id, first.key.id))).toMatchObject({ seen: { key: { scopes: first.key.scopes } } });
  });
  test.each<[bigint, boolean]>([[-1n, false], [0n, false], [1n, true], [315_360_000n, true], [315_360_001n, false]])('lives for a second to ten years: %d', async (expiresInSeconds, isMade) => {
    const { keys, account } = await world();
    expect(await keys.create({ ...ask(account.id, ''), expiresInSeconds })).toEqual(isMade ? expect.objectContaining({ secret: expect.any(String) as unknown }) : { problem: expect.stringMatching(/^expires_in /) as unknown });
  });
  test('makes one key for an Idempotency-Key and tells its secret once, until the day is over in which repeats are known', async () => {
    const { clock, keys, account } = await world();
    const repeatDigest = createHmac('sha256', PEPPER).update('k').digest();
    const make = async (digest = repeatDigest) => {
      const made = await keys.create({ ...ask(account.id, ''), repeatDigest: digest });
      if (made === undefined || 'problem' in made) throw new Error('not made');
      return made;
    };
    const first = await make();
    expect([first.secret === '', parseId('key', first.seen.key.id)]).toEqual([false, first.seen.key.id]);
    clock.advance(86_400_000);
    expect(await make()).toEqual({ seen: first.seen, secret: '' });
    const other = await make(createHmac('sha256', PEPPER).update('l').digest());
    clock.advance(1_000);
    const later = await make();
    expect([other, later].map(({ seen, secret }) => [seen.key.id === first.seen.key.id, secret === ''])).toEqual([[false, false], [false, false]]);
  });
  test('knows whether its pepper is that of the keys that are there', async () => {
    const { keys, withPepper, isTheirsBefore } = await world();
    expect(await keys.isPepperTheirs()).toBe(true);
    expect(await withPepper('another, of enough length').isPepperTheirs()).toBe(false);
    expect(isTheirsBefore).toBe(true);
  });
  test('gives no key the secret of one with more scopes', async () => {
    const { keys, account, first, stateOf } = await world();
    const managing = await keys.create({ ...ask(account.id, first.key.id), scopes: ['keys'] });
    if (managing === undefined || 'problem' in managing) throw new Error('not made');
    const { id } = managing.seen.key;
    expect(await keys.rotate(account.id, first.key.id, 0, id)).toEqual({ problem: expect.stringMatching(/^insufficient_scope: scopes /) });
    expect(await stateOf(first.secret)).toBe('active');
    expect(await keys.rotate(account.id, id, 0, id)).toMatchObject({ seen: { key: { id } } });
    expect(await keys.rotate(account.id, id, 0, first.key.id)).toMatchObject({ seen: { key: { id } } });
  });
  test.each(['revoked', 'disabled', 'expired'])('does nothing for a key that is %s meanwhile', async (state) => {
    const { keys, account, first, clock, stateOf } = await world();
    const made = await keys.create({ ...ask(account.id, ''), expiresInSeconds: 5n });
    if (made === undefined || 'problem' in made) throw new Error('not made');
    const { id } = made.seen.key;
    const other = await keys.create({ ...ask(account.id, ''), expiresInSeconds: 4n });
    if (other === undefined || 'problem' in other) throw new Error('not made');
    if (state === 'revoked') await keys.revoke(account.id, id);
    else if (state === 'disabled') await keys.update(account.id, id, { isDisabled: true }, '');
    else clock.advance(5_000);
    const refusal = { problem: expect.stringMatching(/^(api_key_(revoked|expired)|invalid_api_key): /) };
    expect(await keys.create({ ...ask(account.id, id), expiresInSeconds: 1n })).toEqual(refusal);
    expect(await keys.rotate(account.id, first.key.id, 0, id)).toEqual(refusal);
    expect(await keys.rotate(account.id, id, 0, id)).toEqual(refusal);
    expect(await keys.update(account.id, first.key.id, { isDisabled: true }, id)).toEqual(refusal);
    expect(await stateOf(first.secret)).toBe('active');
  });
  test('authenticates both secrets until the grace ends, then the newest only', async () => {
    const { keys, account, first, clock, stateOf } = await world();
    const rotated = await keys.rotate(account.id, first.key.id, 60, first.key.id);
    if (rotated === undefined || 'problem' in rotated) throw new Error('not rotated');
    expect([await stateOf(first.secret), await stateOf(rotated.secret)]).toEqual(['rotating', 'rotating']);
    clock.advance(60_000);
    expect([await stateOf(first.secret), await stateOf(rotated.secret)]).toEqual(['revoked', 'active']);
  });
  test('lets a rotated-out secret run and read in its grace, and manage nothing', async () => {
    const { keys, account, first, seenBy } = await world();
    const rotated = await keys.rotate(account.id, first.key.id, 60, first.key.id);
    if (rotated === undefined || 'problem' in rotated) throw new Error('not rotated');
    expect((await seenBy(first.secret))?.key.scopes).toEqual(['inference', 'models:read', 'keys:read', 'usage:read']);
    expect((await seenBy(rotated.secret))?.key.scopes).toEqual(first.key.scopes);
  });
  test('takes no name that nobody can see', async () => {
    const { keys, account, first } = await world();
    const refusal = { problem: expect.stringMatching(/^name must /) };
    for (const name of ['', ' ', '\t \u00a0', '\u200b', '\u202e\u00ad', '\u3164', 'a'.repeat(101)]) expect([await keys.create({ ...ask(account.id, ''), name }), await keys.update(account.id, first.key.id, { name }, '')]).toEqual([refusal, refusal]);
    expect(await keys.create({ ...ask(account.id, ''), name: ' a ' })).toHaveProperty('secret');
  });
  test('makes a thousand for an account, and another when one has ended', async () => {
    const { keys, account, first } = await world();
    for (let i = 1; i < 1_000; i += 1) expect(await keys.create(ask(account.id, first.key.id))).toHaveProperty('secret');
    const refusal = { problem: expect.stringContaining('at most 1000 keys') };
    expect([await keys.create(ask(account.id, first.key.id)), await keys.create(ask(account.id, ''))]).toEqual([refusal, refusal]);
    await keys.revoke(account.id, first.key.id);
    expect(await keys.create(ask(account.id, ''))).toHaveProperty('secret');
  });
  test('expires a key at its second', async () => {
    const { keys, account, clock, stateOf } = await world();
    const made = await keys.create({ ...ask(account.id, ''), expiresInSeconds: 5n });
    if (made === undefined || 'problem' in made) throw new Error('not made');
    clock.advance(4_000);
    expect(await stateOf(made.secret)).toBe('active');
    clock.advance(1_000);
    expect(await stateOf(made.secret)).toBe('expired');
  });
  test('keeps the first time of a revocation, tells edge, and hides the key after 90 days', async () => {
    const { keys, account, first, clock, told, stateOf } = await world();
    const once = await keys.revoke(account.id, first.key.id);
    clock.advance(5_000);
    expect(await keys.revoke(account.id, first.key.id)).toEqual(once);
    expect(await stateOf(first.secret)).toBe('revoked');
    expect(told).toContain('revoked');
    // Later found to be compromised: announced again, because of requests that still run.
    expect(await keys.revoke(account.id, first.key.id, true)).toEqual(once);
    expect(told.at(-1)).toBe('compromised');
    expect(await keys.list(account.id, 20, '', '')).toMatchObject({ keys: [{ status: 'revoked' }] });
    clock.advance(7_776_000_000);
    expect(await keys.list(account.id, 20, '', '')).toEqual({ keys: [], hasMore: false });
  });
  test('does not show a key to another account', async () => {
    const { keys, first } = await world();
    expect(await keys.get('acct_other', first.key.id)).toBeUndefined();
    expect(await keys.revoke('acct_other', first.key.id)).toBeUndefined();
  });
  test('lists newest first, page by page', async () => {
    const { keys, account, first } = await world();
    const made = await keys.create(ask(account.id, ''));
    if (made === undefined || 'problem' in made) throw new Error('not made');
    expect(await keys.list(account.id, 1, '', '')).toMatchObject({ keys: [{ key: { id: made.seen.key.id } }], hasMore: true });
    expect(await keys.list(account.id, 1, made.seen.key.id, '')).toMatchObject({ keys: [{ key: { id: first.key.id } }], hasMore: false });
  });
});

describe('a key with limits of its own', () => {
  const CAPPED: KeyLimitsRecord = { ...NO_LIMITS, costCaps: [{ capNanoUsd: 5n, period: 'day' }, { capNanoUsd: 50n, period: 'month' }] };
  const PACED: KeyLimitsRecord = { ...NO_LIMITS, requestsPerMinute: 10 };
  const PICKED: KeyLimitsRecord = { ...NO_LIMITS, allowedModels: ['a/one', 'a/two'] };
  const LESS: KeyLimitsRecord = { ...CAPPED, costCaps: [{ capNanoUsd: 4n, period: 'day' }, { capNanoUsd: 50n, period: 'month' }] };
  const refusal = (field: string): unknown => ({ problem: expect.stringMatching(new RegExp(`^insufficient_scope: ${field} `)) });
  /** Two keys created by the operator: one with these limits and this expiry, another without. */
  const two = async (limits: KeyLimitsRecord, expiresInSeconds: bigint | null = null) => {
    const made = await world();
    const { keys, account, first } = made;
    const bound = await keys.create({ ...ask(account.id, ''), limits, expiresInSeconds });
    if (bound === undefined || 'problem' in bound) throw new Error('not made');
    return { ...made, bound: bound.seen.key, other: first.key };
  };
  const MANAGING = { scopes: ['keys', 'usage:read'] };
  const ALL = { scopes: [] };

  test.each<[string, KeyLimitsRecord, bigint | null, { readonly scopes: string[]; readonly limits?: KeyLimitsRecord; readonly expiresInSeconds?: bigint }, string]>([
    ['a cap: none', CAPPED, null, ALL, 'scopes'],
    ['a cap: the same once more', CAPPED, null, { scopes: ['inference'], limits: CAPPED }, 'scopes'],
    ['a cap: one that lifts it', CAPPED, null, MANAGING, 'limits'],
    ['a cap: a higher one of a period', CAPPED, null, { ...MANAGING, limits: { ...CAPPED, costCaps: [{ capNanoUsd: 5n, period: 'day' }, { capNanoUsd: 51n, period: 'month' }] } }, 'limits'],
    ['a cap: one period less', CAPPED, null, { ...MANAGING, limits: { ...CAPPED, costCaps: [{ capNanoUsd: 5n, period: 'month' }] } }, 'limits'],
    ['a rate: the same once more', PACED, null, { ...ALL, limits: PACED }, 'scopes'],
    ['a rate: a higher one', PACED, null, { ...MANAGING, limits: { ...NO_LIMITS, requestsPerMinute: 11 } }, 'limits'],
    ['models: all', PICKED, null, ALL, 'limits'],
    ['models: another', PICKED, null, { ...ALL, limits: { ...NO_LIMITS, allowedModels: ['a/one', 'a/three'] } }, 'limits'],
    ['models: whatever auto chooses', { ...NO_LIMITS, allowedModels: ['auto', 'a/one'] }, null, { ...ALL, limits: { ...NO_LIMITS, allowedModels: ['auto'] } }, 'limits'],
    ['an end: none', NO_LIMITS, 60n, ALL, 'expires_in'],
    ['an end: a later one', NO_LIMITS, 60n, { ...ALL, expiresInSeconds: 61n }, 'expires_in'],
  ])('makes no key that goes beyond %s', async (_name, limits, end, wanted, field) => {
    const { keys, account, bound } = await two(limits, end);
    expect(await keys.create({ ...ask(account.id, bound.id), ...wanted })).toEqual(refusal(field));
  });

  test.each<[string, KeyLimitsRecord, bigint | null, { readonly scopes: string[]; readonly limits?: KeyLimitsRecord; readonly expiresInSeconds?: bigint }]>([
    ['one that reads, as tight', CAPPED, null, { ...MANAGING, limits: CAPPED }],
    ['one that reads, tighter', CAPPED, null, { ...MANAGING, limits: LESS }],
    ['fewer models', PICKED, null, { ...ALL, limits: { ...NO_LIMITS, allowedModels: ['a/two'] } }],
    ['an end as soon', NO_LIMITS, 60n, { ...ALL, expiresInSeconds: 60n }],
  ])('makes %s', async (_name, limits, end, wanted) => {
    const { keys, account, bound } = await two(limits, end);
    expect(await keys.create({ ...ask(account.id, bound.id), ...wanted })).toMatchObject({ seen: { status: 'active' } });
  });

  test('keeps what somebody else set meanwhile: a change replaces the limits that it names', async () => {
    const { keys, account } = await world();
    const made = await keys.create(ask(account.id, ''));
    if (made === undefined || 'problem' in made) throw new Error('not made');
    const { id } = made.seen.key;
    const set = (limits: KeyLimitsRecord, limitNames: readonly (keyof KeyLimitsRecord)[]) => keys.update('', id, { limits, limitNames }, '');
    await set(CAPPED, ['costCaps']);
    // The sender of this change has read the key before it had a cap.
    await set({ ...PICKED, requestsPerMinute: 9 }, ['requestsPerMinute']);
    expect((await keys.get('', id))?.key.limits).toEqual({ ...CAPPED, requestsPerMinute: 9 });
    await set({ ...NO_LIMITS, allowedModels: PICKED.allowedModels }, ['costCaps', 'allowedModels']);
    expect((await keys.get('', id))?.key.limits).toEqual({ ...PICKED, requestsPerMinute: 9 });
    await set(NO_LIMITS, []);
    expect((await keys.get('', id))?.key.limits).toEqual(NO_LIMITS);
  });
  test('keeps to its models when it leaves the choice to auto', async () => {
    const named = { ...NO_LIMITS, allowedModels: ['auto', 'a/one'] };
    const { keys, account, bound } = await two(named);
    expect(await keys.update(account.id, bound.id, { limits: { ...NO_LIMITS, allowedModels: ['auto'] } }, bound.id)).toEqual(refusal('limits'));
    expect(await keys.update(account.id, bound.id, { limits: { ...NO_LIMITS, allowedModels: ['a/one'] } }, bound.id)).toMatchObject({ status: 'active' });
  });

  test('tightens itself and others, and loosens neither', async () => {
    const { keys, account, bound, other } = await two(CAPPED);
    for (const limits of [NO_LIMITS, PACED, { ...CAPPED, costCaps: CAPPED.costCaps.slice(0, 1) }]) expect(await keys.update(account.id, bound.id, { limits }, bound.id)).toEqual(refusal('limits'));
    expect(await keys.update(account.id, bound.id, { name: 'new', limits: LESS }, bound.id)).toMatchObject({ key: { name: 'new', limits: LESS } });
    // It cannot undo its own tightening.
    expect(await keys.update(account.id, bound.id, { limits: CAPPED }, bound.id)).toEqual(refusal('limits'));
    expect(await keys.update(account.id, other.id, { limits: CAPPED, isDisabled: true }, bound.id)).toMatchObject({ key: { limits: CAPPED, isDisabled: true } });
    expect(await keys.update(account.id, other.id, { limits: NO_LIMITS }, bound.id)).toEqual(refusal('limits'));
    expect(await keys.update(account.id, other.id, { isDisabled: false }, bound.id)).toEqual(refusal('disabled'));
    expect(await keys.update(account.id, other.id, { isDisabled: false, limits: NO_LIMITS }, '')).toMatchObject({ status: 'active', key: { limits: NO_LIMITS } });
    expect(await keys.update(account.id, bound.id, { limits: NO_LIMITS }, other.id)).toMatchObject({ key: { limits: NO_LIMITS } });
  });

  test.each<[string, KeyLimitsRecord, bigint | null, string]>([['a cap', CAPPED, null, 'scopes'], ['models', PICKED, null, 'limits'], ['an end', NO_LIMITS, 60n, 'expires_in']])('is given no secret that goes beyond %s, but a new one of its own', async (_name, limits, end, field) => {
    const { keys, account, bound, other, stateOf, first } = await two(limits, end);
    expect(await keys.rotate(account.id, other.id, 0, bound.id)).toEqual(refusal(field));
    expect(await stateOf(first.secret)).toBe('active');
    expect(await keys.rotate(account.id, bound.id, 0, bound.id)).toMatchObject({ seen: { key: { id: bound.id, limits, expiresAt: bound.expiresAt } } });
    expect(await keys.rotate(account.id, bound.id, 0, other.id)).toMatchObject({ seen: { key: { id: bound.id } } });
    expect(await keys.rotate(account.id, other.id, 0, '')).toMatchObject({ seen: { key: { id: other.id } } });
  });

  test('revokes any key', async () => {
    const { keys, account, bound, other } = await two(CAPPED);
    expect(await keys.revoke(account.id, other.id)).toMatchObject({ status: 'revoked' });
    expect(await keys.revoke(account.id, bound.id)).toMatchObject({ status: 'revoked' });
  });
});
