/** Answers of nothing, by models that may say more when they are asked again: one other attempt is made, and then nothing is the answer. */
import { describe, expect, test } from '@jest/globals';
import { callerWith, plannedAt, planWith } from '../testing/callers.js';
import { events, type Script } from '../testing/neighbours.js';
import { saying, story as roundsStory } from '../testing/rounds-story.js';
import { answersWith, fails, inTurn, streamsWith } from '../testing/scripts.js';
import { story } from '../testing/story.js';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createFloodGuard } from './flood.js';
import type { RetryBudget } from './retry-budget.js';

const whole: Script = (call) => call.play(events.head(), events.body(''), events.end({ nothingSaid: true }));
const streamed: Script = (call) => call.play(events.head(), events.role(), events.finish(), events.end({ nothingSaid: true }));

describe.each([['a whole answer', false, whole, ['body 0:!stop']], ['a stream', true, streamed, ['chunk 0:', 'finish 0:!stop']]] as const)('%s of nothing', (_what, stream, nothing, given) => {
  const request = { stream };
  const hi = stream ? streamsWith('hi') : answersWith('hi');

  test('gives way to an answer of the next attempt, and only that one is charged', async () => {
    const { neighbours, answer, run } = story({ a: nothing, b: hi }, { request });
    expect(await run()).toMatchObject({ result: 'answered' });
    expect([answer.said.join().includes('hi'), neighbours.outcomes]).toEqual([true, ['a#1 SUPERSEDED', 'b#2 DELIVERED']]);
    expect(answer.settlement?.attempts.map(({ provider, failed }) => [provider, failed?.class])).toEqual([['a', 'EMPTY'], ['b', undefined]]);
  });

  test('is the answer where the next attempt says nothing either, and nobody else is asked', async () => {
    const { neighbours, answer, run } = story({ a: nothing, b: nothing, c: hi }, { request });
    expect(await run()).toMatchObject({ result: 'answered' });
    expect([answer.said, neighbours.outcomes]).toEqual([given, ['a#1 SUPERSEDED', 'b#2 DELIVERED']]);
  });

  test('is the answer where all other attempts fail', async () => {
    const { neighbours, answer, run } = story({ a: nothing, b: fails('PROVIDER_ERROR'), c: fails('RATE_LIMITED', { status: 429 }) }, { request });
    expect(await run()).toMatchObject({ result: 'answered' });
    expect([answer.said, neighbours.outcomes]).toEqual([given, ['a#1 DELIVERED', 'b#2 SUPERSEDED', 'c#3 SUPERSEDED']]);
    expect(answer.settlement?.attempts.map(({ provider, failed }) => [provider, failed?.class])).toEqual([['a', undefined], ['b', 'PROVIDER_ERROR'], ['c', 'RATE_LIMITED']]);
  });

  test('is the answer where there is no other attempt, or retries are used up', async () => {
    const alone = story({ a: nothing }, { request });
    expect(await alone.run()).toMatchObject({ result: 'answered' });
    expect([alone.answer.said, alone.neighbours.outcomes]).toEqual([given, ['a#1 DELIVERED']]);
    const spent = story({ a: nothing, b: hi }, { request });
    spent.neighbours.retries = { noteRequest: () => undefined, hasRoom: () => false, take: () => false } satisfies RetryBudget;
    expect(await spent.run()).toMatchObject({ result: 'answered' });
    expect([spent.answer.said, spent.neighbours.outcomes]).toEqual([given, ['a#1 DELIVERED']]);
  });

  test('on the account’s own credential is not asked for again where the account would pay for that', async () => {
    const asked = async (next: boolean): Promise<unknown> => {
      const { neighbours, run } = story({ a: nothing, b: hi }, { request, caller: callerWith({ account: { providerKeys: ['a', 'b'].map((provider) => ({ accountId: 'acct_1', provider, handle: `cred_${provider}`, last4: '', zdr: false, createdAt: '1', baseUrl: '' })) } }) });
      neighbours.plan = planWith([plannedAt('a', { byok: true }), plannedAt('b', { byok: next })]);
      expect(await run()).toMatchObject({ result: 'answered' });
      return neighbours.outcomes;
    };
    expect([await asked(false), await asked(true)]).toEqual([['a#1 DELIVERED'], ['a#1 SUPERSEDED', 'b#2 DELIVERED']]);
  });

  test('is not asked again for without end by an account whose prompts call for it', async () => {
    const unhealedAnswers = createFloodGuard(createFakeClock(), 1, 60_000);
    const asked: number[] = [];
    for (let i = 0; i < 3; i += 1) {
      const { neighbours, run } = story({ a: nothing, b: nothing }, { request });
      Object.assign(neighbours, { unhealedAnswers });
      await run();
      asked.push(neighbours.calls.length);
    }
    expect(asked).toEqual([2, 2, 1]);
  });

  test('leaves no attempt running, and no timer, where its client leaves meanwhile', async () => {
    const { neighbours, answer, run } = story({ a: nothing, b: (call) => call.listener.onEvent(events.started()) }, { request });
    const running = run();
    await neighbours.clock.settle();
    answer.leave();
    expect(await running).toMatchObject({ result: 'gone' });
    expect([neighbours.outcomes.at(-1), neighbours.clock.pendingTimers()]).toEqual(['a#1 SUPERSEDED', 0]);
  });

  test('in a round of several, which cannot be kept, is asked again for once, and is the answer then', async () => {
    const { fake, answer, run } = roundsStory({ providers: ['a', 'b', 'c'], request, rounds: [nothing, nothing, (call) => call.play(...saying())] });
    expect((await run()).result).toBe('answered');
    expect([fake.calls.length, fake.outcomes]).toEqual([2, ['a#1 SUPERSEDED', 'b#2 DELIVERED']]);
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '20000' } });
  });
});

test('where JSON was asked for, nothing is not healed, and one other attempt is made as for any such answer', async () => {
  const { neighbours, answer, run } = story({ a: inTurn(whole), b: answersWith('{}') }, { request: { needs: { responseFormat: 'json_object' } } });
  await run();
  expect([answer.said, neighbours.outcomes]).toEqual([['body 0:{}!stop'], ['a#1 SUPERSEDED', 'b#2 DELIVERED']]);
});

test('an answer of nothing that is not said to be worth another is given as it is', async () => {
  const { neighbours, answer, run } = story({ a: answersWith(''), b: answersWith('hi') });
  await run();
  expect([answer.said, neighbours.outcomes]).toEqual([['body 0:!stop'], ['a#1 DELIVERED']]);
});
