import { describe, expect, test } from '@jest/globals';
import type { PriceCard__Output } from '@signalbox/contracts/common';
import { asNanoUsd } from '@signalbox/kernel/money';
import { callerWith, cardWith, plannedAt, planWith, requestWith } from '../testing/callers.js';
import { admissionOf, createFakeNeighbours, events, type FakeNeighbours, type Script } from '../testing/neighbours.js';
import { createRecordedAnswer, type RecordedAnswer } from '../testing/recorded-answer.js';
import type { Admitted } from './admission.js';
import type { Route } from './answer.js';
import type { ChatRequest } from './chat-request.js';
import { dispatchPlan } from './dispatch-plan.js';
import type { Conducted, RoundStart } from './tool-rounds.js';

const answersWith =
  (text: string): Script =>
  (call) =>
    call.play(events.head(), events.body(text), events.end());
/** Its worker refuses before it writes or sends anything. */
const refusesUnsent: Script = (call) => call.play(events.failed('NO_CREDENTIAL', { status: 0 }));
const ADMITTED: Admitted = {
  admission: admissionOf('ADMITTED'),
  question: { isLimited: false, promptTokensMax: 1_000 } as Admitted['question'],
  hold: { amountNanoUsd: asNanoUsd(0n), minAmountNanoUsd: asNanoUsd(0n), tokens: 0n, minTokens: 0n, isTranched: false },
};
/** The second round of a request whose first one was answered and journaled by `a`. */
const SECOND_ROUND: RoundStart = {
  round: 2,
  before: [{ provider: 'a', model: 'm', failed: undefined, byok: false, round: 1 }],
  earlierNanoUsd: 20_000n,
  earlierTokens: 15,
  addedBytes: 0,
  addedMessages: 0,
  activity: { lastSentMs: 0 },
};

/** The estimate for a stream, with `referenceCard` as the reference. */
async function estimateBeside(referenceCard: PriceCard__Output | null): Promise<unknown> {
  const plan = { ...planWith([plannedAt('a')]), referenceCard };
  const neighbours = createFakeNeighbours(plan);
  neighbours.scripts.set('a', (call) => call.play(events.head(), events.role(), events.text('hi'), events.finish(), events.end()));
  const answer = createRecordedAnswer();
  let estimate: unknown;
  Object.assign(answer, { chunk: (route: Route) => void (estimate = route.estimate()) });
  await dispatchPlan(
    neighbours,
    { requestId: 'chatcmpl-0123456789', caller: callerWith(), request: requestWith({ stream: true, promptTokens: 100, maxTokens: 50 }), answer },
    plan,
    ADMITTED,
  );
  return estimate;
}

interface Story {
  readonly neighbours: FakeNeighbours;
  readonly answer: RecordedAnswer;
  readonly run: () => Promise<Conducted>;
}

function story(
  scripts: Readonly<Record<string, Script>>,
  { request = {}, start }: { readonly request?: Partial<ChatRequest>; readonly start?: RoundStart } = {},
): Story {
  const plan = planWith(Object.keys(scripts).map((provider) => plannedAt(provider)));
  const neighbours = createFakeNeighbours(plan);
  for (const [provider, script] of Object.entries(scripts)) neighbours.scripts.set(provider, script);
  const answer = createRecordedAnswer();
  const turn = { requestId: 'chatcmpl-0123456789', caller: callerWith(), request: requestWith(request), answer };
  return { neighbours, answer, run: () => dispatchPlan(neighbours, turn, plan, ADMITTED, start) };
}

test('a worker is told the time limit of a whole answer, if routing knows one, and the longest silence by the model’s time to begin', async () => {
  const plan = planWith([plannedAt('a', { wholeTimeoutMs: 163_000, firstByteTimeoutMs: 60_000 }), plannedAt('b')]);
  const neighbours = createFakeNeighbours(plan);
  neighbours.scripts.set('a', (call) => call.play(events.failed('PROVIDER_ERROR')));
  neighbours.scripts.set('b', answersWith('hi'));
  await dispatchPlan(neighbours, { requestId: 'chatcmpl-0123456789', caller: callerWith(), request: requestWith(), answer: createRecordedAnswer() }, plan, ADMITTED);
  expect(neighbours.calls.map(({ request }) => [request.wholeTimeoutMs ?? 0, request.idleTimeoutMs])).toEqual([[163_000, 60_000], [0, 30_000]]);
});

test.each([
  ['as long as the model takes to begin', {}, { promptTokens: 10_000 }, [10_000, 163_000, 30_000]],
  ['longer for a long prompt, which it reads before it begins, but in the middle of the answer no longer', {}, { promptTokens: 128_000 }, [69_000, 222_000, 30_000]],
  ['longer for files, whose tokens are not known', {}, { promptTokens: 1_000, hasUnboundedParts: true }, [70_000, 223_000, 30_000]],
  ['at most ten minutes for the longest', {}, { promptTokens: 2_000_000 }, [600_000, 600_000, 30_000]],
  ['as long as routing says where that is more', { firstByteTimeoutMs: 720_000 }, { promptTokens: 128_000 }, [720_000, 222_000, 60_000]],
])('a provider is waited for %s', async (_what, changes, prompt, limits) => {
  const plan = planWith([plannedAt('a', { firstByteTimeoutMs: 10_000, wholeTimeoutMs: 163_000, ...changes })]);
  const neighbours = createFakeNeighbours(plan);
  neighbours.scripts.set('a', answersWith('hi'));
  await dispatchPlan(neighbours, { requestId: 'chatcmpl-0123456789', caller: callerWith(), request: requestWith(prompt), answer: createRecordedAnswer() }, plan, ADMITTED);
  expect(neighbours.calls.map(({ request }) => [request.firstByteTimeoutMs, request.wholeTimeoutMs, request.idleTimeoutMs])).toEqual([limits]);
});

