/** How the authenticator learns about changes without an event. */
import { describe, expect, test } from '@jest/globals';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { Caller } from '../domain/ports.js';
import { bench, revoked, type Bench } from '../testing/authenticator-bench.js';
import { accountWith, keyWith } from '../testing/callers.js';

describe('a change whose event was lost', () => {
  const told = { keyId: 'key_1', accountId: 'acct_1', reason: 'revoked' };

  test('is found by asking accounts, and takes effect within a second', async () => {
    const { ask, accounts, key, clock } = await bench();
    await clock.advanceAsync(10_000);
    await ask();
    accounts.add(key, revoked);
    accounts.changes.push(told);
    await clock.advanceAsync(400);
    expect(await ask()).toBe('revoked');
  });

  test('ends the running requests of a compromised key', async () => {
    const { accounts, clock, cut } = await bench();
    accounts.changes.push({ ...told, reason: 'compromised' });
    await clock.advanceAsync(400);
    expect(cut).toEqual(['key_1']);
  });

  test('is found even if many changes at once fill several pages', async () => {
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

  test('takes effect within a second even if accounts no longer knows the changes since the last question', async () => {
    const { ask, accounts, key, clock } = await bench();
    await ask();
    accounts.add(key, revoked);
    accounts.listChanges = async () => ({ cursor: 'of another database', changes: [], unbroken: false, more: false });
    await clock.advanceAsync(900);
    expect(await ask()).toBe('revoked');
  });

  test.each<[string, FaultCode]>([
    ['an accounts of an older version', 'unknown_method'],
    ['an accounts that cannot read them', 'internal_error'],
  ])('takes effect within a second also with %s', async (_name, code) => {
    const { ask, accounts, key, clock } = await bench();
    accounts.listChanges = () => Promise.reject(new Fault(code, 'not here'));
    await clock.advanceAsync(10_000);
    await ask();
    accounts.add(key, revoked);
    await clock.advanceAsync(900);
    expect(await ask()).toBe('revoked');
  });

  test('is found even if every second replica of accounts hangs', async () => {
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

  test('is found even if the first two replicas of accounts that are asked hang', async () => {
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

  test('asking for changes is rare while nothing changes', async () => {
    const { accounts, clock } = await bench();
    let asked = 0;
    accounts.listChanges = async ({ after = '' }) => {
      asked += 1;
      return { cursor: after, changes: [], unbroken: true, more: false };
    };
    await clock.advanceAsync(10_000);
    expect(asked).toBe(25);
  });

  test('is not missed when a late answer arrives after that of a later question', async () => {
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

  test('accounts is rarely asked for changes, and as often as before from the next request on', async () => {
    const { ask, clock, questions } = await rested();
    await clock.advanceAsync(30_000);
    expect(questions()).toBe(6);
    await ask();
    const asked = questions();
    await clock.advanceAsync(2_000);
    expect(questions() - asked).toBeGreaterThanOrEqual(4);
  });

  test('a key that was revoked meanwhile is refused at the first request, although its event was lost', async () => {
    const { ask, accounts, key, clock } = await rested();
    await clock.advanceAsync(3_000);
    accounts.add(key, revoked);
    accounts.changes.push(told);
    await clock.advanceAsync(1_000);
    expect(await ask()).toBe('revoked');
  });

  test('one answer covers all keys: the first requests need no look-up', async () => {
    const { ask, accounts, clock, questions } = await rested();
    await clock.advanceAsync(4_000);
    const before = questions();
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(['caller', 'caller', 'caller']);
    expect([accounts.lookUps, questions() - before]).toEqual([1, 1]);
  });

  test('an older accounts that does not know the question is asked about the key instead', async () => {
    const { ask, accounts, key, clock } = await rested();
    accounts.listChanges = () => Promise.reject(new Fault('unknown_method', 'not here'));
    accounts.add(key, revoked);
    await clock.advanceAsync(4_000);
    expect(await ask()).toBe('revoked');
  });

  test('a hanging or absent replica of accounts does not delay the first request for long', async () => {
    const { ask, accounts, clock } = await rested();
    accounts.gate = new Promise(() => undefined);
    accounts.listChanges = () => new Promise(() => undefined);
    await clock.advanceAsync(1_000);
    let answer = '';
    void ask().then((told) => (answer = told));
    await clock.advanceAsync(500);
    expect(answer).toBe('caller');
  });

  test('an outage of accounts is noticed, so that the first request does not wait', async () => {
    const { authenticator, accounts, clock, key } = await rested();
    accounts.gate = new Promise(() => undefined);
    accounts.listChanges = () => new Promise(() => undefined);
    await clock.advanceAsync(20_000);
    expect(authenticator.authenticate(key)).toMatchObject({ kind: 'caller' });
  });

  test('a running request is still cut within a second when its key is compromised', async () => {
    const { accounts, clock, cut, ask } = await bench(undefined, () => true);
    await ask();
    await clock.advanceAsync(3_000_000);
    accounts.changes.push({ ...told, reason: 'compromised' });
    await clock.advanceAsync(900);
    expect(cut).toEqual(['key_1']);
  });
});

describe('the present record of a caller', () => {
  const lists = { key: keyWith(), account: accountWith({ denyModels: ['a/x'] }) };
  const callerOf = async ({ authenticator, key }: Bench): Promise<Caller> => {
    const found = await authenticator.authenticate(key);
    if (found.kind !== 'caller') throw new Error('The key must be good.');
    return found.caller;
  };

  test('is the caller itself while nothing was changed or nothing is cached', async () => {
    const made = await bench();
    const caller = await callerOf(made);
    expect(made.authenticator.present(caller)).toBe(caller);
    await made.invalidate({ keyId: '', accountId: 'acct_1', reason: 'account_changed' });
    expect(made.authenticator.present(caller)).toBe(caller);
  });

  test('has the new lists as soon as a change is known, without another request', async () => {
    const made = await bench(undefined, undefined, (keyId) => keyId === 'key_1');
    const caller = await callerOf(made);
    made.accounts.add(made.key, lists);
    await made.invalidate({ keyId: '', accountId: 'acct_1', reason: 'account_changed' });
    expect(made.authenticator.present(caller).account.denyModels).toEqual(['a/x']);
  });

  test('has the new lists of a suspended account, too', async () => {
    const made = await bench(undefined, undefined, () => true);
    const caller = await callerOf(made);
    made.accounts.add(made.key, { ...lists, account: { ...lists.account, suspended: true } });
    await made.invalidate({ keyId: '', accountId: 'acct_1', reason: 'account_changed' });
    expect(made.authenticator.present(caller).account.denyModels).toEqual(['a/x']);
  });

  test('never has older lists again, and a change that is reported twice is looked up twice', async () => {
    const made = await bench(undefined, undefined, () => true);
    const caller = await callerOf(made);
    const change = { keyId: '', accountId: 'acct_1', reason: 'account_changed' };
    const denied = () => made.authenticator.present(caller).account.denyModels;
    made.accounts.add(made.key, lists);
    await made.invalidate(change);
    // The look-up fails: the cached record is dropped and not replaced.
    made.accounts.gate = new Promise(() => undefined);
    await made.invalidate(change);
    expect([made.accounts.lookUps, made.authenticator.size(), denied()]).toEqual([3, 0, ['a/x']]);
  });

  test('keeps the lists that a regular recheck brought without a notice', async () => {
    const made = await bench(undefined, undefined, () => true);
    const caller = await callerOf(made);
    made.accounts.add(made.key, lists);
    await made.clock.advanceAsync(60_001);
    await callerOf(made);
    made.accounts.gate = new Promise(() => undefined);
    await made.invalidate({ keyId: '', accountId: 'acct_1', reason: 'account_changed' });
    expect(made.authenticator.present(caller).account.denyModels).toEqual(['a/x']);
  });

  test('is looked up again if another change arrives while the answer is on its way', async () => {
    const made = await bench(undefined, undefined, () => true);
    const caller = await callerOf(made);
    let open: () => void = () => undefined;
    made.accounts.gate = new Promise((resolve) => (open = resolve));
    await made.invalidate({ keyId: '', accountId: 'acct_1', reason: 'account_changed' });
    made.accounts.add(made.key, lists);
    await made.invalidate({ keyId: '', accountId: 'acct_1', reason: 'account_changed' });
    made.accounts.gate = undefined;
    open();
    await made.clock.settle();
    expect(made.authenticator.present(caller).account.denyModels).toEqual(['a/x']);
  });

  test('costs no look-up for a key without running requests', async () => {
    const made = await bench(undefined, undefined, () => false);
    await callerOf(made);
    await made.invalidate({ keyId: '', accountId: 'acct_1', reason: 'account_changed' });
    expect(made.accounts.lookUps).toBe(1);
  });

  test('is the one that another request of the key brought, if accounts was away at first', async () => {
    const made = await bench(undefined, undefined, () => true);
    const caller = await callerOf(made);
    made.accounts.add(made.key, lists);
    made.accounts.isAway = true;
    await made.invalidate({ keyId: '', accountId: 'acct_1', reason: 'account_changed' });
    made.accounts.isAway = false;
    await callerOf(made);
    expect(made.authenticator.present(caller).account.denyModels).toEqual(['a/x']);
  });

  test('does not change while accounts is away, and no request waits for it', async () => {
    const made = await bench(undefined, undefined, () => true);
    const caller = await callerOf(made);
    made.accounts.isAway = true;
    await made.invalidate({ keyId: '', accountId: 'acct_1', reason: 'account_changed' });
    expect(made.authenticator.present(caller)).toBe(caller);
  });
});
