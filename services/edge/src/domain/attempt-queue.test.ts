import { expect, test } from '@jest/globals';
import type { PlannedAttempt__Output } from '@signalbox/contracts/routing';
import { AttemptQueue } from './attempt-queue.js';

const planned = (...ids: readonly string[]): PlannedAttempt__Output[] => ids.map((endpointId) => ({ endpointId }) as PlannedAttempt__Output);

/** Takes all that are left. */
function rest(queue: AttemptQueue): string[] {
  const ids: string[] = [];
  for (let next = queue.take(); next !== undefined; next = queue.take()) ids.push(next.endpointId);
  return ids;
}

test('no more than three attempts are taken, in the order of the plan', () => {
  const queue = new AttemptQueue(planned('a', 'b', 'c', 'd'));
  expect(queue.peek()?.endpointId).toBe('a');
  expect(rest(queue)).toEqual(['a', 'b', 'c']);
  expect(queue.peek()).toBeUndefined();
});

test('another credential or connection is tried next, once for each attempt, and drops the last attempt of a full queue', () => {
  const queue = new AttemptQueue(planned('a', 'b', 'c'));
  queue.take();
  queue.retryNext();
  expect(queue.take()?.endpointId).toBe('a');
  queue.retryNext();
  expect(rest(queue)).toEqual(['b']);
});

test('another replica is tried last, once for each attempt, and not if the queue is full', () => {
  const lost = {};
  const queue = new AttemptQueue(planned('a', 'b'));
  const first = queue.take();
  queue.retryAtOtherReplica(lost);
  expect(queue.take()?.endpointId).toBe('b');
  queue.retryAtOtherReplica({});
  const again = queue.take();
  expect(again).toBe(first);
  expect(again === undefined ? undefined : queue.replicaToAvoid(again)).toBe(lost);
  queue.retryAtOtherReplica({});
  expect(rest(queue)).toEqual([]);
});

test('narrowing keeps the present attempt and only filters the following ones', () => {
  const queue = new AttemptQueue(planned('a', 'b', 'c'));
  queue.take();
  queue.narrow((upcoming) => {
    expect(upcoming.map(({ endpointId }) => endpointId)).toEqual(['b', 'c']);
    return upcoming.slice(1);
  });
  expect(rest(queue)).toEqual(['c']);
});
