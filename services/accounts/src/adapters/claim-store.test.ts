import { afterAll, describe, expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { ANSWER_BYTES_MAX, createClaims, REMEMBERED_MS, TO_BEGIN_LEASE_MS_MAX, type Claims, type ClaimStore } from '../domain/claims.js';
import { createEnvelope } from '../domain/envelope.js';
import { createMemoryClaimStore } from './memory-claim-store.js';
import { MIGRATIONS } from './migrations.js';
import { createPostgresClaimStore } from './postgres-claim-store.js';
import type { AccountsSchema } from './rows.js';

const LEASE_MS = 60_000;
const closers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closers) await close();
  await stopTestStores();
});

const stores: readonly (readonly [string, () => Promise<ClaimStore>])[] = [
  ['memory', async () => createMemoryClaimStore()],
  ['postgres', async () => {
    const { db, close } = openDatabase<AccountsSchema>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 5_000 });
    closers.push(close);
    await migrate(db, MIGRATIONS, { schema: 'accounts' });
    return createPostgresClaimStore(db);
  }],
];

describe.each(stores)('claims in %s', (_name, openStore) => {
  const open = async () => {
    const store = await openStore();
    const clock = createFakeClock();
    const secret = new Secret('secrets key of the tests');
    const claims: Claims = createClaims({ store, clock, envelope: createEnvelope(secret, [], randomBytes, 'signalbox kept answer'), leaseMs: LEASE_MS });
    const accountId = `acct_${randomUUID()}`;
    const keyDigest = Buffer.from(randomUUID());
    const ref = (requestId: string) => ({ accountId, keyDigest, requestId });
    const claim = (requestId: string, takesOver = '', body = 'body', tellsBegin = false) => claims.claim({ ...ref(requestId), bodyDigest: Buffer.from(body), takesOver, tellsBegin });
    const claimToBegin = (requestId: string, body?: string) => claim(requestId, '', body, true);
    return { store, clock, claims, accountId, keyDigest, ref, claim, claimToBegin };
  };

  test('one of many at once gets it; the others are told whose it is', async () => {
    const { claim } = await open();
    const found = await Promise.all(Array.from({ length: 12 }, (_, index) => claim(`r${index}`)));
    const [winner] = found.filter(({ outcome }) => outcome === 'CLAIMED');
    expect(found.filter(({ outcome }) => outcome === 'CLAIMED')).toHaveLength(1);
    expect(found.filter(({ outcome }) => outcome === 'RUNNING').map(({ requestId }) => requestId)).toEqual(Array.from({ length: 11 }, () => winner?.requestId));
    expect((await claim('other', '', 'another body')).outcome).toBe('OTHER_BODY');
    // The winner's own answer was lost on the way, so it gets it again.
    expect((await claim(winner?.requestId ?? '')).outcome).toBe('CLAIMED');
  });

  test('an answer comes back byte by byte, for a day, and lies sealed', async () => {
    const { claim, claims, ref, store, clock, accountId, keyDigest } = await open();
    const answer = Buffer.from([0, 255, 10, 13, 128, ...Buffer.from('prompt “ä”')]);
    await claim('a');
    await claims.end(ref('a'), { kind: 'ended', costNanoUsd: 1_234n, answer });
    expect(await claim('b')).toEqual({ outcome: 'DONE', requestId: 'a', costNanoUsd: 1_234n, answer });
    // Another body is a conflict even if there is an answer; and an ended claim has no owner.
    expect(await claim('c', '', 'another body')).toEqual({ outcome: 'OTHER_BODY', requestId: 'a' });
    expect(await claim('a')).toMatchObject({ outcome: 'DONE', requestId: 'a' });
    const kept = await store.claim({ accountId, keyDigest, bodyDigest: Buffer.from('x'), requestId: 'z', isEnded: false, isToBegin: false, leaseEndsMs: 0, forgetMs: 0, costNanoUsd: null, answer: null }, '', clock.nowMs());
    expect(Buffer.from(kept?.answer?.sealed ?? []).includes('prompt')).toBe(false);
    expect(Buffer.from(kept?.answer?.sealed ?? []).length).toBeGreaterThan(answer.length);
    // An ended claim does not change any more.
    await claims.end(ref('a'), { kind: 'freed' });
    await claims.end(ref('a'), { kind: 'ended', costNanoUsd: 9n, answer: undefined });
    clock.advance(REMEMBERED_MS - 1);
    expect(await claim('b')).toMatchObject({ outcome: 'DONE', costNanoUsd: 1_234n });
    clock.advance(1);
    expect((await claim('b')).outcome).toBe('CLAIMED');
  });

  test('an answer of more than a mebibyte is not kept, and its cost is', async () => {
    const { claim, claims, ref } = await open();
    await claim('a');
    await claims.end(ref('a'), { kind: 'ended', costNanoUsd: 7n, answer: Buffer.alloc(ANSWER_BYTES_MAX + 1) });
    expect(await claim('b')).toEqual({ outcome: 'DONE', requestId: 'a', costNanoUsd: 7n, answer: undefined });
  });

  test('a claim whose owner fell silent is left, and goes to one of those who ask for it by name', async () => {
    const { claim, claims, ref, clock } = await open();
    await claim('a');
    clock.advance(LEASE_MS - 1);
    expect(await claim('b', 'a')).toEqual({ outcome: 'RUNNING', requestId: 'a', leaseLeftMs: 1 });
    await claims.renew(ref('a'));
    clock.advance(LEASE_MS);
    expect(await claim('b')).toEqual({ outcome: 'LEFT', requestId: 'a', leftMs: 0 });
    expect((await claim('b', 'other')).outcome).toBe('LEFT');
    const taken = await Promise.all(['b', 'c', 'd'].map((requestId) => claim(requestId, 'a')));
    expect(taken.map(({ outcome }) => outcome).sort()).toEqual(['CLAIMED', 'RUNNING', 'RUNNING']);
    // The previous owner, which was silent, can no longer change the claim.
    const owner = taken.find(({ outcome }) => outcome === 'CLAIMED')?.requestId ?? '';
    await claims.end(ref('a'), { kind: 'ended', costNanoUsd: 5n, answer: undefined });
    await claims.end(ref('a'), { kind: 'freed' });
    expect(await claim('e')).toMatchObject({ outcome: 'RUNNING', requestId: owner });
  });

  test.each([3_600_000, REMEMBERED_MS + 3_600_000])('a clock that is set ahead by %d ms ends no lease: its owner has had no time to renew it', async (aheadMs) => {
    const { claim, claims, ref, clock } = await open();
    await claim('a');
    // A fraction of a millisecond, as monotonic clocks have.
    clock.advance(0.4);
    clock.jumpWall(aheadMs);
    expect(await claim('b')).toEqual({ outcome: 'RUNNING', requestId: 'a', leaseLeftMs: LEASE_MS });
    expect((await claim('b', 'a')).outcome).toBe('RUNNING');
    await claims.purge();
    clock.advance(LEASE_MS / 3);
    expect(await claims.renew(ref('a'))).toEqual({ isLost: false, leaseLeftMs: LEASE_MS });
    clock.advance(LEASE_MS - 1);
    expect(await claim('b', 'a')).toEqual({ outcome: 'RUNNING', requestId: 'a', leaseLeftMs: 1 });
    clock.advance(1);
    expect((await claim('b')).outcome).toBe('LEFT');
  });

  test('one that nobody renews after the clock was set ahead is left since then, not since before; one that is set back tells nothing', async () => {
    const { claim, claims, ref, clock } = await open();
    await claim('a');
    clock.jumpWall(3_600_000);
    expect((await claim('b')).outcome).toBe('RUNNING');
    clock.advance(LEASE_MS + 5.4);
    expect(await claim('b')).toEqual({ outcome: 'LEFT', requestId: 'a', leftMs: 5 });
    clock.jumpWall(-3_600_000);
    await claims.renew(ref('a'));
    expect(await claim('b', 'a')).toEqual({ outcome: 'RUNNING', requestId: 'a', leaseLeftMs: LEASE_MS });
  });

  test('a freed key is free at once, an abandoned one is left at once', async () => {
    const { claim, claims, ref } = await open();
    await claim('a');
    await claims.end(ref('a'), { kind: 'freed' });
    expect((await claim('b', '', 'another body')).outcome).toBe('CLAIMED');
    await claims.end(ref('b'), { kind: 'abandoned' });
    expect(await claim('c', '', 'another body')).toEqual({ outcome: 'LEFT', requestId: 'b', leftMs: 0 });
  });

  test('what has not told that it begins gives way to the first that comes when its short lease is over, and finds its claim gone', async () => {
    const { claim, claimToBegin, claims, ref, clock } = await open();
    expect(await claimToBegin('a')).toEqual({ outcome: 'CLAIMED', requestId: 'a', leaseLeftMs: TO_BEGIN_LEASE_MS_MAX, isToBegin: true });
    clock.advance(TO_BEGIN_LEASE_MS_MAX - 1);
    expect((await claimToBegin('b')).outcome).toBe('RUNNING');
    expect(await claims.renew(ref('a'))).toEqual({ isLost: false, leaseLeftMs: TO_BEGIN_LEASE_MS_MAX });
    clock.advance(TO_BEGIN_LEASE_MS_MAX - 1);
    expect((await claimToBegin('b')).outcome).toBe('RUNNING');
    clock.advance(1);
    const taken = await Promise.all(['b', 'c', 'd'].map((requestId) => claimToBegin(requestId, requestId)));
    expect(taken.map(({ outcome }) => outcome).sort()).toEqual(['CLAIMED', 'OTHER_BODY', 'OTHER_BODY']);
    expect([await claims.begin(ref('a')), await claims.renew(ref('a'))]).toEqual([{ isLost: true }, { isLost: true }]);
    for (const kind of ['freed', 'abandoned'] as const) await claims.end(ref('a'), { kind });
    expect((await claim('e')).outcome).toBe('OTHER_BODY');
  });

  test('what has told so is left to the ledger as ever, and may tell it twice', async () => {
    const { claimToBegin, claims, ref, clock } = await open();
    await claimToBegin('a');
    // Nobody else claimed it while its lease was over.
    clock.advance(2 * TO_BEGIN_LEASE_MS_MAX);
    for (let i = 0; i < 2; i += 1) expect(await claims.begin(ref('a'))).toEqual({ isLost: false, leaseLeftMs: LEASE_MS });
    expect(await claimToBegin('a')).toMatchObject({ outcome: 'CLAIMED', isToBegin: false });
    clock.advance(LEASE_MS - 1);
    expect((await claimToBegin('b')).outcome).toBe('RUNNING');
    clock.advance(1);
    expect(await claimToBegin('b')).toEqual({ outcome: 'LEFT', requestId: 'a', leftMs: 0 });
    await claims.end(ref('a'), { kind: 'ended', costNanoUsd: 3n, answer: undefined });
    expect([await claims.begin(ref('a')), await claims.renew(ref('a'))]).toEqual([{ isLost: true }, { isLost: true }]);
  });

  test('a request that never tells keeps its claim as ever, and one whose client left before it told frees it', async () => {
    const { claim, claimToBegin, claims, ref, clock } = await open();
    await claimToBegin('a');
    clock.advance(TO_BEGIN_LEASE_MS_MAX);
    // An edge of the previous version does not report `begin`, so it may have dispatched at any time.
    expect(await claim('b')).toEqual({ outcome: 'CLAIMED', requestId: 'b', leaseLeftMs: LEASE_MS, isToBegin: false });
    clock.advance(LEASE_MS);
    expect((await claimToBegin('c')).outcome).toBe('LEFT');
    expect(await claim('c', 'b', 'body', true)).toMatchObject({ outcome: 'CLAIMED', isToBegin: true });
    // A request whose client left before anything was dispatched.
    await claims.end(ref('c'), { kind: 'abandoned' });
    expect((await claimToBegin('d')).outcome).toBe('CLAIMED');
  });

  test('purging forgets what is over and nothing else', async () => {
    const { claim, claims, ref, clock } = await open();
    await claim('a');
    await claims.end(ref('a'), { kind: 'ended', costNanoUsd: null, answer: undefined });
    clock.advance(REMEMBERED_MS - 1);
    await claims.purge();
    expect((await claim('b')).outcome).toBe('DONE');
    clock.advance(1);
    expect(await claims.purge()).toBeGreaterThan(0);
    expect((await claim('b', '', 'another body')).outcome).toBe('CLAIMED');
  });
});

