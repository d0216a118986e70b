import { describe, expect, test } from '@jest/globals';
import { createIdSource } from '@signalbox/kernel/ids';
import { randomBytes } from '@signalbox/runtime/random';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createHmac } from 'node:crypto';
import { createMemorySessionStore } from '../adapters/memory-session-store.js';
import { createMemoryStore } from '../adapters/memory-store.js';
import { createKeys, newKeyRecord, NO_LIMITS } from './keys.js';
import { createSecretMaker } from './secrets.js';
import { createSessions } from './sessions.js';

const PEPPER = 'a pepper of enough length';
const IDLE_SECONDS = 600;
const ABSOLUTE_SECONDS = 3_600;

async function world() {
  const clock = createFakeClock();
  const told: string[] = [];
  const announcer = { invalidated: ({ keyId, reason }: { keyId: string; reason: string }) => void told.push(`${keyId} ${reason}`) };
  const secrets = createSecretMaker(new Secret(PEPPER), randomBytes);
  const store = createMemoryStore();
  const made = secrets.make();
  const key = newKeyRecord({ id: 'key_1', accountId: 'acct_1', name: 'k', prefix: made.prefix, scopes: ['keys'], createdAt: 0, expiresAt: null, limits: NO_LIMITS });
  await store.insertAccount(
    {
      id: 'acct_1', name: 'one', tier: 'team', variant: '', suspended: false, requestsPerMinute: null, burstPerSecond: null, includedTokens: null, byokTokens: null, overageNanoUsdPerMillion: null, trialCreditNanoUsd: null, keptCreditNanoUsd: null, hardCap: false, costCaps: [], policyCostCaps: [], policyHardCap: false, policyBaselineModel: '', storeAnswers: false, policyStoreAnswers: false, costWeight: null,
      baselineModel: '', allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], routingMode: '', billingAnchorDay: 0, createdAt: 0,
    },
    { key, secret: { digest: made.digest, pepperId: secrets.pepperId, keyId: key.id, validUntil: null } },
  );
  const keys = createKeys({ store, announcer, clock, ids: createIdSource(clock, randomBytes), secrets });
  const sessions = createSessions({ store: createMemorySessionStore(), keys, announcer, clock, idleSeconds: IDLE_SECONDS, absoluteSeconds: ABSOLUTE_SECONDS });
  const digest = createHmac('sha256', PEPPER).update('a token').digest();
  const create = (named = digest) => sessions.create(named, made.digest, secrets.pepperId);
  return { clock, told, keys, sessions, digest, create, secrets };
}

describe('sessions', () => {
  test('live as long as they are used, and end with disuse', async () => {
    const { clock, sessions, digest, create } = await world();
    await create();
    for (let i = 0; i < 4; i += 1) {
      clock.advance((IDLE_SECONDS - 1) * 1_000);
      expect(await sessions.use(digest)).toBeDefined();
    }
    // Edge caches a session for a minute, and reports no use during that time.
    clock.advance((60 + IDLE_SECONDS - 1) * 1_000);
    expect(await sessions.use(digest)).toBeDefined();
    clock.advance((60 + IDLE_SECONDS) * 1_000);
    expect(await sessions.use(digest)).toBeUndefined();
  });
  test('end at their age, however they are used', async () => {
    const { clock, sessions, digest, create } = await world();
    await create();
    for (let seconds = 0; seconds + 300 < ABSOLUTE_SECONDS; seconds += 300) {
      clock.advance(300_000);
      expect(await sessions.use(digest)).toBeDefined();
    }
    clock.advance(300_000);
    expect(await sessions.use(digest)).toBeUndefined();
  });
  test('are not made with a key that may not be used, nor under a digest of another length', async () => {
    const { keys, sessions, create, secrets } = await world();
    expect(await sessions.create(Buffer.alloc(32), Buffer.alloc(32), secrets.pepperId)).toBeUndefined();
    expect(await sessions.create(Buffer.alloc(3), Buffer.alloc(32), secrets.pepperId)).toBeUndefined();
    await keys.revoke('acct_1', 'key_1');
    expect(await create()).toBeUndefined();
  });
  test('give way beyond fifty of a secret, and edge is told', async () => {
    const { clock, told, sessions, digest, create } = await world();
    await create();
    for (let i = 1; i < 50; i += 1) {
      clock.advance(1_000);
      await create(createHmac('sha256', PEPPER).update(`token ${i}`).digest());
    }
    expect([await sessions.use(digest), told]).toEqual([expect.anything(), []]);
    clock.advance(1_000);
    await create(createHmac('sha256', PEPPER).update('one more').digest());
    expect([await sessions.use(digest), told]).toEqual([undefined, ['key_1 session_ended']]);
  });
  test('are ended once, and edge is told by the key', async () => {
    const { told, sessions, digest, create, secrets } = await world();
    await create();
    await sessions.end(digest, secrets.pepperId);
    await sessions.end(digest, secrets.pepperId);
    expect(await sessions.use(digest)).toBeUndefined();
    expect(told).toEqual(['key_1 session_ended']);
  });
});
