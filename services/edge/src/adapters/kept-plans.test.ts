import { expect, test } from '@jest/globals';
import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import { createIdSource } from '@signalbox/kernel/ids';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import type { RoutingPort } from '../domain/ports.js';
import { plannedAt, planWith } from '../testing/callers.js';
import { createKeptPlans } from './kept-plans.js';

type Reuse = DecideResponse__Output['reuse'];
const FAR = { forMs: 250, fromPromptTokens: 10, toPromptTokens: 99, askBeside: false };
const QUESTION: DecideRequest = {
  requestId: 'chatcmpl-1', accountId: 'acct_1', model: 'openai/m', models: ['openai/n'], needs: { params: ['seed'] }, promptTokens: 50, maxTokens: 9, seed: 1, session: 's1', promptText: 'one prompt',
  denyModels: ['openai/x'], denyProviders: ['b'], byokProviders: ['c'],
};

interface Bench {
  readonly plans: RoutingPort;
  readonly clock: FakeClock;
  readonly asked: DecideRequest[];
  reused: number;
}

function bench(reuse: Reuse = FAR, answer: (request: DecideRequest) => DecideResponse__Output = (request) => planWith([plannedAt(request.model ?? '')], { reuse })): Bench {
  const clock = createFakeClock();
  const made: Bench = {
    clock,
    asked: [],
    reused: 0,
    plans: createKeptPlans({
      decide: (request) => {
        made.asked.push(request);
        return Promise.resolve({ ...answer(request), decisionId: `dec_${String(made.asked.length)}` });
      },
      doubt: () => undefined,
    }, { clock, makeId: createIdSource(clock, (bytes) => new Uint8Array(bytes)), onReused: () => (made.reused += 1) }),
  };
  return made;
}

/** Asks often enough for a kept plan to be used. The clock does not move; only the last question is recorded. */
async function warm({ plans, asked }: Pick<Bench, 'plans' | 'asked'>, question = QUESTION): Promise<DecideResponse__Output> {
  for (let i = 1; i < 7; i += 1) await plans.decide(question);
  const plan = await plans.decide(question);
  asked.splice(0, 6);
  return plan;
}

test('a rare question is decided by routing each time', async () => {
  const { plans, asked, clock } = bench();
  for (let i = 0; i < 20; i += 1) {
    await plans.decide(QUESTION);
    await clock.advanceAsync(200);
  }
  expect(asked).toHaveLength(20);
});

test('a question that comes eight times within a second is answered by a kept plan', async () => {
  const { plans, asked, clock } = bench();
  for (let i = 0; i < 60; i += 1) {
    await plans.decide(QUESTION);
    await clock.advanceAsync(60);
  }
  expect(asked.filter(({ decisionId }) => decisionId === undefined)).toHaveLength(7);
});

test('a plan serves another request with the same question, under a decision id of its own', async () => {
  const { plans, asked, clock } = bench();
  const first = await warm({ plans, asked });
  clock.advance(124);
  const other = await plans.decide({ ...QUESTION, requestId: 'chatcmpl-2', accountId: 'acct_2', seed: 2, session: 's2', promptText: 'another', promptTokens: 99, promptTokensMin: 24 });
  expect(asked).toHaveLength(1);
  expect(other.attempts).toEqual(first.attempts);
  expect(other.decisionId).toMatch(/^dec_/);
  expect(other.decisionId).not.toBe(first.decisionId);
});

test('each request that reuses a plan is counted', async () => {
  const made = bench();
  await warm(made);
  for (let i = 0; i < 2; i += 1) await made.plans.decide(QUESTION);
  expect([made.asked.length, made.reused]).toEqual([1, 2]);
});

