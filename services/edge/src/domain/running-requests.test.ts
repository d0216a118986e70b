import { expect, test } from '@jest/globals';
import { createRunningRequests } from './running-requests.js';

test('cut ends the requests of one key, and neither ended requests nor those of other keys', () => {
  const running = createRunningRequests();
  const cuts: string[] = [];
  const enter = (keyId: string, name: string): (() => void) => running.enter(keyId, (how) => void cuts.push(how === 'cut' ? name : `${name} stopped`));
  const leaveFirst = enter('key_a', 'first');
  const leaveSecond = enter('key_a', 'second');
  enter('key_b', 'third');
  leaveFirst();
  expect([running.cut('key_a'), running.cut('key_none'), cuts]).toEqual([1, 0, ['second']]);
  leaveSecond();
  const leaveFourth = enter('key_c', 'fourth');
  leaveFourth();
  enter('key_c', 'fifth');
  // Ending a request that was cut before does not remove another one.
  leaveFourth();
  expect([running.cut('key_c'), cuts]).toEqual([1, ['second', 'fifth']]);
});

test('has is true until all requests of the key have ended', () => {
  const running = createRunningRequests();
  const leave = [running.enter('key_a', () => undefined), running.enter('key_a', () => undefined)];
  const told = () => [running.has('key_a'), running.has('key_b')];
  expect(told()).toEqual([true, false]);
  leave[0]?.();
  expect(told()).toEqual([true, false]);
  leave[1]?.();
  expect(told()).toEqual([false, false]);
});

test('cuts and counts a request once, however often its key is said to be compromised', () => {
  const running = createRunningRequests();
  const cuts: string[] = [];
  running.enter('key_a', () => void cuts.push('first'));
  expect([running.cut('key_a'), running.cut('key_a')]).toEqual([1, 0]);
  running.enter('key_a', () => void cuts.push('second'));
  expect([running.cut('key_a'), cuts]).toEqual([0, ['first', 'second']]);
});

test('stop ends the requests of all keys', () => {
  const running = createRunningRequests();
  const ended: string[] = [];
  for (const keyId of ['key_a', 'key_b', 'key_a']) running.enter(keyId, (how) => void ended.push(`${keyId} ${how}`));
  running.stop();
  expect(ended.sort()).toEqual(['key_a stop', 'key_a stop', 'key_b stop']);
});

test('a request that arrives after its key was cut is cut, and none of another key', () => {
  const running = createRunningRequests();
  const cuts: string[] = [];
  running.cut('key_a');
  for (const keyId of ['key_a', 'key_b', 'key_a']) running.enter(keyId, () => void cuts.push(keyId))();
  expect(cuts).toEqual(['key_a', 'key_a']);
});
