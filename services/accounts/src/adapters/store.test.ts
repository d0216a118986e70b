import { afterAll, describe, expect, test } from '@jest/globals';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { randomUUID } from 'node:crypto';
import { NO_LIMITS, newKeyRecord } from '../domain/keys.js';
import type { AccountStore } from '../domain/ports.js';
import type { AccountRecord } from '../domain/records.js';
import { createMemoryStore } from './memory-store.js';
import { MIGRATIONS } from './migrations.js';
import { createPostgresStore, type AccountsSchema } from './postgres-store.js';

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

describe.each(stores)('account store in %s', (_name, open) => {
  test('answers what was written, ends older secrets on a rotation and keeps the latest use', async () => {
    const store = await open();
    const account: AccountRecord = {
      id: `acct_${randomUUID()}`, name: 'one', tier: 'team', variant: '', suspended: false, requestsPerMinute: 7, burstPerSecond: null, includedTokens: 9_000_000_000_000_000n, overageNanoUsdPerMillion: null,
      trialCreditNanoUsd: 1n, hardCap: true, costCaps: [{ capNanoUsd: 8_999_999_999_999_999n, period: 'day' }], baselineModel: '', allowModels: ['a'], denyModels: [], allowProviders: [], denyProviders: [], routingMode: '', billingAnchorDay: 3, createdAt: 5,
    };
    const key = newKeyRecord({ id: `key_${randomUUID()}`, accountId: account.id, name: 'k', prefix: 'p', scopes: ['keys'], createdAt: 5, expiresAt: 50, limits: { ...NO_LIMITS, costCapNanoUsd: 3n, costCapPeriod: 'week' } });
    const [old, fresh] = [Buffer.from(randomUUID()), Buffer.from(randomUUID())];
    await store.insertAccount(account, { key, secret: { digest: old, pepperId: 'x', keyId: key.id, validUntil: null } });
    expect(await store.findAccount(account.id)).toEqual(account);
    expect(await store.findSecret(old)).toMatchObject({ key, account });
    const changed = await store.rotateKey(key.id, (current) => ({ ...current, graceEndsAt: 20 }), { digest: fresh, pepperId: 'x', keyId: key.id, validUntil: null }, 20);
    expect(changed).toEqual({ ...key, graceEndsAt: 20 });
    expect((await store.findSecret(old))?.secret.validUntil).toBe(20);
    expect((await store.findSecret(fresh))?.secret.validUntil).toBeNull();
    await store.touchKeys([{ keyId: key.id, usedAt: 9 }, { keyId: 'key_unknown', usedAt: 9 }]);
    await store.touchKeys([{ keyId: key.id, usedAt: 8 }]);
    expect(await store.listKeys(account.id, { limit: 5 })).toEqual([{ ...key, graceEndsAt: 20, lastUsedAt: 9 }]);
    expect(await store.updateAccount(account.id, (current) => ({ ...current, suspended: true }))).toMatchObject({ suspended: true });
    expect(await store.updateKey('key_unknown', (current) => current)).toBeUndefined();
    expect((await store.listAccounts({ limit: 1 }))[0]).toEqual({ ...account, suspended: true });
  });
});
