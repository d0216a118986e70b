import { describe, expect, test } from '@jest/globals';
import type { End__Output } from '@signalbox/contracts/worker';
import { callerWith } from '../testing/callers.js';
import { chunkOf, calling, ours, story, streaming, type Setting } from '../testing/rounds-story.js';
import { admissionOf, events, type PlayedCall } from '../testing/neighbours.js';

const callsWhole = (call: PlayedCall): void => call.play(...calling(ours()));
const callsStreamed = (call: PlayedCall): void => call.play(...streaming(ours()));
const talksAndCalls = (call: PlayedCall): void => call.play(events.role(), chunkOf({ content: 'Let me see. ' }), ...streaming(ours()).slice(1));
const begins = (call: PlayedCall): void => call.listener.onEvent(events.started());
const stream: NonNullable<Setting['request']> = { stream: true };
const untilAborted = (_request: unknown, signal: AbortSignal): Promise<never> => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));

/** The outcomes told to workers after the client left, `byItself` or cut off by edge, once nothing more happens. */
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
  ['of a stream without content, while a tool runs', { request: stream, rounds: [callsStreamed], runTool: untilAborted }, ['a#1 DISCARDED']],
  ['of a stream without content, within a later round', { request: stream, rounds: [callsStreamed, begins] }, ['a#2 DISCARDED followed', 'a#1 DISCARDED']],
])('a client that edge cuts off %s pays nothing for what it never got', async (_when, setting, outcomes) => {
  expect(await heard(setting, false)).toEqual({ outcomes, wasted: [] });
});

test.each<[string, Setting, readonly string[]]>([
  ['while a tool runs', { request: stream, rounds: [talksAndCalls], runTool: untilAborted }, ['a#1 DELIVERED']],
  ['within a later round, which ends the hold', { request: stream, rounds: [talksAndCalls, begins] }, ['a#2 DELIVERED', 'a#1 DELIVERED followed']],
])('a client that got text of its stream pays for all rounds: %s', async (_when, setting, outcomes) => {
  expect((await heard(setting, false)).outcomes).toEqual(outcomes);
});

test.each<[string, Setting, readonly string[]]>([
  ['a whole answer', { rounds: [callsWhole, begins] }, ['a#2 DELIVERED once ended', 'a#1 DELIVERED followed']],
  ['a stream that had no word yet', { request: stream, rounds: [callsStreamed, begins] }, ['a#2 DELIVERED', 'a#1 DELIVERED followed']],
])('so does a client that leaves %s by itself', async (_what, setting, outcomes) => {
  expect((await heard(setting, true)).outcomes).toEqual(outcomes);
});

