import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { createAllowList } from '@signalbox/net-guard/allow-list';
import { createDialer } from '@signalbox/net-guard/dialer';
import { silentLog } from '@signalbox/runtime/log';
import { createMetrics } from '@signalbox/runtime/metrics';
import { Secret } from '@signalbox/runtime/secret';
import { sse } from '@signalbox/testkit/fake-provider';
import { NO_QUIRKS } from '@signalbox/wires/openai-chat/quirks';
import { createCredentialPool } from './credentials.js';
import type { DispatchOptions } from './dispatch.js';
import { createWorkerMetrics } from './metrics.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import { CARD, chunk, requestOf, startDispatchRig, text, USAGE, type DispatchRig } from './testing/dispatch-rig.js';
import { createUpstream } from './upstream.js';

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
});
afterEach(() => rig.stop());

describe('usage that is hard to believe', () => {
  const absurd = { prompt_tokens: 5_000, completion_tokens: 2, total_tokens: 5_002 };
  const answer = { chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: absurd }), sse('[DONE]')] };
  let lines: object[];
  let watched: Partial<DispatchOptions>;
  let alarmed: number;
  beforeEach(() => {
    lines = [];
    alarmed = 0;
    const metrics = createWorkerMetrics(createMetrics({ service: 'worker-fake', withProcessMetrics: false }));
    watched = {
      log: { ...silentLog, warn: (line, fields = {}) => void lines.push({ line, ...fields }) },
      metrics: { ...metrics, suspect: () => void (alarmed += 1) },
    };
  });

  test('is booked, flagged and counted each time, and logged once a minute', async () => {
    rig.use(rig.clock, watched);
    for (let attempt = 1; attempt <= 20; attempt += 1) {
      rig.provider.enqueue(answer);
      await rig.run(requestOf({ attempt }));
    }
    expect(rig.ends.map(({ source, flags }) => [source, ...flags])).toEqual(Array<string[]>(20).fill(['PROVIDER', 'suspect']));
    expect(alarmed).toBe(20);
    expect(lines).toEqual([
      expect.objectContaining({
        line: 'Usage figures are hard to believe.',
        provider: 'fake',
        model: 'fake-1',
        source: 'PROVIDER',
        booked_prompt: 5_000,
        own_prompt: 10,
        booked_output: 2,
      }),
    ]);
  });

  test('does not alert the operator if it comes from an account’s own address', async () => {
    const own = createUpstream('http://127.0.0.1:1', createDialer({ allow: createAllowList([new URL(rig.provider.origin).host]) }));
    const adapter = createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl });
    rig.use(rig.clock, {
      ...watched,
      upstream: own,
      ownCredentials: { resolve: () => ({ adapter, pool: createCredentialPool([new Secret('sk-own')], rig.clock), isAtOwnAddress: true }) },
    });
    rig.provider.enqueue(answer);
    await rig.run(requestOf({ byok: true, byokHandle: 'cred_1' }));
    await own.close();
    expect(rig.ends.map(({ flags }) => flags)).toEqual([['suspect']]);
    expect([alarmed, lines]).toEqual([0, []]);
  });
});

describe('the cost that a provider reports', () => {
  const answers = (cost: unknown): void => rig.provider.enqueue({ chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: { ...USAGE, cost } }), sse('[DONE]')] });
  const withCosts = (over: Partial<DispatchOptions> = {}): object[] => {
    const lines: object[] = [];
    const adapter = createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl, quirks: { ...NO_QUIRKS, tellsCost: true } });
    rig.use(rig.clock, { adapter, log: { ...silentLog, warn: (line, fields = {}) => void lines.push({ line, ...fields }) }, ...over });
    return lines;
  };

  test.each<[unknown, bigint | undefined]>([[0.00001, 10_000n], [0.00006, 60_000n], [0, 0n], [-1, undefined], ['1', undefined], [undefined, undefined]])('of %s dollars is recorded beside the cost at the price card, which is charged', async (cost, told) => {
    const lines = withCosts();
    answers(cost);
    const events = await rig.run(requestOf());
    expect(rig.ends[0]).toMatchObject({ costNanoUsd: 20_000n, source: 'PROVIDER', flags: [] });
    expect([rig.ends[0]?.toldNanoUsd, events.at(-1)?.end?.costNanoUsd, lines]).toEqual([told, '20000', []]);
  });

  test('is logged if it is more than three times the price', async () => {
    const lines = withCosts();
    answers(0.000060001);
    await rig.run(requestOf());
    expect(lines).toEqual([{ line: 'The provider charged more than three times what its price card says.', provider: 'fake', model: 'fake-1', request_id: expect.any(String) as unknown, told_nano_usd: '60001', card_nano_usd: '20000' }]);
  });

  test('is not recorded for an account’s own credential', async () => {
    const lines = withCosts({ ownCredentials: { resolve: () => ({ adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl, quirks: { ...NO_QUIRKS, tellsCost: true } }), pool: createCredentialPool([new Secret('sk-own')], rig.clock), isAtOwnAddress: false }) } });
    answers(7);
    await rig.run(requestOf({ byok: true, byokHandle: 'cred_1' }));
    expect([rig.ends[0]?.costNanoUsd, rig.ends[0]?.toldNanoUsd, lines]).toEqual([20_000n, undefined, []]);
  });
});

