import { expect, test } from '@jest/globals';
import { createGather, type ScriptCall, type ScriptResult } from './gather.js';

/** Round trips and event-loop turns that end when the test says so. */
function gathering() {
  const turns: (() => void)[] = [];
  const trips: { readonly calls: readonly ScriptCall[]; readonly end: (results: readonly ScriptResult[]) => void }[] = [];
  const gather = createGather({ afterTurn: (callback) => turns.push(callback), send: (calls) => new Promise((end) => trips.push({ calls, end })) });
  const turn = () => turns.splice(0).forEach((callback) => callback());
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { gather, trips, turn, settle };
}

test('steps of one kind travel in one call, with what they have in common said once, and each gets its own part of the answer', async () => {
  const { gather, trips, turn } = gathering();
  const answers = [['x', 'y'], ['x', 'y'], ['x', 'z'], ['x', 'y']].map((terms, i) => gather.step('admit', 'acct_1', terms, [`r${i}`]));
  expect(trips).toHaveLength(0);
  turn();
  expect(trips[0]?.calls).toMatchObject([{ name: 'admit', accountId: 'acct_1', args: ['2', 'x', 'y', 'x', 'z', '1', 'r0', '1', 'r1', '2', 'r2', '1', 'r3'] }]);
  trips[0]?.end([{ answer: ['a', 'b', 'c', 'd'] }]);
  expect(await Promise.all(answers)).toEqual(['a', 'b', 'c', 'd']);
});

test('an account\'s calls keep their order, other accounts come between, and no call grows beyond 100 requests', () => {
  const { gather, trips, turn } = gathering();
  const told = (name: 'admit' | 'finish', accountId: string): void => void gather.step(name, accountId, [], ['r']);
  told('admit', 'acct_1');
  told('admit', 'acct_2');
  told('admit', 'acct_1');
  told('finish', 'acct_1');
  told('admit', 'acct_1');
  void gather.call('show', 'acct_2', []);
  told('admit', 'acct_2');
  for (let i = 0; i < 150; i += 1) told('finish', 'acct_3');
  turn();
  expect(trips[0]?.calls.map(({ name, accountId, args }) => `${name} ${accountId} ${args.length}`)).toEqual(['admit acct_1 5', 'admit acct_2 3', 'finish acct_1 3', 'admit acct_1 3', 'show acct_2 0', 'admit acct_2 3', 'finish acct_3 201', 'finish acct_3 101']);
});

test('what comes while a round trip is under way goes with the next one, and a call that fails fails its requests alone', async () => {
  const { gather, trips, turn, settle } = gathering();
  const outcome = (answer: Promise<unknown>): Promise<unknown> => answer.catch((error: Error) => error.message);
  const first = outcome(gather.step('release', 'acct_1', [], ['a']));
  turn();
  const others = ['b', 'c'].map((id) => outcome(gather.step('release', 'acct_1', [], [id])));
  const short = [outcome(gather.step('release', 'acct_2', [], ['d'])), outcome(gather.step('release', 'acct_2', [], ['e']))];
  turn();
  expect(trips).toHaveLength(1);
  trips[0]?.end([{ answer: [1] }]);
  expect(await first).toBe(1);
  await settle();
  expect(trips[1]?.calls).toHaveLength(2);
  trips[1]?.end([{ error: new Error('OOM') }, { answer: [0] }]);
  expect(await Promise.all(others)).toEqual(['OOM', 'OOM']);
  expect(await Promise.all(short)).toEqual([0, 'the store answered out of turn']);
  void gather.step('release', 'acct_1', [], ['f']);
  turn();
  expect(trips).toHaveLength(3);
});

/** Like `gathering`, and the test decides when a round trip is late. */
function watchedGathering() {
  const turns: (() => void)[] = [];
  const ends: ((results: readonly ScriptResult[]) => void)[] = [];
  const waits: ((error: Error) => void)[] = [];
  const gather = createGather({
    afterTurn: (callback) => turns.push(callback),
    send: () => new Promise((end) => ends.push(end)),
    within: (trip) => new Promise((resolve, reject) => {
      waits.push(reject);
      trip.then(resolve, reject);
    }),
  });
  const turn = () => turns.splice(0).forEach((callback) => callback());
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  const ask = (id: string) => gather.step('release', 'acct_1', [], [id]).catch((error: Error) => error.message);
  return { ask, ends, waits, turn, settle };
}

test('the store\'s time begins as a round trip leaves: neither while calls gather nor while they wait for the trip before', async () => {
  const { ask, ends, waits, turn, settle } = watchedGathering();
  const first = ask('a');
  expect(waits).toHaveLength(0);
  turn();
  expect(waits).toHaveLength(1);
  const second = ask('b');
  expect(waits).toHaveLength(1);
  ends[0]?.([{ answer: [1] }]);
  await settle();
  expect([await first, waits.length, ends.length]).toEqual([1, 2, 2]);
  ends[1]?.([{ answer: [1] }]);
  expect(await second).toBe(1);
});

test('a round trip that is late fails its calls and those behind it, who comes then waits for it as long, and the next begins when it has ended', async () => {
  const { ask, ends, waits, turn, settle } = watchedGathering();
  const sent = ask('a');
  turn();
  const behind = ask('b');
  waits[0]?.(new Error('late'));
  expect([await sent, await behind]).toEqual(['late', 'late']);
  const stuck = ask('c');
  expect([waits.length, ends.length]).toEqual([2, 1]);
  waits[1]?.(new Error('late again'));
  expect(await stuck).toBe('late again');
  const lucky = ask('d');
  turn();
  await settle();
  expect([waits.length, ends.length]).toEqual([3, 1]);
  ends[0]?.([{ answer: [0] }]);
  await settle();
  expect([waits.length, ends.length]).toEqual([4, 2]);
  ends[1]?.([{ answer: [1] }]);
  expect(await lucky).toBe(1);
});
