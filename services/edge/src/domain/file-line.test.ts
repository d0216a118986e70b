import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createFileLine } from './file-line.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Enters `count` requests; `told` is what became of them, in order. */
function enter(line: ReturnType<typeof createFileLine>, accountId: string, count: number, signal?: AbortSignal) {
  const told: string[] = [];
  const leaves: (() => void)[] = [];
  for (let at = 0; at < count; at += 1) {
    void line.enter(accountId, signal ?? new AbortController().signal).then(
      (leave) => {
        told.push(`in ${at}`);
        leaves.push(leave);
      },
      (error: { readonly code: string }) => void told.push(`${error.code} ${at}`),
    );
  }
  return { told, leaves };
}

test('four of an account have a place, twenty wait in their order, and others are not in their way', async () => {
  const line = createFileLine(createFakeClock());
  const many = enter(line, 'acct_1', 25);
  const other = enter(line, 'acct_2', 1);
  await turn();
  expect([many.told, other.told]).toEqual([['in 0', 'in 1', 'in 2', 'in 3', 'overloaded 24'], ['in 0']]);
  many.leaves.splice(0, 2).forEach((leave) => leave());
  await turn();
  expect(many.told.slice(5)).toEqual(['in 4', 'in 5']);
});

test('who has left, or has waited for 20 s, is not in the line any more, and every place comes back', async () => {
  const clock = createFakeClock();
  const line = createFileLine(clock);
  const first = enter(line, 'acct_1', 4);
  const left = new AbortController();
  const leaving = enter(line, 'acct_1', 1, left.signal);
  const late = enter(line, 'acct_1', 1);
  left.abort();
  await turn();
  clock.advance(19_999);
  await turn();
  expect([leaving.told, late.told]).toEqual([['overloaded 0'], []]);
  clock.advance(1);
  await turn();
  expect(late.told).toEqual(['overloaded 0']);
  first.leaves.forEach((leave) => leave());
  const again = enter(line, 'acct_1', 5);
  await turn();
  expect(again.told).toEqual(['in 0', 'in 1', 'in 2', 'in 3']);
});