describe('of prices with steps', () => {
  const dear = { ...CARD, id: 'card-2', inputUncached: '2000000000', outputText: '3000000000' };
  const list = { ...CARD, id: 'list-1', inputUncached: '4000000000' };
  const dearList = { ...CARD, id: 'list-2', inputUncached: '8000000000' };
  const steps = [
    { fromPromptTokens: 0, card: CARD },
    { fromPromptTokens: 1_000, card: dear },
  ];
  const referenceSteps = [
    { fromPromptTokens: 0, card: list },
    { fromPromptTokens: 1_000, card: dearList },
  ];
  /** As edge sends it: with the cards for the estimate of the first round. */
  const stepped = (planned: number, over: Partial<DispatchRequest__Output> = {}): DispatchRequest__Output => {
    const isLong = planned >= 1_000;
    return requestOf({
      stream: false,
      clientStream: false,
      promptTokens: planned,
      card: isLong ? dear : CARD,
      referenceCard: isLong ? dearList : list,
      steps,
      referenceSteps,
      ...over,
    });
  };
  const answers = (told: number | undefined): void => {
    const usage = told === undefined ? {} : { usage: { prompt_tokens: told, completion_tokens: 5, total_tokens: told + 5 } };
    rig.provider.enqueue({
      body: JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: '12345678901234567890' }, finish_reason: 'stop' }], ...usage }),
    });
  };

  test.each([
    ['told beyond the step, estimated below it', 900, 1_100, 'card-1', 'card-2', 1_100n * 2_000n + 5n * 3_000n, 1_100n * 8_000n + 5n * 2_000n],
    ['told below the step, estimated beyond it', 1_100, 900, 'card-2', 'card-1', 900n * 1_000n + 5n * 2_000n, 900n * 4_000n + 5n * 2_000n],
    ['told at the step', 900, 1_000, 'card-1', 'card-2', 1_000n * 2_000n + 5n * 3_000n, 1_000n * 8_000n + 5n * 2_000n],
    ['told one below the step', 900, 999, 'card-1', 'card-1', 999n * 1_000n + 5n * 2_000n, 999n * 4_000n + 5n * 2_000n],
    ['told and estimated beyond the step', 1_100, 1_200, 'card-2', 'card-2', 1_200n * 2_000n + 5n * 3_000n, 1_200n * 8_000n + 5n * 2_000n],
    ['not told, estimated below the step', 900, undefined, 'card-1', 'card-1', 900n * 1_000n + 5n * 2_000n, 900n * 4_000n + 5n * 2_000n],
    ['not told, estimated beyond the step', 1_100, undefined, 'card-2', 'card-2', 1_100n * 2_000n + 5n * 3_000n, 1_100n * 8_000n + 5n * 2_000n],
  ])('a prompt %s is charged entirely at the card for its size', async (_name, planned, told, begun, charged, cost, referenceCost) => {
    answers(told);
    const events = await rig.run(stepped(planned));
    expect([rig.starts[0]?.card.id, rig.ends[0]?.costNanoUsd, rig.ends[0]?.savingsNanoUsd]).toEqual([begun, cost, referenceCost - cost]);
    expect(rig.ends[0]?.cards).toEqual(
      begun === charged ? undefined : { card: charged === 'card-2' ? dear : CARD, referenceCard: charged === 'card-2' ? dearList : list },
    );
    expect(events.at(-1)?.end).toMatchObject({ costNanoUsd: String(cost), cardId: begun === charged ? '' : charged });
  });

  test('a round whose prompt has grown beyond the step since planning starts with the card for its size', async () => {
    answers(undefined);
    const events = await rig.run(stepped(900, { promptTokens: 1_100 }));
    expect([rig.starts[0]?.card, rig.starts[0]?.referenceCard, rig.ends[0]?.cards]).toEqual([dear, dearList, undefined]);
    expect([rig.ends[0]?.costNanoUsd, events.at(-1)?.end?.cardId]).toEqual([1_100n * 2_000n + 5n * 3_000n, 'card-2']);
  });

  test('a refused attempt costs nothing and keeps the card of its start', async () => {
    rig.provider.enqueue({ status: 500, body: '{}' });
    await rig.run(stepped(1_100));
    expect(rig.ends[0]).toMatchObject({ costNanoUsd: 0n, savingsNanoUsd: 0n });
    expect(rig.ends[0]?.cards).toBeUndefined();
  });

  test.each([
    ['no card for short prompts', steps.slice(1)],
    ['a step without a card', [...steps, { fromPromptTokens: 2_000, card: null }]],
    ['a price that is no number', [...steps, { fromPromptTokens: 2_000, card: { ...dear, id: 'card-3', image: 'x' } }]],
  ])('a request with %s is refused before anything is journaled', async (_name, broken) => {
    await expect(rig.run(stepped(900, { steps: broken }))).rejects.toMatchObject({ code: 'bad_message' });
    expect(rig.log).toEqual([]);
  });
});

