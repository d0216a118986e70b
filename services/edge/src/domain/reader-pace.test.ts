import { expect, test } from '@jest/globals';
import { ReaderPace, type Unread } from './reader-pace.js';

/** Looks every 15 s for as long as the client is waited for; `take`: bytes per look. Returns the verdict and its time in seconds. */
function readAt(take: (second: number) => number, { pace = new ReaderPace(), untilSecond = 7_200, fromSecond = 0 } = {}): readonly [Unread | undefined, number] {
  let taken = 0;
  pace.begin(0, fromSecond * 1_000);
  for (let second = fromSecond + 15; second <= untilSecond; second += 15) {
    taken += take(second);
    const unread = pace.look(taken, second * 1_000);
    if (unread !== undefined) return [unread, second];
  }
  return [undefined, untilSecond];
}

test('a client that takes nothing is given up after a minute, one that takes hardly anything after ten', () => {
  expect(readAt(() => 0)).toEqual(['stalled', 60]);
  expect(readAt((second) => (second % 45 === 0 ? 1 : 0))).toEqual(['slow', 615]);
});

test('one that takes a kilobyte a second is waited for without end, and one at half of that for twenty minutes', () => {
  expect(readAt(() => 15 * 1_024)).toEqual([undefined, 7_200]);
  expect(readAt(() => (15 * 1_024) / 2)).toEqual(['slow', 1_200]);
});

test('what was read early gives no time for later: patience is ten minutes at most', () => {
  expect(readAt((second) => (second < 60 ? 1e9 : second % 45 === 0 ? 1 : 0))).toEqual(['slow', 660]);
});

test('a client may not win time by reading just enough to be sent more', () => {
  const pace = new ReaderPace();
  let second = 0;
  let unread: Unread | undefined;
  while (unread === undefined) {
    // 256 bytes in 15 seconds, and the connection has room again.
    pace.begin(0, second * 1_000);
    second += 15;
    unread = pace.look(256, second * 1_000);
  }
  expect([unread, second]).toEqual(['slow', 615]);
});

test('time in which nothing waits for it does not count, nor the turn of another answer', () => {
  const pace = new ReaderPace();
  for (let hour = 0; hour < 10; hour += 1) {
    pace.begin(hour, hour * 3_600_000);
    expect(pace.look(hour + 1, hour * 3_600_000 + 15_000)).toBeUndefined();
  }
  const other = new ReaderPace();
  other.begin(undefined, 0);
  expect(other.look(undefined, 3_600_000)).toBeUndefined();
  expect(readAt(() => 0, { pace: other, fromSecond: 3_600 })).toEqual(['stalled', 3_660]);
});

test('an answer that waits as a whole has about an hour', () => {
  const bytes = 36e6;
  expect(readAt(() => 150_000, { pace: new ReaderPace(bytes), untilSecond: 3_600 })).toEqual([undefined, 3_600]);
  expect(readAt(() => 15 * 1_024, { pace: new ReaderPace(bytes) })[0]).toBe('slow');
});

test('time in which this process was suspended is not the client\'s', () => {
  const pace = new ReaderPace();
  pace.begin(0, 0);
  expect(pace.look(0, 7_200_000)).toBeUndefined();
  expect(pace.look(0, 7_215_000)).toBeUndefined();
  expect(pace.look(0, 7_230_000)).toBe('stalled');
});
