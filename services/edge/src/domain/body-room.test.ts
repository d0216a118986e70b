import { expect, test } from '@jest/globals';
import { createBodyRoom } from './body-room.js';

const KIB = 1_024;

test('one account takes at most half of the room and all together at most the whole, and freed room can be used again', () => {
  const room = createBodyRoom(1_000 * KIB);
  const places = ['acct_1', 'acct_1', 'acct_2', 'acct_3'].map((accountId) => room.enter(accountId));
  expect(places.map((place) => place.take(300 * KIB))).toEqual([true, false, true, true]);
  expect(places[2]?.take(200 * KIB)).toBe(false);
  expect(room.enter('acct_4').take(101 * KIB)).toBe(false);
  expect(room.enter('acct_4').take(100 * KIB)).toBe(true);
  for (const place of places) place.leave();
  for (const place of places) place.leave();
  expect(['acct_1', 'acct_2'].map((accountId) => room.enter(accountId).take(450 * KIB))).toEqual([true, true]);
});

test('a body counts as it arrives, once it is no longer small; small bodies are not counted', () => {
  const room = createBodyRoom(200 * KIB);
  expect(Array.from({ length: 100 }, () => room.enter('acct_1').take(64 * KIB)).every(Boolean)).toBe(true);
  const slow = room.enter('acct_1');
  expect([slow.take(64 * KIB), slow.isCounted()]).toEqual([true, false]);
  expect([slow.take(36 * KIB), slow.isCounted(), slow.take(1)]).toEqual([true, true, false]);
});

test('what was refused does not count: a smaller answer that comes instead of a large one has room', () => {
  const room = createBodyRoom(1_000 * KIB);
  const place = room.enter('acct_1');
  expect([place.take(10 * KIB), place.take(600 * KIB), place.take(490 * KIB), place.take(1)]).toEqual([true, false, true, false]);
  place.leave();
  expect(room.enter('acct_1').take(500 * KIB)).toBe(true);
});
