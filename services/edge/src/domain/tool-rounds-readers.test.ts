import { expect, test } from '@jest/globals';
import { events, type PlayedCall } from '../testing/neighbours.js';
import { chunkOf, ours, story, streaming } from '../testing/rounds-story.js';

test('a client that hardly reads has ten minutes for all rounds together', async () => {
  const says = (call: PlayedCall): void => {
    if (call === fake.calls[0]) call.listener.onEvent(events.role());
    call.listener.onEvent(chunkOf({ content: 'Let me see. ' }));
  };
  const { fake, answer, run } = story({ request: { stream: true }, rounds: [says] });
  answer.isStalled = true;
  const running = run();
  /** Reads a byte every 15 s. */
  const trickle = (seconds: number): void => {
    for (let second = 0; second < seconds; second += 15) {
      answer.takenBytes = (answer.takenBytes ?? 0) + 1;
      fake.clock.advance(15_000);
    }
  };
  for (let round = 0; round < 2; round += 1) {
    await fake.clock.settle();
    const call = fake.calls[round];
    trickle(240);
    expect([call?.isPaused, call?.isCancelled]).toEqual([true, false]);
    answer.drain();
    answer.isStalled = true;
    call?.play(...streaming(ours(`call_${round}`)).slice(1));
  }
  await fake.clock.settle();
  expect(fake.calls).toHaveLength(3);
  trickle(120);
  expect(answer.said).not.toContain('abandon slow');
  trickle(15);
  expect(answer.said.at(-1)).toBe('abandon slow');
  expect(await running).toMatchObject({ result: 'gone' });
  expect(fake.calls[2]?.isCancelled).toBe(true);
});
