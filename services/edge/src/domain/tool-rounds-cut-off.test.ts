import { expect, test } from '@jest/globals';
import { chunkOf, calling, ours, story, streaming, type Setting } from '../testing/rounds-story.js';
import { events, type PlayedCall } from '../testing/neighbours.js';

const callsWhole = (call: PlayedCall): void => call.play(...calling(ours()));
const callsStreamed = (call: PlayedCall): void => call.play(...streaming(ours()));
const talksAndCalls = (call: PlayedCall): void => call.play(events.role(), chunkOf({ content: 'Let me see. ' }), ...streaming(ours()).slice(1));
const begins = (call: PlayedCall): void => call.listener.onEvent(events.started());
const stream: Setting['request'] = { stream: true };
const untilAborted = (_request: unknown, signal: AbortSignal): Promise<never> => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));

/** What workers hear when nobody is there any more, `byItself` or cut off by edge, once the story stands still. */
async function heard(setting: Setting, byItself: boolean): Promise<{ readonly outcomes: readonly string[]; readonly wasted: readonly string[] }> {
  const { fake, answer, run } = story(setting);
  const wasted: string[] = [];
  Object.assign(fake, { wastedRuns: { note: (accountId: string) => void wasted.push(accountId), waitMs: () => 0 } });
  const running = run();
  await fake.clock.settle();
  answer.leave(byItself);
  expect((await running).result).toBe('gone');
  return { outcomes: fake.outcomes, wasted };
}

test.each<[string, Setting, readonly string[]]>([
  ['within the first round', { rounds: [begins] }, ['a#1 DISCARDED']],
  ['while a tool runs', { rounds: [callsWhole], runTool: untilAborted }, ['a#1 DISCARDED']],
  ['within a later round, which leaves the hold to the one before', { rounds: [callsWhole, begins] }, ['a#2 DISCARDED followed', 'a#1 DISCARDED']],
  ['of a stream that had no word yet, while a tool runs', { request: stream, rounds: [callsStreamed], runTool: untilAborted }, ['a#1 DISCARDED']],
  ['of a stream that had no word yet, within a later round', { request: stream, rounds: [callsStreamed, begins] }, ['a#2 DISCARDED followed', 'a#1 DISCARDED']],
])('a client that edge cuts off %s pays nothing for what it never got', async (_when, setting, outcomes) => {
  expect(await heard(setting, false)).toEqual({ outcomes, wasted: [] });
});

test.each<[string, Setting, readonly string[]]>([
  ['while a tool runs', { request: stream, rounds: [talksAndCalls], runTool: untilAborted }, ['a#1 DELIVERED']],
  ['within a later round, which ends the hold', { request: stream, rounds: [talksAndCalls, begins] }, ['a#2 DELIVERED', 'a#1 DELIVERED followed']],
])('one that had words of its stream pays for all rounds: %s', async (_when, setting, outcomes) => {
  expect((await heard(setting, false)).outcomes).toEqual(outcomes);
});

test.each<[string, Setting, readonly string[]]>([
  ['a whole answer', { rounds: [callsWhole, begins] }, ['a#2 DELIVERED', 'a#1 DELIVERED followed']],
  ['a stream that had no word yet', { request: stream, rounds: [callsStreamed, begins] }, ['a#2 DELIVERED', 'a#1 DELIVERED followed']],
])('so does one that leaves %s by itself', async (_what, setting, outcomes) => {
  expect((await heard(setting, true)).outcomes).toEqual(outcomes);
});
