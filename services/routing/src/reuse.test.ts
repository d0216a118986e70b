/** When a request's plan may be reused for the next one. */
import { afterEach, expect, test } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '@signalbox/bus/memory';
import type { AttemptsObserved, AttemptsObserved__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { DecideRequest, DecideResponse__Output, RecentDecisionRequest, RecentDecisionResponse__Output } from '@signalbox/contracts/routing';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import type { Service } from '@signalbox/runtime/lifecycle';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { composeRouting } from './compose.js';
import { loadRoutingConfig } from './config.js';

const clock: FakeClock = createFakeClock();
let bus: MemoryBus;
let service: Service;
let client: RpcClient;

async function start(environment: Record<string, string>): Promise<void> {
  bus = createMemoryBus({ clock });
  service = composeRouting(loadRoutingConfig(environment), { clock, randomBytes, log: silentLog, withProcessMetrics: false }, { bus });
  await service.start();
  client = createRpcClient({ area: 'routing', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 5_000 });
}

afterEach(async () => {
  await client.close();
  await service.stop();
  await bus.close();
});

const reuseOf = async (request: DecideRequest): Promise<DecideResponse__Output['reuse']> => {
  const answer = await client.unary<DecideRequest, DecideResponse__Output>('Decide', { accountId: 'acct_1', requestId: 'chatcmpl-1', promptTokens: 50, ...request });
  expect(answer.refusal).toBe('REFUSAL_UNSPECIFIED');
  return answer.reuse;
};
/** gpt-4o-mini has a context of 128,000 tokens. */
const REACH = { forMs: 250, fromPromptTokens: 0, toPromptTokens: 127_900 };
const PINNED: DecideRequest = { model: 'gpt-4o-mini', maxTokens: 100 };

test('that of a pinned model with one endpoint may, as far as it reaches', async () => {
  await start({ PROVIDERS: 'openai', DECISIONS_PER_SECOND_MAX: '0' });
  expect(await reuseOf(PINNED)).toMatchObject(REACH);
});

test('where two providers could serve it, one of them does once the request leaves no other', async () => {
  await start({ PROVIDERS: 'openai,azure-openai', DECISIONS_PER_SECOND_MAX: '0' });
  expect(await reuseOf(PINNED)).toBeNull();
  expect(await reuseOf({ ...PINNED, provider: { only: ['openai'] } })).toMatchObject(REACH);
});

test.each<[string, DecideRequest]>([
  ['a choice of ours', { model: 'auto', promptText: 'Hi' }],
  ['one that asks why', { ...PINNED, explain: true }],
  ['one that nobody may keep', { ...PINNED, dataCollection: 'deny' }],
  ['one with zero retention', { ...PINNED, zdr: true }],
])('that of %s may not', async (_what, request) => {
  await start({ PROVIDERS: 'openai', ZDR_AGREEMENTS: 'openai', DECISIONS_PER_SECOND_MAX: '0' });
  expect(await reuseOf(request)).toBeNull();
});

const decisionOf = (id: string): Promise<RecentDecisionResponse__Output> => client.unary<RecentDecisionRequest, RecentDecisionResponse__Output>('RecentDecision', { accountId: 'acct_1', id });
const answerOf = (request: DecideRequest): Promise<DecideResponse__Output> => client.unary<DecideRequest, DecideResponse__Output>('Decide', { accountId: 'acct_1', requestId: 'chatcmpl-1', promptTokens: 50, ...request });

test('while there is room for records each request is to be told of', async () => {
  await start({ PROVIDERS: 'openai', DECISIONS_PER_SECOND_MAX: '4' });
  // A fifth of the rate for ten seconds is eight records. The last five are kept for requests that call routing anyway.
  const answers = [];
  for (let i = 0; i < 9; i += 1) answers.push((await reuseOf(PINNED))?.askBeside);
  expect(answers).toEqual([true, true, true, false, false, false, false, false, false]);
});

test('a request that is told of is recorded under the id that it was given', async () => {
  await start({ PROVIDERS: 'openai', DECISIONS_PER_SECOND_MAX: '1' });
  const [first] = (await answerOf(PINNED)).attempts;
  const told = await answerOf({ ...PINNED, requestId: 'chatcmpl-2', decisionId: 'dec_2', endpointId: first?.endpointId ?? '' });
  expect(told.decisionId).toBe('dec_2');
  expect(await decisionOf('dec_2')).toMatchObject({ found: true, requestId: 'chatcmpl-2' });
});

test('one that went by another plan than would be made now is not recorded as that', async () => {
  await start({ PROVIDERS: 'openai', DECISIONS_PER_SECOND_MAX: '1' });
  const told = await answerOf({ ...PINNED, decisionId: 'dec_2', endpointId: 'azure-openai:openai/gpt-4o-mini' });
  expect(told.reuse?.askBeside).toBe(false);
  expect((await decisionOf('dec_2')).found).toBe(false);
});

test('that of a call which tries an endpoint that failed may not, nor is another call let through by it', async () => {
  await start({ PROVIDERS: 'openai', DECISIONS_PER_SECOND_MAX: '0' });
  const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
  bus.announce('attempts.v1.openai', codec.encode({ attempts: Array.from({ length: 5 }, () => ({ endpointId: 'openai:openai/gpt-4o-mini', ok: false, failure: 'PROVIDER_ERROR' as const })) }));
  await clock.settle();
  const refused = await client.unary<DecideRequest, DecideResponse__Output>('Decide', { accountId: 'acct_1', ...PINNED });
  expect([refused.refusal, refused.reuse]).toEqual(['ALL_UNHEALTHY', null]);
  await clock.advanceAsync(31_000);
  expect(await reuseOf(PINNED)).toBeNull();
  const second = await client.unary<DecideRequest, DecideResponse__Output>('Decide', { accountId: 'acct_1', ...PINNED });
  expect([second.refusal, second.reuse]).toEqual(['ALL_UNHEALTHY', null]);
});
