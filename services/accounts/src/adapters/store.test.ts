import { afterAll, describe, expect, test } from '@jest/globals';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { randomUUID } from 'node:crypto';
import { NO_LIMITS, newKeyRecord } from '../domain/keys.js';
import type { AccountStore, Change } from '../domain/ports.js';
import { KEY_STATUSES, keyStatus, type AccountRecord, type KeyRecord, type ProviderKeyRecord } from '../domain/records.js';
import { createMemoryStore } from './memory-store.js';
import { MIGRATIONS } from './migrations.js';
import { createPostgresStore } from './postgres-store.js';
import type { AccountsSchema } from './rows.js';

const closers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closers) await close();
  await stopTestStores();
});

const stores: readonly (readonly [string, () => Promise<AccountStore>])[] = [
  ['memory', async () => createMemoryStore()],
  ['postgres', async () => {
    const { db, close } = openDatabase<AccountsSchema>({ url: new Secret(await testPostgresUrl()), poolMax: 2, log: silentLog, statementTimeoutMs: 5_000 });
    closers.push(close);
    await migrate(db, MIGRATIONS, { schema: 'accounts' });
    return createPostgresStore(db);
  }],
];

const ACCOUNT: AccountRecord = {
  id: '', name: 'one', tier: 'team', variant: '', suspended: false, requestsPerMinute: 7, burstPerSecond: null, includedTokens: 9_000_000_000_000_000n, overageNanoUsdPerMillion: null,
  trialCreditNanoUsd: 1n, keptCreditNanoUsd: 2n, byokTokens: 4n, hardCap: true, costCaps: [{ capNanoUsd: 8_999_999_999_999_999n, period: 'day' }], policyCostCaps: [{ capNanoUsd: 7n, period: 'total' }], policyHardCap: true, costWeight: 0.5, policyBaselineModel: 'b', storeAnswers: true, policyStoreAnswers: false, baselineModel: '', allowModels: ['a'], denyModels: [], allowProviders: [], denyProviders: [], routingMode: '', billingAnchorDay: 3, createdAt: 5,
};

const NOTHING = (): undefined => undefined;
const ALL = { nowSeconds: 5, revokedSince: 0 };
const TOLD: Change = { keyId: '', accountId: 'acct_1', reason: 'updated' };

