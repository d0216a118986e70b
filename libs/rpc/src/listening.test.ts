import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { Listening, type Patient } from './listening.js';

const SILENCE_MS = 150;

function watched() {
  const clock = createFakeClock();
  const waiting: Patient[] = [];
  const lost: number[] = [];
  const turns: (() => void)[] = [];
  let asked = 0;
  const listening = new Listening<Patient>({
    clock,
    waiting: () => [...waiting],
    ask: () => void (asked += 1),
    lose: (patient) => {
      waiting.splice(waiting.indexOf(patient), 1);
      lost.push(clock.monotonicMs());
    },
    afterTurn: (callback) => void turns.push(callback),
  });
  /** One turn of the event loop. */
  const turn = (): void => turns.splice(0).forEach((callback) => callback());
  const run = (ms: number): void => {
    for (let i = 0; i < ms; i += 1) {
      clock.advance(1);
      turn();
      turn();
    }
  };
  const begin = (silenceMs = SILENCE_MS): Patient => {
    const patient = { silenceMs, listenedBefore: 0 };
    waiting.push(patient);
    listening.begin(patient);
    return patient;
  };
  return { clock, listening, waiting, lost, turn, run, begin, asked: () => asked };
}

test('a peer that says nothing is given up after just so long, and is asked once meanwhile', () => {
  const { listening, lost, run, begin, asked } = watched();
  begin();
  run(SILENCE_MS - 1);
  expect([lost, asked(), listening.isSilent]).toEqual([[], 1, false]);
  run(1);
  expect([lost, asked(), listening.isSilent]).toEqual([[SILENCE_MS], 1, true]);
  listening.heard();
  expect(listening.isSilent).toBe(false);
});

test('any word of it begins the wait anew, and another is asked for only after a silence', () => {
  const { listening, lost, run, begin, asked } = watched();
  begin();
  for (let word = 0; word < 20; word += 1) {
    run(SILENCE_MS - 1);
    listening.heard();
  }
  expect(lost).toEqual([]);
  expect(asked()).toBe(20);
  run(SILENCE_MS);
  expect(lost).toHaveLength(1);
});

test('each has its own wait, of its own length, from when it began', () => {
  const { lost, run, begin } = watched();
  begin();
  run(60);
  begin();
  run(7);
  begin(20);
  run(1_000);
  expect(lost).toEqual([67 + 20, SILENCE_MS, 60 + SILENCE_MS]);
});

test('time that passed before anybody waited counts for nobody, nor does what lies between two that wait', () => {
  const { clock, waiting, lost, run, begin } = watched();
  run(10_000);
  begin();
  run(SILENCE_MS - 1);
  waiting.splice(0);
  run(10_000);
  const startMs = clock.monotonicMs();
  begin();
  run(SILENCE_MS - 1);
  expect(lost).toEqual([]);
  run(1);
  expect(lost).toEqual([startMs + SILENCE_MS]);
});

test('what this process was held up does not count', () => {
  const { clock, lost, turn, run, begin } = watched();
  begin();
  // Five slices of 25 ms, each counted as 27 ms: 15 ms are left.
  for (let stall = 0; stall < 5; stall += 1) {
    clock.stall(400);
    turn();
    turn();
  }
  expect(lost).toEqual([]);
  run(14);
  expect(lost).toEqual([]);
  run(1);
  expect(lost).toEqual([2_015]);
});

test('words that lie in the socket are read before a peer is called silent', () => {
  const { clock, listening, lost, turn, run, begin } = watched();
  begin();
  run(SILENCE_MS - 1);
  clock.advance(1);
  turn();
  listening.heard();
  turn();
  expect(lost).toEqual([]);
  expect(listening.isSilent).toBe(false);
});

test('no timer while nobody waits, and none after the end', () => {
  const { clock, listening, waiting, lost, run, begin } = watched();
  expect(clock.pendingTimers()).toBe(0);
  begin();
  begin();
  expect(clock.pendingTimers()).toBe(1);
  waiting.splice(0);
  run(25);
  expect(clock.pendingTimers()).toBe(0);
  begin();
  listening.end();
  run(1_000);
  expect([clock.pendingTimers(), lost]).toEqual([0, []]);
});