/** The other fields of a question. */
const OTHERS: readonly (readonly [string, Partial<DecideRequest>])[] = [
  ['model', { model: 'openai/other' }], ['models', { models: [] }], ['needs', { needs: { params: ['seed'], tools: true } }], ['params', { needs: { params: [] } }], ['maxTokens', { maxTokens: 10 }],
  ['dataCollection', { dataCollection: 'deny' }], ['zdr', { zdr: true }], ['preferredMaxLatency', { preferredMaxLatency: 5 }], ['preferredMinThroughput', { preferredMinThroughput: 5 }],
  ['minQuantization', { minQuantization: 'fp8' }], ['maxQuantization', { maxQuantization: 'fp8' }], ['provider', { provider: { only: ['a'] } }], ['allowModels', { allowModels: ['openai/m'] }],
  ['denyModels', { denyModels: [] }], ['allowProviders', { allowProviders: ['a'] }], ['denyProviders', { denyProviders: [] }], ['mode', { mode: 'quality' }], ['baselineModel', { baselineModel: 'openai/x' }],
  ['byokProviders', { byokProviders: [] }], ['byokZdrProviders', { byokZdrProviders: ['c'] }], ['byokOwnAddressProviders', { byokOwnAddressProviders: ['c'] }], ['costWeight', { costWeight: 1 }], ['explain', { explain: true }],
];

test.each(OTHERS)('a question that differs in %s is asked of routing', async (_field, other) => {
  const { plans, asked } = bench();
  await warm({ plans, asked });
  await plans.decide({ ...QUESTION, ...other });
  expect(asked).toHaveLength(2);
});

test.each([
  ['the end of its time', FAR, QUESTION, 250],
  ['a prompt above its range', FAR, { ...QUESTION, promptTokens: 100 }, 0],
  ['a prompt below its range', FAR, { ...QUESTION, promptTokens: 9 }, 0],
  ['a plan that may not be reused', null, QUESTION, 0],
])('after %s routing is asked', async (_what, reuse, next, passedMs) => {
  const { plans, asked, clock } = bench(reuse);
  await warm({ plans, asked });
  clock.advance(passedMs);
  await plans.decide(next);
  expect(asked).toHaveLength(2);
});

test('the time of a plan counts from the question, however long routing takes', async () => {
  let tookMs = 0;
  const { clock, asked, plans } = bench(FAR, (request) => {
    clock.advance(tookMs);
    return planWith([plannedAt(request.model ?? '')], { reuse: FAR });
  });
  await warm({ plans, asked });
  clock.advance(250);
  tookMs = 200;
  await plans.decide(QUESTION);
  tookMs = 0;
  clock.advance(49);
  await plans.decide(QUESTION);
  expect(asked).toHaveLength(2);
  clock.advance(1);
  await plans.decide(QUESTION);
  expect(asked).toHaveLength(3);
});

test('a plan without an upper bound applies to prompts of any size', async () => {
  const { plans, asked } = bench({ forMs: 250, fromPromptTokens: 0, askBeside: false });
  await warm({ plans, asked });
  await plans.decide({ ...QUESTION, promptTokens: 4_000_000_000 });
  expect(asked).toHaveLength(1);
});

test('a failure of its endpoint ends a plan, a failure of another does not', async () => {
  const { plans, asked } = bench();
  const plan = await warm({ plans, asked });
  plans.doubt('elsewhere');
  await plans.decide(QUESTION);
  expect(asked).toHaveLength(1);
  plans.doubt(plan.attempts[0]?.endpointId ?? '');
  await plans.decide(QUESTION);
  expect(asked).toHaveLength(2);
});

test('a plan used in the second half of its time is renewed once in the background, and no request waits', async () => {
  const { plans, asked, clock } = bench();
  await warm({ plans, asked });
  for (const passedMs of [124, 1, 9]) {
    await clock.advanceAsync(passedMs);
    await plans.decide(QUESTION);
  }
  await clock.advanceAsync(65);
  expect(asked).toHaveLength(1);
  await clock.advanceAsync(1);
  expect(asked).toHaveLength(2);
  // The renewed plan is used from then on.
  await clock.advanceAsync(240);
  await plans.decide(QUESTION);
  expect(asked).toHaveLength(2);
});

test('if routing wants to record requests, it is told each one that reused a plan, with its decision id and endpoint', async () => {
  const { plans, asked, clock } = bench({ ...FAR, askBeside: true });
  const plan = await warm({ plans, asked });
  const other = await plans.decide({ ...QUESTION, requestId: 'chatcmpl-2', seed: 7 });
  await clock.advanceAsync(100);
  expect(asked).toMatchObject([{ requestId: 'chatcmpl-1' }, { requestId: 'chatcmpl-2', seed: 7, decisionId: other.decisionId, endpointId: plan.attempts[0]?.endpointId }]);
  expect(asked[0]?.decisionId).toBeUndefined();
});

