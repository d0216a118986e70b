import { describe, expect, test } from '@jest/globals';
import type { KeyInvalidated } from '@signalbox/contracts/events';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { randomBytes } from 'node:crypto';
import { sessionDigest } from '../domain/session-token.js';
import { PEPPER } from '../testing/accounts.js';
import { bench, revoked } from '../testing/authenticator-bench.js';
import { accountWith, keyWith } from '../testing/callers.js';

test('accounts is told about the uses of admitted keys, but not of refused ones', async () => {
  const { clock, accounts, ask } = await bench();
  const refused = makeApiKey(randomBytes);
  accounts.add(refused, { key: keyWith({ id: 'key_2', status: 'revoked' }), account: accountWith() });
  expect([await ask(), await ask(refused), await ask(makeApiKey(randomBytes))]).toEqual(['caller', 'revoked', 'invalid']);
  const usedAt = Math.floor(clock.nowMs() / 1_000);
  await clock.advanceAsync(6_000);
  expect(accounts.touches).toEqual([{ key_1: usedAt }]);
});

describe('look-up', () => {
  test('is not needed for a malformed or mistyped key', async () => {
    const { ask, accounts, key } = await bench();
    const mistyped = `${key.slice(0, 20)}${key[20] === 'a' ? 'b' : 'a'}${key.slice(21)}`;
    expect([await ask('sk-other'), await ask(mistyped), accounts.lookUps]).toEqual(['invalid', 'invalid', 0]);
  });

  test('happens once for many simultaneous requests of an uncached key', async () => {
    const { ask, accounts } = await bench();
    expect(new Set(await Promise.all(Array.from({ length: 50 }, () => ask())))).toEqual(new Set(['caller']));
    expect(accounts.lookUps).toBe(1);
  });

  test('happens once a minute for a cached key, which gives the same caller object in between', async () => {
    const { authenticator, ask, accounts, clock, key } = await bench();
    const [first, second] = [await authenticator.authenticate(key), await authenticator.authenticate(key)];
    expect(first.kind === 'caller' && second.kind === 'caller' && first.caller === second.caller).toBe(true);
    await clock.advanceAsync(59_000);
    await ask();
    expect(accounts.lookUps).toBe(1);
    await clock.advanceAsync(2_000);
    await ask();
    expect(accounts.lookUps).toBe(2);
  });

  test('happens every two seconds at most for an unknown key, which works soon after it is created', async () => {
    const { ask, accounts, clock } = await bench();
    const other = makeApiKey(randomBytes);
    expect([await ask(other), await ask(other), accounts.lookUps]).toEqual(['invalid', 'invalid', 1]);
    accounts.add(other, { key: keyWith({ id: 'key_2' }), account: accountWith() });
    clock.advance(2_000);
    expect(await ask(other)).toBe('caller');
  });
});

describe('states', () => {
  test.each<[string, object, object]>([
    ['revoked', { status: 'revoked' }, {}],
    ['disabled', { status: 'disabled' }, {}],
    ['expired', { status: 'expired' }, {}],
    ['suspended', {}, { suspended: true }],
    ['caller', { status: 'rotating' }, {}],
  ])('of a key are told as %s to the holder of the secret', async (state, key, account) => {
    const { ask, accounts, key: secret } = await bench();
    accounts.add(secret, { key: keyWith(key), account: accountWith(account) });
    expect(await ask()).toBe(state);
  });

  test('a cached key expires at its time', async () => {
    const { ask, accounts, clock, key } = await bench();
    accounts.add(key, { key: keyWith({ expiresAt: String(clock.nowMs() / 1_000 + 5) }), account: accountWith() });
    expect(await ask()).toBe('caller');
    clock.advance(4_999);
    expect(await ask()).toBe('caller');
    clock.advance(1);
    expect(await ask()).toBe('expired');
  });

  test.each([-60_000, 60_000])('a key lives as long as accounts says, even if the clock here differs by %d ms', async (apartMs) => {
    const { ask, accounts, clock, key } = await bench();
    accounts.atMs = clock.nowMs() - apartMs;
    accounts.add(key, { key: keyWith({ expiresAt: String(accounts.atMs / 1_000 + 5) }), account: accountWith() });
    expect(await ask()).toBe('caller');
    clock.advance(4_999);
    expect(await ask()).toBe('caller');
    clock.advance(1);
    expect(await ask()).toBe('expired');
  });

  test.each(['is there', 'is away'])('a clock that is set ahead does not end a key early, while accounts %s', async (accountsIs) => {
    const { ask, accounts, clock, key } = await bench();
    const tell = (): void => {
      accounts.atMs = 1_767_225_600_000 + clock.monotonicMs();
      accounts.add(key, { key: keyWith({ expiresAt: String(1_767_225_600 + 30) }), account: accountWith() });
    };
    tell();
    expect(await ask()).toBe('caller');
    clock.jumpWall(3_600_000);
    accounts.isAway = accountsIs === 'is away';
    tell();
    expect([await ask(), await ask(), await ask()]).toEqual(['caller', 'caller', 'caller']);
    expect(accounts.lookUps).toBe(2);
    clock.advance(30_000);
    expect(await ask()).toBe('expired');
  });

  test('after the host was suspended past the end of a key, accounts is asked and the key is refused', async () => {
    const { ask, accounts, clock, key } = await bench();
    accounts.add(key, { key: keyWith({ expiresAt: String(clock.nowMs() / 1_000 + 600) }), account: accountWith() });
    expect(await ask()).toBe('caller');
    clock.jumpWall(3_600_000);
    accounts.add(key, { key: keyWith({ status: 'expired', expiresAt: String(clock.nowMs() / 1_000 - 3_000) }), account: accountWith() });
    expect([await ask(), await ask(), accounts.lookUps]).toEqual(['expired', 'expired', 2]);
  });
});

