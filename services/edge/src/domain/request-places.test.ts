import { expect, test } from '@jest/globals';
import { createRequestPlaces, type RequestPlaces } from './request-places.js';

/** How many begin, or arrive, until one is refused. */
const begun = (places: RequestPlaces, accountId: string): number => {
  let count = 0;
  while (places.begin(accountId)) count += 1;
  return count;
};
const arrived = (places: RequestPlaces, accountId?: string): (() => void)[] => {
  const left: (() => void)[] = [];
  for (let leave = places.arrive(accountId); leave !== undefined; leave = places.arrive(accountId)) left.push(leave);
  return left;
};

test('no request is refused below a thousand in flight, whoever asks', () => {
  const places = createRequestPlaces(1_000);
  expect(places.begin('acct_2')).toBe(true);
  places.end('acct_2');
  expect(arrived(places, 'acct_1').length).toBe(1_000);
  const working = createRequestPlaces(1_000);
  expect([working.begin('acct_2'), begun(working, 'acct_1'), working.isFull()]).toEqual([true, 999, true]);
});

test('one account takes at most four fifths of the places while others are present, and all while it is alone', () => {
  const places = createRequestPlaces(4_000);
  expect(begun(places, 'acct_1')).toBe(4_000);
  expect(places.isFull()).toBe(true);
  for (let n = 0; n < 4_000; n += 1) places.end('acct_1');
  expect(places.begin('acct_2')).toBe(true);
  expect(begun(places, 'acct_1')).toBe(3_200);
  expect([places.isFull(), places.begin('acct_2'), places.begin('acct_3')]).toEqual([false, true, true]);
});

test('incomplete requests take no places of complete ones, and one account takes at most half of those for incomplete ones', () => {
  const places = createRequestPlaces(4_000);
  expect(places.begin('acct_2')).toBe(true);
  const idle = arrived(places, 'acct_1');
  expect([idle.length, places.arriving(), places.isFull()]).toEqual([2_000, 2_000, false]);
  expect(arrived(places, 'acct_2').length).toBe(1_000);
  expect(places.begin('acct_1')).toBe(true);
  for (const leave of [...idle, ...idle]) leave();
  expect(places.arriving()).toBe(1_000);
  expect(arrived(places, 'acct_1').length).toBe(1_500);
});

test('requests whose key is being looked up belong to no account: they have a common bound and no shares', () => {
  const places = createRequestPlaces(1_500);
  expect(arrived(places).length).toBe(1_500);
  expect([places.arrive('acct_1'), places.begin('acct_1')]).toEqual([undefined, true]);
});