describe('a stream that is stopped at the end of a drain after its client got text', () => {
  const STOPPED: End__Output['cut'] = { class: 'STOPPED', status: 0, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true };

  /** Stops the request once nothing more happens; returns the end of the answer. */
  async function stopped(setting: Setting, told: { readonly onStop?: () => void } = {}) {
    const { fake, answer, ran, neighbours, run } = story({ ...setting, request: stream });
    Object.assign(fake, told);
    const wasted: string[] = [];
    Object.assign(neighbours, { wastedRuns: { note: (accountId: string) => void wasted.push(accountId), waitMs: () => 0 } });
    const running = run();
    await fake.clock.settle();
    const isFollowed = answer.stop();
    return { isFollowed, conducted: await running, fake, answer, ran, wasted };
  }

  test('gives the charge of the rounds so far, if it is between two rounds', async () => {
    const { isFollowed, conducted, fake, answer } = await stopped({ rounds: [talksAndCalls], runTool: untilAborted });
    expect([isFollowed, conducted.result, answer.said.at(-1), fake.calls.length]).toEqual([true, 'cut', 'refuse stopping', 1]);
    expect([answer.refusal, answer.settlement?.end.costNanoUsd, answer.settlement?.attempts.length]).toEqual([{ kind: 'stopping', isCharged: true }, '20000', 1]);
    expect([fake.outcomes, fake.stopped]).toEqual([['a#1 DELIVERED'], []]);
  });

  test('gives it also within a round without content, which is not charged and leaves the hold to the round before', async () => {
    const { conducted, fake, answer } = await stopped({ rounds: [talksAndCalls, begins] });
    expect([conducted.result, answer.said.at(-1), fake.calls.map(({ isCancelled }) => isCancelled)]).toEqual(['cut', 'refuse stopping', [false, true]]);
    expect([answer.settlement?.end.costNanoUsd, fake.outcomes]).toEqual(['20000', ['a#2 DISCARDED followed', 'a#1 DELIVERED']]);
  });

  test('does not begin a round that waited for its hold', async () => {
    let grant: (isGranted: boolean) => void = () => undefined;
    const { fake, answer, turn, neighbours, run } = story({ request: stream, rounds: [talksAndCalls] });
    turn.caller = callerWith({ account: { costCaps: [{ period: 'month', capNanoUsd: '1000000000' }] } });
    Object.assign(neighbours.quota, { extend: () => new Promise<boolean>((resolve) => (grant = resolve)) });
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '2000', heldTokens: '50', roomNanoUsd: '1000000000' })];
    const running = run();
    await fake.clock.settle();
    expect(answer.stop()).toBe(true);
    grant(true);
    expect([(await running).result, fake.calls.length, answer.settlement?.end.costNanoUsd, fake.outcomes]).toEqual(['cut', 1, '20000', ['a#1 DELIVERED']]);
  });

  test('has the figures of all rounds if the worker ends the last one', async () => {
    let second: PlayedCall | undefined;
    const talks = (call: PlayedCall): void => {
      second = call;
      for (const event of [events.role(), events.text('It is')]) call.listener.onEvent(event);
    };
    const { conducted, answer, fake } = await stopped({ rounds: [talksAndCalls, talks] }, { onStop: () => second?.play(events.end({ finishReason: 'error', cut: STOPPED, costNanoUsd: '7' })) });
    expect([conducted.result, answer.said.at(-1), answer.settlement?.end.costNanoUsd, fake.stopped]).toEqual(['cut', 'cut STOPPED', '20007', ['a#2']]);
  });

  test('does not run the tools of a round that ends while it is stopped', async () => {
    let first: PlayedCall | undefined;
    const talks = (call: PlayedCall): void => {
      first = call;
      for (const event of [events.role(), chunkOf({ content: 'Let me see. ' })]) call.listener.onEvent(event);
    };
    const { conducted, answer, ran } = await stopped({ rounds: [talks], runTool: untilAborted }, { onStop: () => first?.play(...streaming(ours()).slice(1)) });
    expect([conducted.result, answer.said.at(-1), answer.settlement?.end.costNanoUsd, ran]).toEqual(['cut', 'refuse stopping', '20000', []]);
  });

  const PAINTED = { content: '{"status":"completed"}', stage: { name: 'image-gen', plugin: 'image-gen', status: 'completed', durationMs: 3, feeNanoUsd: '40000000', boughtProvider: 'painter', boughtNanoUsd: '30000000', detail: Buffer.alloc(0) }, images: [{ mediaType: 'image/png', data: Buffer.from('x') }] };

  test('buys nothing after the stop, and what was bought for a round that is given up does not count as waste', async () => {
    const paint = { id: 'call_p', name: 'generate_image', arguments: '{"prompt":"a fox"}' };
    const offered = [{ name: 'generate_image', definition: Buffer.from('{"type":"function","function":{"name":"generate_image"}}'), feeNanoUsdMax: '50000000', imagesMax: 1 }];
    const bought = await stopped({ offered, runTool: () => Promise.resolve(PAINTED), rounds: [(call) => call.play(events.role(), chunkOf({ content: 'See. ' }), ...streaming(paint).slice(1)), begins] });
    expect([bought.conducted.result, bought.ran.map(({ name }) => name), bought.wasted, bought.answer.raw.some((text) => text.includes('"images"'))]).toEqual(['cut', ['generate_image'], [], false]);
    expect([bought.answer.settlement?.end.costNanoUsd, bought.answer.settlement?.pipeline?.map(({ feeNanoUsd }) => feeNanoUsd), bought.fake.outcomes]).toEqual(['20000', [0n], ['a#2 DISCARDED followed', 'a#1 DELIVERED']]);
    const { conducted, ran, wasted, fake } = await stopped({ offered, runTool: untilAborted, rounds: [(call) => call.play(events.role(), chunkOf({ content: 'See. ' }), ...streaming(ours(), paint).slice(1))] });
    expect([conducted.result, ran.map(({ name }) => name), wasted, fake.extended]).toEqual(['cut', ['code_exec'], [], []]);
  });

  test('has no figures if its client got no text', async () => {
    const { fake, answer, run } = story({ request: stream, rounds: [callsStreamed], runTool: untilAborted });
    const running = run();
    await fake.clock.settle();
    expect(answer.stop()).toBe(false);
    answer.leave(false);
    expect([(await running).result, fake.outcomes]).toEqual(['gone', ['a#1 DISCARDED']]);
  });
});

test.each<[string, Setting]>([
  ['a whole answer', { roundsMax: 1, rounds: [callsWhole] }],
  ['a stream without content', { roundsMax: 1, request: stream, rounds: [callsStreamed] }],
])('when the drain is over, %s that is told as delivered is given at once', async (_what, setting) => {
  const { fake, answer, run } = story(setting);
  fake.heard = new Promise(() => undefined);
  const running = run();
  await fake.clock.settle();
  expect([fake.outcomes, answer.said]).toEqual([['a#1 DELIVERED followed', 'a#2 DELIVERED'], []]);
  expect(answer.stop()).toBe(true);
  expect((await running).result).toBe('answered');
  expect(answer.said).toHaveLength(1);
});