describe('invalidation', () => {
  test.each<[string, KeyInvalidated]>([
    ['of the key', { keyId: 'key_1', accountId: 'acct_1', reason: 'revoked' }],
    ['of the whole account', { keyId: '', accountId: 'acct_1', reason: 'suspended' }],
  ])('%s takes effect at the next request', async (_name, event) => {
    const { ask, accounts, key, invalidate } = await bench();
    await ask();
    accounts.add(key, revoked);
    expect(await ask()).toBe('caller');
    await invalidate(event);
    expect(await ask()).toBe('revoked');
  });

  test('of another key costs this key no look-up', async () => {
    const { ask, accounts, invalidate } = await bench();
    await ask();
    await invalidate({ keyId: 'key_9', accountId: 'acct_9' });
    await ask();
    expect(accounts.lookUps).toBe(1);
  });

  test('that arrives during a look-up prevents that its outdated answer is used later', async () => {
    const { ask, accounts, key, invalidate } = await bench();
    let open = (): void => undefined;
    accounts.gate = new Promise((resolve) => {
      open = resolve;
    });
    const before = ask();
    accounts.add(key, revoked);
    await invalidate({ keyId: 'key_1', accountId: 'acct_1' });
    const after = ask();
    open();
    expect([await before, await after]).toEqual(['caller', 'revoked']);
    expect(await ask()).toBe('revoked');
  });

  test('whose event cannot be read makes all keys be rechecked', async () => {
    const { ask, accounts, key, bus, clock } = await bench();
    await ask();
    accounts.add(key, revoked);
    bus.announce('keys.v1.revoked', Buffer.from([255, 255, 255]));
    await clock.settle();
    expect(await ask()).toBe('revoked');
  });

  test('does not cause look-ups of other keys while the bus is disconnected', async () => {
    const { ask, accounts, bus, clock } = await bench();
    await ask();
    bus.setConnected(false);
    await clock.advanceAsync(30_000);
    bus.setConnected(true);
    await ask();
    expect(accounts.lookUps).toBe(1);
  });
});

describe('while accounts is away', () => {
  test('a cached key works for ten minutes and then gets a retryable error; an uncached key gets it at once', async () => {
    const { ask, accounts, clock } = await bench();
    await ask();
    accounts.isAway = true;
    expect(await ask(makeApiKey(randomBytes))).toBe('fault');
    await clock.advanceAsync(599_000);
    expect(await ask()).toBe('caller');
    clock.advance(2_000);
    expect(await ask()).toBe('fault');
    accounts.isAway = false;
    expect(await ask()).toBe('caller');
  });

  test('a cached key does not wait for accounts again and again', async () => {
    const { ask, accounts, clock } = await bench();
    await ask();
    accounts.isAway = true;
    clock.advance(61_000);
    expect(await ask()).toBe('caller');
    // From here on the look-up hangs, and no other request may hang with it.
    accounts.gate = new Promise(() => undefined);
    expect(await ask()).toBe('caller');
    clock.advance(600);
    expect(await ask()).toBe('caller');
    expect(accounts.lookUps).toBe(3);
  });
});

test('no cached key waits for an accounts that does not answer, from the first request on', async () => {
  const { authenticator, ask, accounts, clock, key } = await bench();
  await ask();
  accounts.gate = new Promise(() => undefined);
  accounts.listChanges = () => new Promise(() => undefined);
  for (let i = 0; i < 40; i += 1) {
    await clock.advanceAsync(100);
    expect(authenticator.authenticate(key)).toMatchObject({ kind: 'caller' });
  }
});

test('the number of sessions of a key does not make the index grow beyond the cache, and an invalidation finds them all', async () => {
  const { ask, accounts, authenticator, key, invalidate } = await bench(10);
  await ask();
  for (let i = 0; i < 100; i += 1) {
    const [token, { digest }] = [`token ${i}`, authenticator.digest(key)];
    accounts.sessions.set(sessionDigest(PEPPER, token).toString('hex'), digest.toString('hex'));
    expect(await authenticator.authenticateSession(token)).toMatchObject({ kind: 'caller' });
  }
  expect([authenticator.size(), authenticator.indexed()]).toEqual([10, 20]);
  await invalidate({ keyId: 'key_1', accountId: 'acct_1', reason: 'revoked' });
  expect([authenticator.size(), authenticator.indexed()]).toEqual([0, 0]);
});

test('the answer of a look-up that began before the revocation is not kept: the next request is refused', async () => {
  const { ask, accounts, clock, key, invalidate } = await bench();
  let answer: () => void = () => undefined;
  accounts.gate = new Promise((resolve) => (answer = resolve));
  const first = ask();
  await clock.settle();
  accounts.add(key, revoked);
  await invalidate({ keyId: 'key_1', accountId: 'acct_1', reason: 'revoked' });
  accounts.gate = undefined;
  answer();
  // Read before the revocation: the request that asked then may still get it.
  expect(await first).toBe('caller');
  expect(await ask()).toBe('revoked');
});

test('only a cached key that may be used counts as warm', async () => {
  const { ask, accounts, key, authenticator } = await bench();
  expect(authenticator.isWarm(key)).toBe(false);
  await ask();
  expect([authenticator.isWarm(key), authenticator.isWarm('junk'), authenticator.size()]).toEqual([true, false, 1]);
  const bad = makeApiKey(randomBytes);
  accounts.add(bad, revoked);
  await ask(bad);
  expect(authenticator.isWarm(bad)).toBe(false);
});
