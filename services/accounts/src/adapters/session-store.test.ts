import { afterAll, describe, expect, test } from '@jest/globals';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { randomBytes, randomUUID } from 'node:crypto';
import { NO_LIMITS, newKeyRecord } from '../domain/keys.js';
import type { Change, SessionRecord, SessionStore } from '../domain/ports.js';
import { createMemorySessionStore } from './memory-session-store.js';
import { MIGRATIONS } from './migrations.js';
import { createPostgresSessionStore } from './postgres-session-store.js';
import { createPostgresStore } from './postgres-store.js';
import type { AccountsSchema } from './rows.js';

const closers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closers) await close();
  await stopTestStores();
});

/** A store, and the digest of a key's secret with which sessions may be created. */
interface World {
  readonly store: SessionStore;
  readonly keyDigest: Buffer;
}

const worlds: readonly (readonly [string, () => Promise<World>])[] = [
  ['memory', async () => ({ store: createMemorySessionStore(), keyDigest: randomBytes(32) })],
  ['postgres', async () => {
    const { db, close } = openDatabase<AccountsSchema>({ url: new Secret(await testPostgresUrl()), poolMax: 8, log: silentLog, statementTimeoutMs: 5_000 });
    closers.push(close);
    await migrate(db, MIGRATIONS, { schema: 'accounts' });
    const keyDigest = randomBytes(32);
    const key = newKeyRecord({ id: `key_${randomUUID()}`, accountId: `acct_${randomUUID()}`, name: 'k', prefix: 'p', scopes: ['keys'], createdAt: 5, expiresAt: null, limits: NO_LIMITS });
    const accounts = createPostgresStore(db);
    await accounts.insertAccount(
      {
        id: key.accountId, name: 'one', tier: 'team', variant: '', suspended: false, requestsPerMinute: null, burstPerSecond: null, includedTokens: null, byokTokens: null, overageNanoUsdPerMillion: null, trialCreditNanoUsd: null, keptCreditNanoUsd: null, hardCap: false, costCaps: [], policyCostCaps: [], policyHardCap: false, policyBaselineModel: '', storeAnswers: false, policyStoreAnswers: false, costWeight: null,
        baselineModel: '', allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], routingMode: '', billingAnchorDay: 0, createdAt: 5,
      },
      { key, secret: { digest: keyDigest, pepperId: 'x', keyId: key.id, validUntil: null } },
    );
    return { store: createPostgresSessionStore(db), keyDigest };
  }],
];

const TOLD: Change = { keyId: 'key_1', accountId: 'acct_1', reason: 'session_ended' };

describe.each(worlds)('session store in %s', (_name, open) => {
  const at = (keyDigest: Buffer, createdAt: number): SessionRecord => ({ digest: randomBytes(32), keyDigest, createdAt, lastUsedAt: createdAt, expiresAt: createdAt + 100 });
  test('keeps the latest use, and answers once what it removes', async () => {
    const { store, keyDigest } = await open();
    const session = at(keyDigest, 1_000);
    await store.insert(session, 5, TOLD);
    await store.touch(session.digest, 1_020);
    await store.touch(session.digest, 1_010);
    expect(await store.find(session.digest)).toEqual({ ...session, lastUsedAt: 1_020 });
    expect(await store.remove(session.digest, TOLD)).toEqual({ ...session, lastUsedAt: 1_020 });
    expect([await store.remove(session.digest, TOLD), await store.find(session.digest)]).toEqual([undefined, undefined]);
  });
  test('keeps the newest of one secret, and drops those that expired', async () => {
    const { store, keyDigest } = await open();
    const [expired, old, middle, latest] = [at(keyDigest, 100), at(keyDigest, 2_001), at(keyDigest, 2_002), at(keyDigest, 2_003)];
    const gaveWay: boolean[] = [];
    for (const session of [expired, old, middle, latest]) gaveWay.push(await store.insert(session, 2, TOLD));
    expect(gaveWay).toEqual([false, false, false, true]);
    expect(await Promise.all([expired, old, middle, latest].map(async ({ digest }) => (await store.find(digest)) !== undefined))).toEqual([false, false, true, true]);
  });
  test('sign-ins at once with one secret all succeed, and leave no more than are kept', async () => {
    const { store, keyDigest } = await open();
    const sessions = Array.from({ length: 80 }, (_none, second) => at(keyDigest, 1_000 + (second % 7)));
    for (let from = 0; from < sessions.length; from += 20) await Promise.all(sessions.slice(from, from + 20).map((session) => store.insert(session, 5, TOLD)));
    const found = await Promise.all(sessions.map(({ digest }) => store.find(digest)));
    expect(found.filter((session) => session !== undefined)).toHaveLength(5);
  });
});
