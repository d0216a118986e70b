import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import { NO_LIMITS, newKeyRecord } from '../domain/keys.js';
import type { AccountStore, Change, ChangeLog, SessionRecord, SessionStore } from '../domain/ports.js';
import type { AccountRecord, KeyRecord } from '../domain/records.js';
import { createMemoryChangeLog } from './memory-change-log.js';
import { createMemorySessionStore } from './memory-session-store.js';
import { createMemoryStore } from './memory-store.js';
import { MIGRATIONS } from './migrations.js';
import { createPostgresChangeLog, writeChange } from './postgres-change-log.js';
import { createPostgresSessionStore } from './postgres-session-store.js';
import { createPostgresStore } from './postgres-store.js';
import type { AccountsSchema } from './rows.js';

const ACCOUNT: AccountRecord = {
  id: '', name: 'one', tier: 'team', variant: '', suspended: false, requestsPerMinute: null, burstPerSecond: null, includedTokens: null, overageNanoUsdPerMillion: null, trialCreditNanoUsd: null, keptCreditNanoUsd: null, byokTokens: null, hardCap: false,
  costCaps: [], policyCostCaps: [], policyHardCap: false, costWeight: null, policyBaselineModel: '', storeAnswers: false, policyStoreAnswers: null, baselineModel: '', allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], routingMode: '', billingAnchorDay: 0, createdAt: 5,
};

let database: Database<AccountsSchema>;
const closers: (() => Promise<void>)[] = [];
const open = async (): Promise<Database<AccountsSchema>> => {
  const opened = openDatabase<AccountsSchema>({ url: new Secret(await testPostgresUrl()), poolMax: 8, log: silentLog, statementTimeoutMs: 5_000 });
  closers.push(opened.close);
  await migrate(opened.db, MIGRATIONS, { schema: 'accounts' });
  return opened;
};
beforeAll(async () => {
  database = await open();
}, 60_000);
afterAll(async () => {
  for (const close of closers) await close();
  await stopTestStores();
});

interface Stores {
  readonly store: AccountStore;
  readonly sessions: SessionStore;
  readonly log: ChangeLog;
}
const worlds: readonly (readonly [string, () => Stores])[] = [
  ['memory', () => {
    const log = createMemoryChangeLog();
    return { store: createMemoryStore(log), sessions: createMemorySessionStore(log), log };
  }],
  ['postgres', () => ({ store: createPostgresStore(database.db), sessions: createPostgresSessionStore(database.db), log: createPostgresChangeLog(database.db) })],
];

describe.each(worlds)('changes in %s', (_name, make) => {
  test('are told of everything that edge caches, and of nothing that was left as it was', async () => {
    const { store, sessions, log } = make();
    const account = { ...ACCOUNT, id: `acct_${randomUUID()}` };
    const key = newKeyRecord({ id: `key_${randomUUID()}`, accountId: account.id, name: 'k', prefix: 'p', scopes: ['keys'], createdAt: 5, expiresAt: null, limits: NO_LIMITS });
    const secret = { digest: randomBytes(32), pepperId: 'x', keyId: key.id, validUntil: null };
    const of = (reason: Change['reason'], keyId = key.id): Change => ({ keyId, accountId: account.id, reason });
    await store.insertAccount(account, { key, secret });
    const begun = await log.list('');
    expect(begun).toMatchObject({ changes: [], isUnbroken: false, hasMore: false });
    expect(await log.list(begun.cursor)).toEqual({ ...begun, isUnbroken: true });

    await store.updateKey(key.id, (current) => current, () => undefined);
    await store.updateKey(key.id, (current) => ({ ...current, name: 'n' }), () => of('updated'));
    await store.updateKey('key_unknown', (current) => current, () => of('updated'));
    await store.rotateKey(key.id, (current) => current, { ...secret, digest: randomBytes(32) }, 20, () => of('rotated'));
    await store.rotateKey(key.id, (current) => ({ ...current, graceEndsAt: 20 }), { ...secret, digest: randomBytes(32) }, 20, () => of('rotated'));
    await store.updateAccount(account.id, (current) => ({ ...current, suspended: true }), () => of('suspended', ''));
    await store.removeProviderKey(account.id, 'openai', of('provider_key', ''));
    await store.putProviderKey({ handle: `cred_${randomUUID()}`, accountId: account.id, provider: 'openai', last4: '', zdr: false, baseUrl: '', createdAt: 6, keyId: 'k', wrappedKey: randomBytes(4), sealed: randomBytes(4) }, of('provider_key', ''));
    await store.removeProviderKey(account.id, 'openai', of('provider_key', ''));
    const session = (createdAt: number): SessionRecord => ({ digest: randomBytes(32), keyDigest: secret.digest, createdAt, lastUsedAt: createdAt, expiresAt: createdAt + 100 });
    const [first, second] = [session(1), session(2)];
    await sessions.insert(first, 1, of('session_ended'));
    await sessions.insert(second, 1, of('session_ended'));
    await sessions.remove(second.digest, of('session_ended'));
    await sessions.remove(second.digest, of('session_ended'));

    const told = await log.list(begun.cursor);
    expect(told).toMatchObject({ isUnbroken: true, hasMore: false });
    expect(told.changes.map(({ keyId, accountId, reason }) => ({ keyId, accountId, reason }))).toEqual([of('updated'), of('rotated'), of('suspended', ''), of('provider_key', ''), of('provider_key', ''), of('session_ended'), of('session_ended')]);
    expect((await log.list(told.cursor)).changes).toEqual([]);
  });
});