test('at most four requests of a burst are reported to routing', async () => {
  const { plans, asked, clock } = bench({ ...FAR, askBeside: true });
  await warm({ plans, asked });
  await Promise.all(Array.from({ length: 9 }, () => plans.decide(QUESTION)));
  await clock.advanceAsync(10);
  expect(asked).toHaveLength(5);
  await plans.decide(QUESTION);
  await clock.advanceAsync(100);
  expect(asked).toHaveLength(6);
});

test('requests within a tenth of a second are reported together', async () => {
  const { plans, asked, clock } = bench({ ...FAR, askBeside: true });
  await warm({ plans, asked });
  for (const passedMs of [0, 40, 40]) {
    await clock.advanceAsync(passedMs);
    await plans.decide(QUESTION);
  }
  await clock.advanceAsync(19);
  expect(asked).toHaveLength(1);
  await clock.advanceAsync(1);
  expect(asked).toHaveLength(4);
});

test.each([
  [120, 200],
  [195, 205],
  [245, 255],
])('a plan of %s ms is renewed before it ends', async (passedMs, toldMs) => {
  const { plans, asked, clock } = bench({ ...FAR, askBeside: true });
  await warm({ plans, asked });
  await clock.advanceAsync(passedMs);
  await plans.decide(QUESTION);
  await clock.advanceAsync(toldMs - passedMs - 1);
  expect(asked).toHaveLength(1);
  await clock.advanceAsync(1);
  expect(asked).toHaveLength(2);
});

test('a plan that routing no longer makes is dropped', async () => {
  const answers: Reuse[] = Array.from({ length: 7 }, () => FAR);
  const { plans, asked, clock } = bench(FAR, (request) => planWith([plannedAt(request.model ?? '')], { reuse: answers.shift() ?? null }));
  await warm({ plans, asked });
  clock.advance(125);
  await plans.decide(QUESTION);
  await clock.advanceAsync(75);
  await plans.decide(QUESTION);
  expect(asked).toHaveLength(3);
});

test('a refused prompt outside the range of a plan does not end it for others', async () => {
  const { plans, asked } = bench(FAR, (request) => planWith([plannedAt(request.model ?? '')], { reuse: request.promptTokens === 50 ? FAR : null }));
  await warm({ plans, asked });
  await plans.decide({ ...QUESTION, promptTokens: 100 });
  await plans.decide(QUESTION);
  expect(asked).toHaveLength(2);
});

test('without an answer from routing a plan ends at its time', async () => {
  let isAway = false;
  const { plans, asked, clock } = bench(FAR, (request) => {
    if (isAway) throw new Error('away');
    return planWith([plannedAt(request.model ?? '')], { reuse: FAR });
  });
  await warm({ plans, asked });
  isAway = true;
  await clock.advanceAsync(239);
  await expect(plans.decide(QUESTION)).resolves.toBeDefined();
  await clock.advanceAsync(11);
  await expect(plans.decide(QUESTION)).rejects.toThrow('away');
});

test('a decision that routing made before it knew of a failure is not kept', async () => {
  const { plans, asked } = bench();
  const endpointId = (await warm({ plans, asked })).attempts[0]?.endpointId ?? '';
  plans.doubt(endpointId);
  const asking = plans.decide(QUESTION);
  plans.doubt(endpointId);
  await asking;
  await plans.decide(QUESTION);
  expect(asked).toHaveLength(3);
});

test('a failure of routing is passed on, and all plans are dropped', async () => {
  const { plans, asked } = bench(FAR, () => {
    throw new Error('away');
  });
  await expect(Promise.resolve().then(() => plans.decide(QUESTION))).rejects.toThrow('away');
  await expect(Promise.resolve().then(() => plans.decide(QUESTION))).rejects.toThrow('away');
  expect(asked).toHaveLength(2);
});

test('at most 200 plans are kept', async () => {
  const { plans, asked } = bench();
  for (let i = 0; i < 200; i += 1) await warm({ plans, asked }, { ...QUESTION, maxTokens: i });
  await plans.decide({ ...QUESTION, maxTokens: 0 });
  expect(asked).toHaveLength(200);
  await plans.decide({ ...QUESTION, maxTokens: 200 });
  await plans.decide({ ...QUESTION, maxTokens: 0 });
  expect(asked).toHaveLength(202);
});