test('a claim that code of before gave to another is not to begin, whatever the one before it told', async () => {
  const { db, close } = openDatabase<AccountsSchema>({ url: new Secret(await testPostgresUrl()), poolMax: 1, log: silentLog, statementTimeoutMs: 5_000 });
  closers.push(close);
  await migrate(db, MIGRATIONS, { schema: 'accounts' });
  const clock = createFakeClock();
  const claims = createClaims({ store: createPostgresClaimStore(db), clock, envelope: createEnvelope(new Secret('secrets key of the tests'), [], randomBytes, 'signalbox kept answer'), leaseMs: LEASE_MS });
  const accountId = `acct_${randomUUID()}`;
  const wanted = (requestId: string) => ({ accountId, keyDigest: Buffer.from('k'), bodyDigest: Buffer.from('b'), requestId, takesOver: '', tellsBegin: true });
  await claims.claim(wanted('a'));
  // The previous version's statement does not set `to_begin`.
  await sql`update accounts.claim set request_id = 'b', lease_ends_ms = ${clock.nowMs()} where account_id = ${accountId}`.execute(db);
  expect((await claims.claim(wanted('c'))).outcome).toBe('LEFT');
  await claims.renew(wanted('b'));
  clock.advance(LEASE_MS - 1);
  expect((await claims.claim(wanted('c'))).outcome).toBe('RUNNING');
});

test('an answer opens under an older key that is still known, and under no other', async () => {
  const store = createMemoryClaimStore();
  const clock = createFakeClock();
  const [one, two] = [new Secret('first key of the operator'), new Secret('second key of the operator')];
  const under = (current: Secret, older: readonly Secret[]): Claims => createClaims({ store, clock, envelope: createEnvelope(current, older, randomBytes, 'signalbox kept answer'), leaseMs: LEASE_MS });
  const wanted = (requestId: string) => ({ accountId: 'acct_1', keyDigest: Buffer.from('k'), bodyDigest: Buffer.from('b'), requestId, takesOver: '', tellsBegin: false });
  await under(one, []).claim(wanted('a'));
  await under(one, []).end(wanted('a'), { kind: 'ended', costNanoUsd: 1n, answer: Buffer.from('kept') });
  expect(await under(two, [one]).claim(wanted('b'))).toMatchObject({ outcome: 'DONE', answer: Buffer.from('kept') });
  expect(await under(two, []).claim(wanted('b'))).toEqual({ outcome: 'DONE', requestId: 'a', costNanoUsd: 1n, answer: undefined });
});