describe('changes in Postgres', () => {
  const change = (keyId: string): Change => ({ keyId, accountId: 'acct_1', reason: 'updated' });

  test('are each told once and in order to who asks on, however slowly the transactions of others commit', async () => {
    const { db } = await open();
    const log = createPostgresChangeLog(db);
    const wanted = Array.from({ length: 60 }, (_, i) => `key_${i}`);
    let cursor = (await log.list('')).cursor;
    const heard: string[] = [];
    let isWriting = true;
    const reading = (async () => {
      for (let isLast = false; !isLast; ) {
        isLast = !isWriting;
        const page = await log.list(cursor);
        expect(page.isUnbroken).toBe(true);
        heard.push(...page.changes.map(({ keyId }) => keyId));
        cursor = page.cursor;
      }
    })();
    await Promise.all(
      wanted.map(async (keyId, i) => {
        await db
          .transaction()
          .execute(async (transaction) => {
            await sql`select pg_sleep(${(i % 5) / 200})`.execute(transaction);
            await writeChange(transaction, change(keyId));
            // The change is written but not committed yet, and some are rolled back.
            await sql`select pg_sleep(${(i % 7) / 500})`.execute(transaction);
            if (i % 10 === 9) throw new Error('given up');
          })
          .catch(() => undefined);
      }),
    );
    isWriting = false;
    await reading;
    expect([...heard].sort()).toEqual(wanted.filter((_, i) => i % 10 !== 9).sort());
  }, 30_000);

  test('hold up nobody who looks up a key or asks for changes, while one is being written', async () => {
    const { db } = await open();
    const log = createPostgresChangeLog(db);
    const { cursor } = await log.list('');
    await db.transaction().execute(async (transaction) => {
      await writeChange(transaction, change('key_1'));
      expect(await Promise.race([log.list(cursor), setTimeout(2_000)])).toMatchObject({ changes: [], isUnbroken: true });
    });
    expect((await log.list(cursor)).changes).toEqual([change('key_1')]);
  });

  test('are told in pages; the oldest are forgotten, and whoever asks on from there is told so', async () => {
    const { db } = await open();
    const log = createPostgresChangeLog(db);
    const write = (keyId: string): Promise<void> => db.transaction().execute((transaction) => writeChange(transaction, change(keyId)));
    const { cursor: oldest } = await log.list('');
    await sql`insert into accounts.change (seq, key_id, account_id, reason) select i, 'key_' || i, 'acct_1', 'updated' from generate_series(1, 9999) i`.execute(db);
    await sql`update accounts.change_count set seq = 9999`.execute(db);
    const page = await log.list(oldest);
    expect([page.changes.length, page.changes[0], page.changes[999], page.hasMore, page.isUnbroken]).toEqual([1_000, change('key_1'), change('key_1000'), true, true]);
    expect((await log.list(page.cursor)).changes[0]).toEqual(change('key_1001'));

    await write('key_10000');
    expect(await log.list(oldest)).toMatchObject({ changes: [], isUnbroken: false, hasMore: false });
    const { rows } = await sql<{ count: bigint }>`select count(*) as count from accounts.change`.execute(db);
    expect(rows[0]?.count).toBe(10_000n);
  });

  test('of a database that was restored are not taken for those that went on from the same number', async () => {
    const [before, restored] = await Promise.all([open(), open()]);
    const [log, later] = [createPostgresChangeLog(before.db), createPostgresChangeLog(restored.db)];
    for (const { db } of [before, restored]) await db.transaction().execute((transaction) => writeChange(transaction, change('key_1')));
    const { cursor } = await log.list('');
    expect(await later.list(cursor)).toMatchObject({ changes: [], isUnbroken: false });
    // A cursor that it does not have yet is not accepted either.
    await before.db.transaction().execute((transaction) => writeChange(transaction, change('key_2')));
    expect(await later.list((await log.list('')).cursor)).toMatchObject({ changes: [], isUnbroken: false });
    await expect(log.list("1'; drop table accounts.change; --")).rejects.toMatchObject({ code: 'bad_message' });
  });

  test('are undone with what they tell', async () => {
    const { db } = await open();
    const [store, log] = [createPostgresStore(db), createPostgresChangeLog(db)];
    const key: KeyRecord = newKeyRecord({ id: 'key_1', accountId: 'acct_1', name: 'k', prefix: 'p', scopes: [], createdAt: 5, expiresAt: null, limits: NO_LIMITS });
    await store.insertAccount({ ...ACCOUNT, id: 'acct_1' }, { key, secret: { digest: randomBytes(32), pepperId: 'x', keyId: 'key_1', validUntil: null } });
    const { cursor } = await log.list('');
    await sql`delete from accounts.change_count`.execute(db);
    await expect(store.updateKey('key_1', (current) => ({ ...current, revokedAt: 6 }), () => change('key_1'))).rejects.toMatchObject({ code: 'internal_error' });
    expect([(await store.findKey('key_1'))?.revokedAt, (await log.list(cursor)).changes]).toEqual([null, []]);
  });
});
