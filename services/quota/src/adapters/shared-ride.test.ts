import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createSharedRide } from './shared-ride.js';

/** A shared ride that records which work has begun. */
function riding() {
  const clock = createFakeClock();
  const ride = createSharedRide(clock, 20);
  const begun: string[] = [];
  const board = (name: string): Promise<string> =>
    ride.board(() => {
      begun.push(name);
      return Promise.resolve(name);
    });
  const depart = (name: string): void => {
    ride.depart();
    begun.push(name);
  };
  return { clock, ride, begun, board, depart };
}

test('what comes alone, or 20 ms after the last departure, begins at once', async () => {
  const { clock, begun, board, depart } = riding();
  expect(await board('a')).toBe('a');
  depart('x');
  clock.advance(20);
  void board('b');
  expect(begun).toEqual(['a', 'x', 'b']);
  expect(clock.pendingTimers()).toBe(0);
});

test('between departures it begins before the next one, all of it and in its order', async () => {
  const { clock, begun, board, depart } = riding();
  depart('x');
  const answers = [board('a'), board('b')];
  clock.advance(19);
  const late = board('c');
  expect(begun).toEqual(['x']);
  depart('y');
  expect(begun).toEqual(['x', 'a', 'b', 'c', 'y']);
  expect(await Promise.all([...answers, late])).toEqual(['a', 'b', 'c']);
});

test('nothing waits longer than 20 ms, nor overtakes what waits, though a timer of before has yet to fire', () => {
  const { clock, begun, board, depart } = riding();
  depart('x');
  void board('a');
  clock.advance(15);
  depart('y');
  void board('b');
  clock.advance(19);
  expect(begun).toEqual(['x', 'a', 'y']);
  void board('c');
  expect(begun).toEqual(['x', 'a', 'y']);
  clock.advance(1);
  expect(begun).toEqual(['x', 'a', 'y', 'b', 'c']);
  clock.advance(1_000);
  expect(clock.pendingTimers()).toBe(0);
});

test('a failure is its own, and what follows begins all the same', async () => {
  const { begun, ride, board, depart } = riding();
  depart('x');
  const failed = ride.board(() => Promise.reject(new Error('away'))).catch((error: Error) => error.message);
  const next = board('a');
  depart('y');
  expect([await failed, await next, begun]).toEqual(['away', 'a', ['x', 'a', 'y']]);
});
