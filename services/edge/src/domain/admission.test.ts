import { describe, expect, test } from '@jest/globals';
import { callerWith, cardWith, plannedAt, planWith } from '../testing/callers.js';
import { admissionOf } from '../testing/neighbours.js';
import { answersWith, fails } from '../testing/scripts.js';
import { story } from '../testing/story.js';
import type { ChatRequest } from './chat-request.js';
import type { Admission } from './ports.js';

/** Costs a thousand times as much as the others. */
const DEAR = cardWith({ id: 'dear', inputUncached: '1000000000000', outputText: '2000000000000', outputReasoning: '2000000000000' });
const CHEAP = plannedAt('cheap', { maxOutputTokens: 100 });
const dear = (model = 'maker/m') => plannedAt('dear', { card: DEAR, model, maxOutputTokens: 100 });
/** 400 bytes of prompt, 16 for its message and 100 tokens of answer at the cheap one, in nano-dollars. */
const CHEAP_NANO_USD = 416_000n + 200_000n;
const capped = (left: bigint, over: Partial<Admission> = {}): Admission => admissionOf('COST_CAPPED', { limitNanoUsd: '5000000', spendNanoUsd: String(5_000_000n - left), ...over });
const CALLER = callerWith({ account: { costCaps: [{ capNanoUsd: '5000000', period: 'day' }] } });

function world(attempts: readonly ReturnType<typeof plannedAt>[], admissions: readonly Admission[], request: Partial<ChatRequest> = {}) {
  const { neighbours, answer, run } = story({ cheap: answersWith('x'), dear: answersWith('y') }, { request: { model: 'maker/m', ...request }, caller: CALLER });
  neighbours.plan = planWith(attempts);
  neighbours.admissions = [...admissions];
  const asked = (): readonly bigint[] => neighbours.asked.map(({ amountNanoUsd }) => BigInt(String(amountNanoUsd)));
  return { neighbours, answer, run, asked, called: () => neighbours.calls.map(({ provider }) => provider) };
}
const ADMITTED = admissionOf('ADMITTED', { heldNanoUsd: String(CHEAP_NANO_USD) });

describe('a fallback that costs more than is left', () => {
  test.each<[string, readonly ReturnType<typeof plannedAt>[], Partial<ChatRequest>]>([
    ['after the chosen attempt', [CHEAP, dear()], {}],
    ['after the chosen attempt, with another model', [CHEAP, dear('maker/large')], {}],
    ['before a cheaper host of the same model', [dear(), CHEAP], {}],
    ['chosen by auto', [dear('maker/large'), CHEAP], { model: 'auto' }],
  ])('%s, is left out instead of refusing the request', async (_what, attempts, request) => {
    const { run, asked, called, answer } = world(attempts, [capped(CHEAP_NANO_USD), ADMITTED], request);
    expect(await run()).toMatchObject({ result: 'answered' });
    expect([asked()[1], called()]).toEqual([CHEAP_NANO_USD, ['cheap']]);
    expect((asked()[0] ?? 0n) > 500n * CHEAP_NANO_USD).toBe(true);
    expect(answer.refusal).toBeUndefined();
  });

  test('is not tried when the affordable attempt fails', async () => {
    const { neighbours, run, called } = world([CHEAP, dear()], [capped(CHEAP_NANO_USD), ADMITTED]);
    neighbours.scripts.set('cheap', fails('PROVIDER_ERROR'));
    expect(await run()).toMatchObject({ result: 'refused', attempts: [{ provider: 'cheap' }] });
    expect(called()).toEqual(['cheap']);
  });

  test('waits for running requests, and is left out when they do not end', async () => {
    const blocked = admissionOf('BLOCKED_BY_LIVE', { blockedAs: 'COST_CAPPED', limitNanoUsd: '5000000', spendNanoUsd: '0', reservedNanoUsd: String(5_000_000n - CHEAP_NANO_USD) });
    const { neighbours, run, asked, called } = world([CHEAP, dear()], [blocked]);
    const done = run();
    await neighbours.clock.advanceAsync(1_999);
    expect(asked().every((amount) => amount > CHEAP_NANO_USD)).toBe(true);
    const waited = asked().length;
    neighbours.quota.admit = (question) => {
      neighbours.asked.push(question);
      return Promise.resolve(BigInt(String(question.amountNanoUsd)) > CHEAP_NANO_USD ? blocked : ADMITTED);
    };
    await neighbours.clock.advanceAsync(1);
    expect(await done).toMatchObject({ result: 'answered' });
    expect([asked().length - waited, asked().at(-1), called()]).toEqual([2, CHEAP_NANO_USD, ['cheap']]);
  });

  test('is left out, and the rest waits for running requests as any request does', async () => {
    const blocked = admissionOf('BLOCKED_BY_LIVE', { blockedAs: 'COST_CAPPED', limitNanoUsd: '5000000', spendNanoUsd: String(5_000_000n - CHEAP_NANO_USD), reservedNanoUsd: String(CHEAP_NANO_USD) });
    const { neighbours, run, asked, called } = world([CHEAP, dear()], [capped(CHEAP_NANO_USD), blocked, ADMITTED]);
    const done = run();
    await neighbours.clock.advanceAsync(1_000);
    expect(await done).toMatchObject({ result: 'answered' });
    expect([asked().slice(1), called()]).toEqual([[CHEAP_NANO_USD, CHEAP_NANO_USD], ['cheap']]);
  });

  test('a request waits only once', async () => {
    const blocked = admissionOf('BLOCKED_BY_LIVE', { blockedAs: 'COST_CAPPED', limitNanoUsd: '5000000', spendNanoUsd: '0', reservedNanoUsd: String(5_000_000n - CHEAP_NANO_USD) });
    const { neighbours, run, asked, answer } = world([CHEAP, dear()], [blocked]);
    const done = run();
    await neighbours.clock.advanceAsync(2_000);
    expect(await done).toMatchObject({ result: 'refused' });
    expect([asked().at(-1), answer.refusal]).toMatchObject([CHEAP_NANO_USD, { kind: 'admission', admission: { decision: 'BLOCKED_BY_LIVE' } }]);
    expect(neighbours.clock.pendingTimers()).toBe(0);
  });
});