describe('an answer that does not match what was asked for', () => {
  const request: Partial<ChatRequest> = { needs: { responseFormat: 'json_object' } };

  test('causes one further attempt, and the second is given as it is', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('no JSON'), b: answersWith('none either'), c: answersWith('{}') }, { request });
    expect((await run()).result).toBe('answered');
    expect(neighbours.calls.map(({ provider }) => provider)).toEqual(['a', 'b']);
    expect(answer.said).toEqual(['body 0:none either!stop']);
    expect(neighbours.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED']);
  });

  test('is not charged if its client leaves while the further attempt runs; that one is', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('no JSON'), b: (call) => call.listener.onEvent(events.started()) }, { request });
    const running = run();
    while (neighbours.calls.length < 2) await new Promise(setImmediate);
    answer.leave();
    expect((await running).result).toBe('gone');
    expect([...neighbours.outcomes].sort()).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED once ended']);
  });

  test('is given if the further attempt was never begun, and no worker is told about an unknown attempt', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('no JSON'), b: refusesUnsent }, { request });
    expect((await run()).result).toBe('answered');
    expect(answer.said).toEqual(['body 0:no JSON!stop']);
    expect(neighbours.outcomes).toEqual(['a#1 DELIVERED']);
  });
});

test.each<[string, boolean, readonly string[]]>([
  ['before any content is not charged', false, ['a#1 DISCARDED']],
  ['after content is delivered', true, ['a#1 DELIVERED']],
])('a stream whose client edge cuts off %s', async (_case, hasWord, told) => {
  const { neighbours, answer, run } = story({ a: (call) => call.listener.onEvent(hasWord ? events.text('hi') : events.role()) }, { request: { stream: true } });
  const running = run();
  await neighbours.clock.settle();
  answer.leave(false);
  expect((await running).result).toBe('gone');
  expect([neighbours.calls[0]?.cancelledFor, neighbours.outcomes]).toEqual([undefined, told]);
});

test('a client that is cut off while all generated text is held back is not charged, although its worker cannot know that', async () => {
  const { neighbours, answer, run } = story({ a: (call) => [events.role(), events.text('Sure, here it is: ')].forEach((event) => call.listener.onEvent(event)) }, { request: { stream: true, needs: { responseFormat: 'json_object' } } });
  const running = run();
  await neighbours.clock.settle();
  expect([answer.said, answer.stop()]).toEqual([[], false]);
  answer.leave(false);
  expect((await running).result).toBe('gone');
  expect([neighbours.calls[0]?.isCancelled, neighbours.outcomes]).toEqual([true, ['a#1 DISCARDED']]);
});

describe('a later round', () => {
  test('that no worker took leaves the hold, which covers the earlier rounds', async () => {
    const { neighbours, answer, run } = story({ a: refusesUnsent }, { start: SECOND_ROUND });
    expect((await run()).result).toBe('refused');
    expect([answer.refusal?.kind, neighbours.released]).toEqual(['attempts', []]);
    const only = story({ a: refusesUnsent });
    await only.run();
    expect(only.neighbours.released).toEqual(['chatcmpl-0123456789']);
  });

  test('counts among the attempts if its client leaves after it was sent to its worker, and else does not', async () => {
    const sent = story({ a: (call) => call.listener.onEvent(events.started()) }, { start: SECOND_ROUND });
    const running = sent.run();
    await sent.neighbours.clock.settle();
    sent.answer.leave();
    expect(await running).toMatchObject({ result: 'gone', attempts: [{ round: 1 }, { round: 2 }] });
    const unsent = story({ a: refusesUnsent }, { start: SECOND_ROUND });
    unsent.answer.leave();
    expect(await unsent.run()).toMatchObject({ result: 'gone', attempts: [{ round: 1 }] });
    expect([unsent.neighbours.calls, unsent.neighbours.released]).toEqual([[], []]);
  });
});

test.each<[string, PriceCard__Output | null, bigint]>([
  ['a more expensive card', cardWith({ id: 'dear', inputUncached: '3000000000' }), 200_000n],
  ['a cheaper card', cardWith({ id: 'cheap', inputUncached: '0' }), 0n],
  ['no card', null, 0n],
])('estimated savings are never below zero: beside %s', async (_name, referenceCard, savingsNanoUsd) => {
  expect(await estimateBeside(referenceCard)).toEqual({ costNanoUsd: 200_000n, savingsNanoUsd });
});
