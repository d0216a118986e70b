import { describe, expect, test } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '@signalbox/bus/memory';
import type { KeyInvalidated, KeyInvalidated__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { randomBytes } from 'node:crypto';
import { sessionDigest } from '../domain/session-token.js';
import { createFakeAccounts, PEPPER, type FakeAccounts } from '../testing/accounts.js';
import { accountWith, keyWith } from '../testing/callers.js';
import { createAuthenticator, type Authentication, type Authenticator } from './authenticator.js';

const codec = messageCodec<KeyInvalidated, KeyInvalidated__Output>('signalbox.events.v1.KeyInvalidated');

interface Bench {
  readonly clock: FakeClock;
  readonly bus: MemoryBus;
  readonly accounts: FakeAccounts;
  readonly authenticator: Authenticator;
  readonly key: string;
  /** Keys whose requests are to end. */
  readonly cut: readonly string[];
  /** The kind or state of the answer, or `fault`. */
  ask(key?: string): Promise<string>;
  invalidate(event: KeyInvalidated): Promise<void>;
}

async function bench(keysMax?: number, isServing?: () => boolean): Promise<Bench> {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const accounts = createFakeAccounts();
  const key = makeApiKey(randomBytes);
  accounts.add(key, { key: keyWith(), account: accountWith() });
  const cut: string[] = [];
  const authenticator = createAuthenticator({ accounts, bus, clock, pepper: new Secret(PEPPER), variant: 'A', onCompromised: (keyId) => void cut.push(keyId), ...(keysMax === undefined ? {} : { keysMax }), ...(isServing === undefined ? {} : { isServing }) });
  await authenticator.start();
  // Past the first answer of what was changed.
  await clock.advanceAsync(1);
  const told = (found: Authentication): string => (found.kind === 'refused' ? found.state : found.kind);
  return {
    clock,
    bus,
    accounts,
    authenticator,
    key,
    cut,
    ask: (asked = key) => Promise.resolve(authenticator.authenticate(asked)).then(told, () => 'fault'),
    invalidate: async (event) => {
      bus.announce('keys.v1.revoked', codec.encode(event));
      await clock.settle();
    },
  };
}

const revoked = { key: keyWith({ status: 'revoked' }), account: accountWith() };

test('accounts is told which keys were let in, and not of those that were refused', async () => {
  const { clock, accounts, ask } = await bench();
  const refused = makeApiKey(randomBytes);
  accounts.add(refused, { key: keyWith({ id: 'key_2', status: 'revoked' }), account: accountWith() });
  expect([await ask(), await ask(refused), await ask(makeApiKey(randomBytes))]).toEqual(['caller', 'revoked', 'invalid']);
  const usedAt = Math.floor(clock.nowMs() / 1_000);
  await clock.advanceAsync(6_000);
  expect(accounts.touches).toEqual([{ key_1: usedAt }]);
});

describe('look-up', () => {
  test('a key that is malformed or mistyped costs none', async () => {
    const { ask, accounts, key } = await bench();
    const mistyped = `${key.slice(0, 20)}${key[20] === 'a' ? 'b' : 'a'}${key.slice(21)}`;
    expect([await ask('sk-other'), await ask(mistyped), accounts.lookUps]).toEqual(['invalid', 'invalid', 0]);
  });

  test('many requests of one cold key cost one', async () => {
    const { ask, accounts } = await bench();
    expect(new Set(await Promise.all(Array.from({ length: 50 }, () => ask())))).toEqual(new Set(['caller']));
    expect(accounts.lookUps).toBe(1);
  });

  test('a warm key costs one a minute, and gives the same caller object between', async () => {
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

  test('an unknown key costs one each two seconds, and works soon after it is made', async () => {
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
  ])('is told as %s to whoever holds the secret', async (state, key, account) => {
    const { ask, accounts, key: secret } = await bench();
    accounts.add(secret, { key: keyWith(key), account: accountWith(account) });
    expect(await ask()).toBe(state);
  });

  test('a cached key expires at its moment', async () => {
    const { ask, accounts, clock, key } = await bench();
    accounts.add(key, { key: keyWith({ expiresAt: String(clock.nowMs() / 1_000 + 5) }), account: accountWith() });
    expect(await ask()).toBe('caller');
    clock.advance(4_999);
    expect(await ask()).toBe('caller');
    clock.advance(1);
    expect(await ask()).toBe('expired');
  });

  test.each([-60_000, 60_000])('a key lives as long as accounts says where the clock here is apart from its own by %d ms', async (apartMs) => {
    const { ask, accounts, clock, key } = await bench();
    accounts.atMs = clock.nowMs() - apartMs;
    accounts.add(key, { key: keyWith({ expiresAt: String(accounts.atMs / 1_000 + 5) }), account: accountWith() });
    expect(await ask()).toBe('caller');
    clock.advance(4_999);
    expect(await ask()).toBe('caller');
    clock.advance(1);
    expect(await ask()).toBe('expired');
  });
});

describe('invalidation', () => {
  test.each<[string, KeyInvalidated]>([
    ['of the key', { keyId: 'key_1', accountId: 'acct_1', reason: 'revoked' }],
    ['of the whole account', { keyId: '', accountId: 'acct_1', reason: 'suspended' }],
  ])('%s is seen by the next request', async (_name, event) => {
    const { ask, accounts, key, invalidate } = await bench();
    await ask();
    accounts.add(key, revoked);
    expect(await ask()).toBe('caller');
    await invalidate(event);
    expect(await ask()).toBe('revoked');
  });

  test('of another key costs this one nothing', async () => {
    const { ask, accounts, invalidate } = await bench();
    await ask();
    await invalidate({ keyId: 'key_9', accountId: 'acct_9' });
    await ask();
    expect(accounts.lookUps).toBe(1);
  });

  test('that overtakes a look-up is never answered with what was read before it', async () => {
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

  test('that cannot be read rechecks everything', async () => {
    const { ask, accounts, key, bus, clock } = await bench();
    await ask();
    accounts.add(key, revoked);
    bus.announce('keys.v1.revoked', Buffer.from([255, 255, 255]));
    await clock.settle();
    expect(await ask()).toBe('revoked');
  });

  test('without a connection to the bus costs no look-up of other keys', async () => {
    const { ask, accounts, bus, clock } = await bench();
    await ask();
    bus.setConnected(false);
    await clock.advanceAsync(30_000);
    bus.setConnected(true);
    await ask();
    expect(accounts.lookUps).toBe(1);
  });
});

describe('a change of which no event is heard', () => {
  const told = { keyId: 'key_1', accountId: 'acct_1', reason: 'revoked' };

  test('is asked of accounts, and seen within a second', async () => {
    const { ask, accounts, key, clock } = await bench();
    await clock.advanceAsync(10_000);
    await ask();
    accounts.add(key, revoked);
    accounts.changes.push(told);
    await clock.advanceAsync(400);
    expect(await ask()).toBe('revoked');
  });

  test('ends what runs with a compromised key', async () => {
    const { accounts, clock, cut } = await bench();
    accounts.changes.push({ ...told, reason: 'compromised' });
    await clock.advanceAsync(400);
    expect(cut).toEqual(['key_1']);
  });

  test('is seen page by page where many came at once, none of them left out', async () => {
    const { ask, accounts, key, clock } = await bench();
    await ask();
    accounts.add(key, revoked);
    const others = Array.from({ length: 4 }, () => ({ ...told, keyId: 'key_9' }));
    const all = [...others, told];
    const asked: string[] = [];
    accounts.listChanges = async ({ after = '' }) => {
      asked.push(after);
      const until = Math.min(Number(after) + 2, all.length);
      return { cursor: String(until), changes: all.slice(Number(after), until), unbroken: true, more: until < all.length };
    };
    await clock.advanceAsync(400);
    expect(asked).toEqual(['0', '2', '4']);
    expect(await ask()).toBe('revoked');
  });

  test('is seen within a second too where accounts does not know what was changed since', async () => {
    const { ask, accounts, key, clock } = await bench();
    await ask();
    accounts.add(key, revoked);
    accounts.listChanges = async () => ({ cursor: 'of another database', changes: [], unbroken: false, more: false });
    await clock.advanceAsync(900);
    expect(await ask()).toBe('revoked');
  });

  test.each<[string, FaultCode]>([
    ['an accounts of before', 'unknown_method'],
    ['an accounts that cannot read them', 'internal_error'],
  ])('is seen within a second as well with %s', async (_name, code) => {
    const { ask, accounts, key, clock } = await bench();
    accounts.listChanges = () => Promise.reject(new Fault(code, 'not here'));
    await clock.advanceAsync(10_000);
    await ask();
    accounts.add(key, revoked);
    await clock.advanceAsync(900);
    expect(await ask()).toBe('revoked');
  });

  test('is seen though every other replica of accounts hangs', async () => {
    const { ask, accounts, key, clock } = await bench();
    await ask();
    let asked = 0;
    accounts.listChanges = ({ after = '' }) => {
      asked += 1;
      return asked % 2 === 0 ? new Promise(() => undefined) : Promise.resolve({ cursor: String(accounts.changes.length), changes: accounts.changes.slice(Number(after)), unbroken: true, more: false });
    };
    await clock.advanceAsync(10_000);
    await ask();
    expect(accounts.lookUps).toBe(1);
    accounts.add(key, revoked);
    accounts.changes.push(told);
    await clock.advanceAsync(600);
    expect(await ask()).toBe('revoked');
  });

  test('is seen though two replicas of accounts that hang are asked first', async () => {
    const { ask, accounts, key, clock } = await bench();
    await clock.advanceAsync(10_000);
    await ask();
    accounts.add(key, revoked);
    accounts.changes.push(told);
    let asked = 0;
    accounts.listChanges = ({ after = '' }) => {
      asked += 1;
      return asked <= 2 ? new Promise(() => undefined) : Promise.resolve({ cursor: String(accounts.changes.length), changes: accounts.changes.slice(Number(after)), unbroken: true, more: false });
    };
    await clock.advanceAsync(800);
    expect(await ask()).toBe('revoked');
  });

  test('costs few questions while nothing is changed', async () => {
    const { accounts, clock } = await bench();
    let asked = 0;
    accounts.listChanges = async ({ after = '' }) => {
      asked += 1;
      return { cursor: after, changes: [], unbroken: true, more: false };
    };
    await clock.advanceAsync(10_000);
    expect(asked).toBe(25);
  });

  test('is not missed when a late answer comes after that of a later question', async () => {
    const { ask, accounts, key, clock } = await bench();
    await ask();
    const answers: (() => void)[] = [];
    const cursors: string[] = [];
    accounts.listChanges = ({ after = '' }) => {
      cursors.push(after);
      const page = { cursor: String(accounts.changes.length), changes: accounts.changes.slice(Number(after)), unbroken: true, more: false };
      return new Promise((resolve) => answers.push(() => resolve(page)));
    };
    await clock.advanceAsync(400);
    accounts.add(key, revoked);
    accounts.changes.push(told);
    await clock.advanceAsync(200);
    answers[1]?.();
    await clock.settle();
    answers[0]?.();
    await clock.settle();
    await clock.advanceAsync(400);
    expect(cursors).toEqual(['0', '0', '1']);
    expect(await ask()).toBe('revoked');
  });
});

describe('while no key is used and nothing runs', () => {
  const told = { keyId: 'key_1', accountId: 'acct_1', reason: 'revoked' };
  const rested = async (): Promise<Bench & { readonly questions: () => number }> => {
    const made = await bench(undefined, () => false);
    let questions = 0;
    made.accounts.listChanges = async ({ after = '' }) => {
      questions += 1;
      return { cursor: String(made.accounts.changes.length), changes: made.accounts.changes.slice(Number(after)), unbroken: true, more: false };
    };
    await made.ask();
    await made.clock.advanceAsync(10_000);
    expect(questions).toBeGreaterThanOrEqual(20);
    await made.clock.advanceAsync(7_000);
    questions = 0;
    return { ...made, questions: () => questions };
  };

  test('accounts is seldom asked what was changed, and from the next request on as often as ever', async () => {
    const { ask, clock, questions } = await rested();
    await clock.advanceAsync(30_000);
    expect(questions()).toBe(6);
    await ask();
    const asked = questions();
    await clock.advanceAsync(2_000);
    expect(questions() - asked).toBeGreaterThanOrEqual(4);
  });

  test('a key that was revoked meanwhile is refused from the first request on, though no event was heard', async () => {
    const { ask, accounts, key, clock } = await rested();
    await clock.advanceAsync(3_000);
    accounts.add(key, revoked);
    accounts.changes.push(told);
    await clock.advanceAsync(1_000);
    expect(await ask()).toBe('revoked');
  });

  test('one answer is of all keys: the first requests look none of them up', async () => {
    const { ask, accounts, clock, questions } = await rested();
    await clock.advanceAsync(4_000);
    const before = questions();
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(['caller', 'caller', 'caller']);
    expect([accounts.lookUps, questions() - before]).toEqual([1, 1]);
  });

  test('an accounts of before this question is asked about the key instead', async () => {
    const { ask, accounts, key, clock } = await rested();
    accounts.listChanges = () => Promise.reject(new Fault('unknown_method', 'not here'));
    accounts.add(key, revoked);
    await clock.advanceAsync(4_000);
    expect(await ask()).toBe('revoked');
  });

  test('a replica of accounts that hangs does not hold up the first request for long, nor does its absence', async () => {
    const { ask, accounts, clock } = await rested();
    accounts.gate = new Promise(() => undefined);
    accounts.listChanges = () => new Promise(() => undefined);
    await clock.advanceAsync(1_000);
    let answer = '';
    void ask().then((told) => (answer = told));
    await clock.advanceAsync(500);
    expect(answer).toBe('caller');
  });

  test('it is known that accounts is away: the first request does not wait at all', async () => {
    const { authenticator, accounts, clock, key } = await rested();
    accounts.gate = new Promise(() => undefined);
    accounts.listChanges = () => new Promise(() => undefined);
    await clock.advanceAsync(20_000);
    expect(authenticator.authenticate(key)).toMatchObject({ kind: 'caller' });
  });

  test('but a request that still runs is cut within a second when its key is compromised', async () => {
    const { accounts, clock, cut, ask } = await bench(undefined, () => true);
    await ask();
    await clock.advanceAsync(3_000_000);
    accounts.changes.push({ ...told, reason: 'compromised' });
    await clock.advanceAsync(900);
    expect(cut).toEqual(['key_1']);
  });
});

describe('while accounts is away', () => {
  test('a warm key works for ten minutes, then asks for a retry; a cold one at once', async () => {
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

  test('a warm key does not wait for it again and again', async () => {
    const { ask, accounts, clock } = await bench();
    await ask();
    accounts.isAway = true;
    clock.advance(61_000);
    expect(await ask()).toBe('caller');
    // From here on the look-up hangs: nobody may hang with it.
    accounts.gate = new Promise(() => undefined);
    expect(await ask()).toBe('caller');
    clock.advance(600);
    expect(await ask()).toBe('caller');
    expect(accounts.lookUps).toBe(3);
  });
});

test('no warm key waits for an accounts that answers nothing any more, from the first request on', async () => {
  const { authenticator, ask, accounts, clock, key } = await bench();
  await ask();
  accounts.gate = new Promise(() => undefined);
  accounts.listChanges = () => new Promise(() => undefined);
  for (let i = 0; i < 40; i += 1) {
    await clock.advanceAsync(100);
    expect(authenticator.authenticate(key)).toMatchObject({ kind: 'caller' });
  }
});

test('however many sessions a key signs in, no more is kept than what is cached, and an invalidation finds all of that', async () => {
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

test('what a look-up answers after the key was revoked is not kept: the next request is refused', async () => {
  const { ask, accounts, clock, key, invalidate } = await bench();
  let answer: () => void = () => undefined;
  accounts.gate = new Promise((resolve) => (answer = resolve));
  const first = ask();
  await clock.settle();
  accounts.add(key, revoked);
  await invalidate({ keyId: 'key_1', accountId: 'acct_1', reason: 'revoked' });
  accounts.gate = undefined;
  answer();
  // Read before the revocation: the one that asked then may still have it.
  expect(await first).toBe('caller');
  expect(await ask()).toBe('revoked');
});

test('only a cached key that may be used is warm', async () => {
  const { ask, accounts, key, authenticator } = await bench();
  expect(authenticator.isWarm(key)).toBe(false);
  await ask();
  expect([authenticator.isWarm(key), authenticator.isWarm('junk'), authenticator.size()]).toEqual([true, false, 1]);
  const bad = makeApiKey(randomBytes);
  accounts.add(bad, revoked);
  await ask(bad);
  expect(authenticator.isWarm(bad)).toBe(false);
});
