import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { untilConnected } from './accounts-client.js';

const settled = async (): Promise<void> => {
  for (let i = 0; i < 5; i += 1) await Promise.resolve();
};

function waiting() {
  const clock = createFakeClock();
  const state = { isConnected: false, isOver: false };
  void untilConnected({ isConnected: () => state.isConnected }, clock).then(() => (state.isOver = true));
  return { clock, state };
}

test('a start waits for its connection longer than a call would: a busy machine ends no start', async () => {
  const { clock, state } = waiting();
  clock.advance(25_000);
  await settled();
  expect(state.isOver).toBe(false);
  state.isConnected = true;
  clock.advance(10);
  await settled();
  expect(state.isOver).toBe(true);
});

test('who never answers is not waited for without end', async () => {
  const { clock, state } = waiting();
  clock.advance(30_000);
  await settled();
  expect(state.isOver).toBe(true);
});