describe.each(stores)('account store in %s', (_name, open) => {
  test('answers what was written, ends older secrets on a rotation and keeps the latest use', async () => {
    const store = await open();
    const account: AccountRecord = { ...ACCOUNT, id: `acct_${randomUUID()}` };
    const key = newKeyRecord({ id: `key_${randomUUID()}`, accountId: account.id, name: 'k', prefix: 'p', scopes: ['keys'], createdAt: 5, expiresAt: 50, limits: { ...NO_LIMITS, costCaps: [{ capNanoUsd: 3n, period: 'week' }, { capNanoUsd: 9n, period: 'total' }] } });
    const [old, fresh] = [Buffer.from(randomUUID()), Buffer.from(randomUUID())];
    await store.insertAccount(account, { key, secret: { digest: old, pepperId: 'x', keyId: key.id, validUntil: null } });
    expect(await store.findAccount(account.id)).toEqual(account);
    expect(await store.findSecret(old)).toMatchObject({ key, account });
    expect(await store.peppersOfSecrets('x')).toEqual({ hasThis: true, hasAny: true });
    expect(await store.peppersOfSecrets('y')).toEqual({ hasThis: false, hasAny: true });
    const changed = await store.rotateKey(key.id, (current) => ({ ...current, graceEndsAt: 20 }), { digest: fresh, pepperId: 'x', keyId: key.id, validUntil: null }, 20, () => TOLD);
    expect(changed).toEqual({ ...key, graceEndsAt: 20 });
    expect((await store.findSecret(old))?.secret.validUntil).toBe(20);
    expect((await store.findSecret(fresh))?.secret.validUntil).toBeNull();
    await store.touchKeys([{ keyId: key.id, usedAt: 9 }, { keyId: 'key_unknown', usedAt: 9 }]);
    await store.touchKeys([{ keyId: key.id, usedAt: 8 }]);
    expect(await store.listKeys(account.id, { limit: 5 }, ALL)).toEqual([{ ...key, graceEndsAt: 20, lastUsedAt: 9 }]);
    expect(await store.updateAccount(account.id, (current) => ({ ...current, suspended: true }), NOTHING)).toMatchObject({ suspended: true });
    expect(await store.updateKey('key_unknown', (current) => current, NOTHING)).toBeUndefined();
    expect((await store.listAccounts({ limit: 1 }))[0]).toEqual({ ...account, suspended: true });
  });

  test('makes no more keys of an account than it may have, those that have ended apart, however many ask at once', async () => {
    const store = await open();
    const account: AccountRecord = { ...ACCOUNT, id: `acct_${randomUUID()}` };
    await store.insertAccount(account);
    const insert = async (expiresAt: number | null, createdAt = 5): Promise<boolean> => {
      const key = newKeyRecord({ id: `key_${randomUUID()}`, accountId: account.id, name: 'k', prefix: 'p', scopes: [], createdAt, expiresAt, limits: NO_LIMITS });
      return (await store.insertKey(key, { digest: Buffer.from(randomUUID()), pepperId: 'x', keyId: key.id, validUntil: null }, 2)) === 'made';
    };
    expect((await Promise.all([insert(null), insert(10), insert(null)])).filter(Boolean)).toHaveLength(2);
    expect(await insert(null)).toBe(false);
    for (const { id, expiresAt } of await store.listKeys(account.id, { limit: 5 }, ALL)) if (expiresAt === null) await store.updateKey(id, (key) => ({ ...key, revokedAt: 6 }), NOTHING);
    expect([await insert(null, 10), await insert(null, 10), await insert(null, 10)]).toEqual([true, true, false]);
  });

  test('of calls that make a key of one id at once, one makes it, and the others are told of it, also where there is no room', async () => {
    const store = await open();
    const account: AccountRecord = { ...ACCOUNT, id: `acct_${randomUUID()}` };
    await store.insertAccount(account);
    const id = `key_${randomUUID()}`;
    const insert = (name: string) => store.insertKey(newKeyRecord({ id, accountId: account.id, name, prefix: 'p', scopes: [], createdAt: 5, expiresAt: null, limits: NO_LIMITS }), { digest: Buffer.from(randomUUID()), pepperId: 'x', keyId: id, validUntil: null }, 1);
    const was = await Promise.all(['one', 'two', 'three'].map(insert));
    const [kept] = await store.listKeys(account.id, { limit: 5 }, ALL);
    expect(was.filter((each) => each === 'made')).toHaveLength(1);
    expect(was.filter((each) => each !== 'made')).toEqual([kept, kept]);
    expect(await insert('four')).toEqual(kept);
  });

  test('lists keys by their state, page by page, and none that was revoked long ago', async () => {
    const store = await open();
    const account: AccountRecord = { ...ACCOUNT, id: `acct_${randomUUID()}` };
    await store.insertAccount(account);
    const [now, revokedSince] = [100, 50];
    const moments = [null, now - 1, now, now + 1] as const;
    const keys: KeyRecord[] = [];
    for (const revokedAt of [null, revokedSince, revokedSince + 1])
      for (const expiresAt of moments)
        for (const graceEndsAt of moments)
          for (const isDisabled of [false, true])
            keys.unshift({ ...newKeyRecord({ id: `key_${randomUUID()}`, accountId: account.id, name: 'k', prefix: 'p', scopes: [], createdAt: 5, expiresAt, limits: NO_LIMITS }), revokedAt, graceEndsAt, isDisabled });
    for (const key of [...keys].reverse()) expect(await store.insertKey(key, { digest: Buffer.from(randomUUID()), pepperId: 'x', keyId: key.id, validUntil: null }, 1_000)).toBe('made');
    for (const status of [undefined, ...KEY_STATUSES]) {
      const wanted = keys.filter((key) => key.revokedAt !== revokedSince && (status === undefined || keyStatus(key, now) === status)).map(({ id }) => id);
      const got: string[] = [];
      for (let afterId: string | undefined; ; afterId = got.at(-1)) {
        const page = await store.listKeys(account.id, { limit: 7, afterId }, { nowSeconds: now, revokedSince, status });
        got.push(...page.map(({ id }) => id));
        if (page.length < 7) break;
      }
      expect([status, got]).toEqual([status, wanted]);
    }
    // A page may also start after a key that is not in the list.
    const [hidden] = keys;
    const oldest = keys.filter(({ revokedAt }) => revokedAt === revokedSince).at(-1);
    expect(hidden?.revokedAt).toBe(revokedSince + 1);
    expect(await store.listKeys(account.id, { limit: 1, afterId: oldest?.id }, { nowSeconds: now, revokedSince })).toEqual([keys.find(({ revokedAt }) => revokedAt === null)]);
  });

  test('keeps one credential for each provider of an account, page by page, and what is sealed', async () => {
    const store = await open();
    const account = { ...ACCOUNT, id: `acct_${randomUUID()}` };
    const key = newKeyRecord({ id: `key_${randomUUID()}`, accountId: account.id, name: 'k', prefix: 'p', scopes: [], createdAt: 5, expiresAt: null, limits: NO_LIMITS });
    const digest = Buffer.from(randomUUID());
    await store.insertAccount(account, { key, secret: { digest, pepperId: 'x', keyId: key.id, validUntil: null } });
    const keyId = randomUUID().slice(0, 8);
    const record = (provider: string, last4: string): ProviderKeyRecord => ({ handle: `cred_${randomUUID()}`, accountId: account.id, provider, last4, zdr: true, baseUrl: '', createdAt: 6 });
    const sealedAs = { keyId, wrappedKey: Buffer.from('wrapped'), sealed: Buffer.from('sealed') };
    const [first, groq, second] = [record('openai', 'aaaa'), record('groq', 'bbbb'), record('openai', 'cccc')];
    for (const each of [first, groq, second]) await store.putProviderKey({ ...each, ...sealedAs }, TOLD);
    expect(await store.findProviderKey(first.handle)).toBeUndefined();
    expect(await store.findProviderKey(second.handle)).toEqual({ ...second, ...sealedAs });
    expect(await store.listProviderKeys(account.id, { limit: 1 })).toEqual([second]);
    expect(await store.listProviderKeys(account.id, { limit: 5, afterId: second.handle })).toEqual([groq]);
    expect([...((await store.findSecret(digest))?.providerKeys ?? [])].sort((one, other) => (one.last4 < other.last4 ? -1 : 1))).toEqual([groq, second]);

    const under = async (id: string) => (await store.staleProviderKeys(id, { limit: 1_000 })).filter((each) => each.accountId === account.id).map((each) => each.handle);
    expect(await under(keyId)).toEqual([]);
    expect(await under('other')).toEqual([second.handle, groq.handle]);
    expect(await store.secretsKeysOfProviderKeys(keyId)).toEqual({ hasThis: true, hasAny: true });
    expect(await store.secretsKeysOfProviderKeys(randomUUID())).toEqual({ hasThis: false, hasAny: true });
    const moved = { keyId: 'other', wrappedKey: Buffer.from('again'), sealed: sealedAs.sealed };
    expect(await store.rewrapProviderKey(groq.handle, 'stale', moved)).toBe(false);
    expect(await store.rewrapProviderKey(groq.handle, keyId, moved)).toBe(true);
    expect(await store.findProviderKey(groq.handle)).toEqual({ ...groq, ...moved });
    expect(await under('other')).toEqual([second.handle]);

    expect(await store.removeProviderKey(account.id, 'groq', TOLD)).toEqual(groq);
    expect(await store.removeProviderKey(account.id, 'groq', TOLD)).toBeUndefined();
    expect(await store.removeProviderKey('acct_other', 'openai', TOLD)).toBeUndefined();
    expect(await store.listProviderKeys(account.id, { limit: 5 })).toEqual([second]);
  });
});