test('a cut after content ends with what was delivered, flagged estimated', async () => {
  rig.provider.enqueue({ chunks: [text('Hello wo')], cut: true });
  const end = (await rig.run(requestOf())).at(-1)?.end;
  expect(end).toMatchObject({
    finishReason: 'error',
    source: 'ESTIMATED',
    flags: ['estimated'],
    cut: { class: 'DISCONNECTED' },
    tokens: { inputUncached: 10, outputText: 2 },
  });
});

const TOLD_FIRST = chunk([], { usage: { prompt_tokens: 12, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 8 } } });

test('of an answer that broke off, the prompt is charged as reported, and the client is told', async () => {
  rig.provider.enqueue({ chunks: [TOLD_FIRST, text('Hello wo')], cut: true });
  const end = (await rig.run(requestOf())).at(-1)?.end;
  expect(end).toMatchObject({
    source: 'ESTIMATED',
    flags: ['estimated'],
    cut: { class: 'DISCONNECTED' },
    tokens: { inputUncached: 4, cacheRead: 8, outputText: 2 },
    cachedKnown: true,
    costNanoUsd: '12000',
  });
});

test('an answer that follows its usage is not booked as empty, and its checkpoints contain the reported prompt', async () => {
  rig.provider.enqueue({
    chunks: [TOLD_FIRST, text('x'.repeat(8_192)), text('y'.repeat(1_808)), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), sse('[DONE]')],
  });
  const end = (await rig.run(requestOf())).at(-1)?.end;
  expect(end).toMatchObject({ source: 'ESTIMATED', flags: ['estimated'], finishReason: 'stop', tokens: { inputUncached: 4, cacheRead: 8, outputText: 2_500 } });
  expect(rig.checkpoints[0]).toMatchObject({ inputUncached: 4, cacheRead: 8 });
  expect(rig.checkpoints[0]?.outputText).toBeGreaterThanOrEqual(2_048);
});

describe('of an answer that ends in an error', () => {
  const role = chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]);
  const failing = chunk([{ index: 0, delta: {}, finish_reason: 'error' }]);

  test('usage that follows the error is booked, even if no content arrived', async () => {
    rig.provider.enqueue({ chunks: [role, failing, chunk([], { usage: USAGE }), sse('[DONE]')] });
    expect((await rig.run(requestOf())).at(-1)?.failed).toMatchObject({ class: 'PROVIDER_ERROR', retryable: true });
    expect(rig.ends[0]).toMatchObject({ source: 'PROVIDER', costNanoUsd: 20_000n, finishReason: 'error', tokens: { inputUncached: 10, outputText: 5 } });
  });

  test('usage is waited for as after any finish, and without it an empty answer costs nothing', async () => {
    rig.use(rig.clock);
    rig.provider.enqueue({ chunks: [role, failing, () => new Promise(() => undefined)] });
    const events = rig.run(requestOf());
    while (rig.readBytes() < Buffer.byteLength(role + failing)) await new Promise(setImmediate);
    await rig.clock.advanceAsync(2_000);
    expect((await events).at(-1)?.failed).toMatchObject({ class: 'PROVIDER_ERROR' });
    expect(rig.ends[0]).toMatchObject({ costNanoUsd: 0n, finishReason: 'error' });
  });
});
