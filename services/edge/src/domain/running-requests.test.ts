import { expect, test } from '@jest/globals';
import { createRunningRequests } from './running-requests.js';

test('cuts what runs with a key, and neither what has ended nor what others run', () => {
  const running = createRunningRequests();
  const cuts: string[] = [];
  const enter = (keyId: string, name: string): (() => void) => running.enter(keyId, () => void cuts.push(name));
  const leaveFirst = enter('key_a', 'first');
  const leaveSecond = enter('key_a', 'second');
  enter('key_b', 'third');
  leaveFirst();
  expect([running.cut('key_a'), running.cut('key_none'), cuts]).toEqual([1, 0, ['second']]);
  leaveSecond();
  enter('key_a', 'fourth');
  // The end of a request that was counted before does not end another's entry.
  leaveSecond();
  expect([running.cut('key_a'), cuts]).toEqual([1, ['second', 'fourth']]);
});
