import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createSilence } from './silence.js';

const PATIENCE_MS = 50;

/** A store whose answers are given by hand, and an event loop whose turns are. */
function watched() {
  const clock = createFakeClock();
  const turns: (() => void)[] = [];
  const probes: ((value: unknown) => void)[] = [];
  const silence = createSilence({ clock, patienceMs: PATIENCE_MS, afterTurn: (callback) => turns.push(callback), probe: () => new Promise((resolve) => probes.push(resolve)) });
  const send = () => {
    let answer: (value: string) => void = () => undefined;
    let fail: (error: Error) => void = () => undefined;
    const outcome = silence.within(new Promise<string>((resolve, reject) => [answer, fail] = [resolve, reject])).then((value) => value, (error: Error) => error.message);
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
