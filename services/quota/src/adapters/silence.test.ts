import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createSilence } from './silence.js';

const PATIENCE_MS = 50;

/** A store whose answers, and an event loop whose turns, are controlled by the test. */
function watched() {
  const clock = createFakeClock();
  const turns: (() => void)[] = [];
  const probes: ((value: unknown) => void)[] = [];
  const silence = createSilence({ clock, patienceMs: PATIENCE_MS, afterTurn: (callback) => turns.push(callback), probe: () => new Promise((resolve) => probes.push(resolve)) });
  const send = (workMs?: number) => {
    let answer: (value: string) => void = () => undefined;
    let fail: (error: Error) => void = () => undefined;
    const outcome = silence.within(new Promise<string>((resolve, reject) => [answer, fail] = [resolve, reject]), workMs).then((value) => value, (error: Error) => error.message);
    return { answer, fail, outcome };
  };
  const turn = () => turns.splice(0).forEach((callback) => callback());
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { clock, silence, probes, send, turn, settle };
}

test('an answer that lay in the socket while this process was busy is no failure', async () => {
  const { clock, silence, send, turn, settle } = watched();
  const stalled = send();
  clock.advance(PATIENCE_MS * 10);
  turn();
  stalled.answer('in time');
  await settle();
  turn();
  expect(await stalled.outcome).toBe('in time');
  expect(silence.isSilent()).toBe(false);
});

test('a frozen store costs the first who ask the wait, and nobody after them', async () => {
  const { clock, silence, send, turn } = watched();
  const asked = send();
  clock.advance(PATIENCE_MS - 1);
  expect(silence.isSilent()).toBe(false);
  clock.advance(1);
  turn();
  turn();
  expect(await asked.outcome).toMatch(/^quota_unavailable/);
  expect(silence.isSilent()).toBe(true);
  clock.advance(60_000);
  expect(silence.isSilent()).toBe(true);
});

test('the first word of the store ends its silence: a late answer, an answer of error or a sign of life', async () => {
  for (const speak of ['late', 'error', 'sign'] as const) {
    const { clock, silence, probes, send, turn, settle } = watched();
    const asked = send();
    clock.advance(PATIENCE_MS);
    turn();
    turn();
    await asked.outcome;
    expect(silence.isSilent()).toBe(true);
    if (speak === 'late') asked.answer('at last');
    else if (speak === 'error') asked.fail(Object.assign(new Error('OOM'), { name: 'ReplyError' }));
    else {
      clock.advance(500);
      expect(probes).toHaveLength(2);
      probes[1]?.('PONG');
    }
    await settle();
    expect(silence.isSilent()).toBe(false);
  }
});

test('one command that is late beside others that were answered does not make the store silent', async () => {
  const { clock, silence, send, turn, settle } = watched();
  const lost = send();
  send().answer('here');
  await settle();
  clock.advance(PATIENCE_MS);
  turn();
  turn();
  expect(await lost.outcome).toMatch(/^quota_unavailable/);
  expect(silence.isSilent()).toBe(false);
});

test('the end of a connection is not a word of the store', async () => {
  const { clock, silence, send, turn, settle } = watched();
  const asked = send();
  clock.advance(PATIENCE_MS);
  turn();
  turn();
  await asked.outcome;
  asked.fail(new Error('Connection is closed.'));
  await settle();
  expect(silence.isSilent()).toBe(true);
  silence.reset();
  expect(silence.isSilent()).toBe(false);
});

test.each([
  { name: 'a process that runs gives the store its patience, no more', held: [], runs: PATIENCE_MS },
  { name: 'a slice that this process could not end in time counts as its length and 2 ms', held: [30], runs: 38 },
  { name: 'two of them count as two', held: [25, 25], runs: 26 },
  { name: 'timers that are late as those of an idle process are do not prolong the wait', held: [11, 11, 11, 11], runs: 6 },
  { name: 'however often this process is held up, by the clock the wait ends after twice as long', held: [30, 30, 30], runs: 10 },
  { name: 'and after one that was longer than that at once', held: [130], runs: 0 },
])('$name', async ({ held, runs }) => {
  const { clock, silence, send, turn } = watched();
  const asked = send();
  for (const [index, ms] of held.entries()) {
    clock.stall(ms);
    turn();
    turn();
    if (index < held.length - 1 || runs > 0) expect(silence.isSilent()).toBe(false);
  }
  if (runs > 0) {
    clock.advance(runs - 1);
    turn();
    turn();
    expect(silence.isSilent()).toBe(false);
    clock.advance(1);
    turn();
    turn();
  }
  expect(silence.isSilent()).toBe(true);
  expect(await asked.outcome).toMatch(/^quota_unavailable/);
});

test('a wait that begins within a slice has its whole patience, and one after a pause is not charged for it', async () => {
  const { clock, silence, send, turn, settle } = watched();
  const first = send();
  clock.advance(PATIENCE_MS - 7);
  const second = send();
  first.answer('here');
  await settle();
  clock.advance(PATIENCE_MS - 1);
  turn();
  turn();
  expect(silence.isSilent()).toBe(false);
  second.answer('here too');
  expect(await second.outcome).toBe('here too');
  clock.advance(10_000);
  const third = send();
  clock.advance(PATIENCE_MS - 1);
  turn();
  turn();
  expect(silence.isSilent()).toBe(false);
  clock.advance(1);
  turn();
  turn();
  expect(await third.outcome).toMatch(/^quota_unavailable/);
});

test('each word of the store begins the waits anew: a long round trip of which some is answered is no silence', async () => {
  const { clock, silence, send, turn } = watched();
  const asked = send();
  for (let words = 0; words < 10; words += 1) {
    clock.advance(PATIENCE_MS - 1);
    silence.heard();
  }
  turn();
  turn();
  clock.advance(PATIENCE_MS - 1);
  turn();
  turn();
  asked.answer('all of it');
  expect(await asked.outcome).toBe('all of it');
});

test('a store that says no more in the middle of a round trip is given up after one patience', async () => {
  const { clock, silence, send, turn } = watched();
  const asked = send();
  clock.advance(PATIENCE_MS - 1);
  silence.heard();
  clock.advance(PATIENCE_MS);
  turn();
  turn();
  expect(await asked.outcome).toMatch(/^quota_unavailable/);
  const next = send();
  clock.advance(PATIENCE_MS);
  turn();
  turn();
  expect(await next.outcome).toMatch(/^quota_unavailable/);
  expect(silence.isSilent()).toBe(true);
});

test('a word that lay in the socket as the wait ended is one for it, too', async () => {
  const { clock, silence, send, turn } = watched();
  const asked = send();
  clock.advance(PATIENCE_MS);
  turn();
  silence.heard();
  turn();
  clock.advance(PATIENCE_MS - 1);
  turn();
  turn();
  asked.answer('the rest');
  expect(await asked.outcome).toBe('the rest');
});

test('much work prolongs the wait for it, and no other', async () => {
  const { clock, silence, send, turn } = watched();
  const bulk = send(100);
  const small = send();
  clock.advance(PATIENCE_MS);
  turn();
  turn();
  expect(await small.outcome).toMatch(/^quota_unavailable/);
  clock.advance(99);
  turn();
  turn();
  bulk.answer('done');
  expect(await bulk.outcome).toBe('done');
  expect(silence.isSilent()).toBe(false);
});