test.each<[string, readonly ReturnType<typeof plannedAt>[], Admission]>([
  ['the remaining money pays for no attempt', [CHEAP, dear()], capped(1n)],
  ['the model named by the client is the expensive one', [dear('maker/large'), CHEAP], capped(CHEAP_NANO_USD)],
  ['there is only one attempt', [CHEAP], capped(1n)],
  ['tokens are missing, not money', [CHEAP, dear()], admissionOf('ALLOTMENT_EXHAUSTED', { limitNanoUsd: '5000000', spendNanoUsd: '0' })],
  ['the limit is used up', [CHEAP, dear()], admissionOf('COST_CAPPED', { limitNanoUsd: '100', spendNanoUsd: '100' })],
])('a request is refused after a single question to quota if %s', async (_what, attempts, admission) => {
  const { run, asked, called, answer } = world(attempts, [admission, ADMITTED]);
  expect(await run()).toMatchObject({ result: 'refused' });
  expect([asked().length, called(), answer.said]).toEqual([1, [], ['refuse admission']]);
});

test('the prompt tokens charged without a provider’s count are at most those held for', async () => {
  const { neighbours, run } = world([CHEAP], [ADMITTED], { promptBytes: 400, messageCount: 1, promptTokens: 203_215 });
  await run();
  expect(neighbours.calls.map(({ request }) => request.promptTokens)).toEqual([416]);
});

test('an image in the body is held for like one by address: by the tokens of an image, not by its bytes', async () => {
  const holds = [{ inlineImageBytes: 0 }, { promptBytes: 2_000_400, inlineImageBytes: 2_000_000 }].map(async (request) => {
    const { run, neighbours } = world([CHEAP], [ADMITTED], { promptBytes: 400, imageCount: 1, ...request });
    await run();
    return neighbours.asked.map(({ amountNanoUsd, minAmountNanoUsd, tokens }) => [amountNanoUsd, minAmountNanoUsd, tokens]);
  });
  const [byAddress, inBody] = await Promise.all(holds);
  expect(byAddress).toEqual([[String(CHEAP_NANO_USD + 50_000_000n), expect.anything(), String(416 + 50_000 + 100)]]);
  expect(inBody).toEqual(byAddress);
});

test('sound of a known length is held for by the tokens of that length, not by its bytes', async () => {
  const { run, neighbours } = world([CHEAP], [ADMITTED], { promptBytes: 3_840_400, inlineSoundBytes: 3_840_000, soundTokensMax: 4_500 });
  await run();
  expect(neighbours.asked.map(({ tokens }) => tokens)).toEqual([String(416 + 4_500 + 100)]);
});

test('the estimate for a file, whose tokens are unbounded, is kept', async () => {
  const { neighbours, run } = story({ cheap: answersWith('x') }, { request: { promptBytes: 400, promptTokens: 1_100, mediaTokens: 1_000, hasUnboundedParts: true } });
  await run();
  expect(neighbours.calls.map(({ request }) => [request.promptTokens, request.mediaTokens])).toEqual([[1_100, 1_000]]);
});
