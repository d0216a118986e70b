import { describe, expect, test } from '@jest/globals';
import type { Account__Output } from '@signalbox/contracts/accounts';
import { Fault } from '@signalbox/kernel/fault';
import { callerWith, cardWith, plannedAt, planWith } from '../testing/callers.js';
import { admissionOf } from '../testing/neighbours.js';
import { answersWith, fails } from '../testing/scripts.js';
import { story } from '../testing/story.js';
import type { ChatRequest } from './chat-request.js';

test.each<[string, Partial<ChatRequest>, string[]]>([
  ['auto chooses among the account’s models', { model: 'auto' }, ['a/x']],
  ['the other name of auto works, too, also as a fallback of itself', { model: 'router-auto', models: ['auto'] }, ['a/x']],
  ['a model by name is not allowed', { model: 'a/x' }, ['-']],
  ['a named fallback of auto is not allowed', { model: 'auto', models: ['a/x'] }, ['-']],
])('if the account allows some models and the key only auto, %s', async (_what, request, allowModels) => {
  const limits = { costCapPeriod: '', allowedModels: ['auto'], costCaps: [] };
  const { neighbours, run } = story({ a: answersWith('x') }, { request, caller: callerWith({ account: { allowModels: ['auto', 'a/x'] }, key: { limits } }) });
  await run();
  expect(neighbours.decided.map((asked) => asked.allowModels)).toEqual([allowModels]);
});

describe('refusals', () => {
  const capped = { account: { costCaps: [{ capNanoUsd: '1000', period: 'day' }] } };
  test.each<[string, Partial<ChatRequest>, Parameters<typeof callerWith>[0]]>([
    ['scope', {}, { key: { scopes: ['keys'] } }],
    ['plugin-requires-paid', { pluginIds: ['web-search', 'memory'] }, { account: { tier: 'free' } }],
    ['plugin-unavailable', { pluginIds: ['web-search'] }, {}],
    ['unbounded-parts', { hasUnboundedParts: true }, capped],
    ['unbounded-parts', { hasUnboundedParts: true }, { account: { tier: 'free' } }],
    ['unbounded-parts', { hasUnboundedParts: true }, { account: { hardCap: true } }],
    ['own-credential', { storedParam: 'messages.[0].content.[0].file.file_id' }, {}],
    ['own-credential', { storedParam: 'messages.[0].content.[0].file.file_id', pluginIds: ['pdf-reader'] }, {}],
  ])('answer with %s before any other service is asked', async (kind, request, caller) => {
    const { neighbours, answer, run } = story({ a: answersWith('x') }, { request, caller: callerWith(caller) });
    neighbours.plan = new Fault('routing_unavailable', 'must not be asked');
    expect(await run()).toMatchObject({ result: 'refused', attempts: [] });
    expect(answer.said).toEqual([`refuse ${kind}`]);
    expect(neighbours.asked).toEqual([]);
  });

  test('do not concern files if no limit counts the request', async () => {
    expect(await story({ a: answersWith('x') }, { request: { hasUnboundedParts: true } }).run()).toMatchObject({ result: 'answered' });
  });

  test.each<[string, Partial<Account__Output>, boolean, string]>([
    ['a cap does not count what the account pays directly to the provider', { costCaps: [{ capNanoUsd: '1000', period: 'day' }] }, true, 'answered'],
    ['a cap counts what the same account pays here', { costCaps: [{ capNanoUsd: '1000', period: 'day' }] }, false, 'refused'],
    ['an allotment over own credentials counts requests on them', { byokTokens: '1000' }, true, 'refused'],
    ['an allotment over own credentials counts no other requests', { byokTokens: '1000' }, false, 'answered'],
    ['a hard allotment counts both', { includedTokens: '1000', hardCap: true }, true, 'refused'],
    ['an allotment with overage counts neither', { includedTokens: '1000' }, true, 'answered'],
  ])('of files, if the account has a credential of its own: %s', async (_what, account, byok, result) => {
    const providerKeys = [{ handle: 'cred_1', accountId: 'acct_1', provider: 'a', last4: '', zdr: false, baseUrl: '', createdAt: '1' }];
    const { neighbours, run } = story({ a: answersWith('x') }, { request: { hasUnboundedParts: true }, caller: callerWith({ account: { ...account, providerKeys } }) });
    neighbours.plan = planWith([plannedAt('a', { byok })]);
    expect((await run()).result).toBe(result);
    expect(neighbours.asked).toHaveLength(result === 'answered' ? 1 : 0);
  });

  const STORED = 'messages.[0].content.[0].file.file_id';
  test.each<[string, ReturnType<typeof planWith>, string, readonly (boolean | undefined)[]]>([
    ['the request runs on that credential', planWith([plannedAt('a', { byok: true })]), 'answered', [true]],
    ['the request is refused if routing leaves none', planWith([], { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['file_input', 'own_credential'] }), 'own-credential', []],
    ['the request never runs on the operator’s, whatever the plan says', planWith([plannedAt('a')]), 'own-credential', []],
    ['not even as a fallback', planWith([plannedAt('a', { byok: true }), plannedAt('b')]), 'own-credential', []],
  ])('of ids of stored data, if the account has a credential of its own: %s', async (_what, plan, said, sent) => {
    const providerKeys = [{ handle: 'cred_1', accountId: 'acct_1', provider: 'a', last4: '', zdr: false, baseUrl: '', createdAt: '1' }];
    const { neighbours, answer, run } = story({ a: answersWith('x'), b: answersWith('y') }, { request: { storedParam: STORED }, caller: callerWith({ account: { providerKeys } }) });
    neighbours.plan = plan;
    expect((await run()).result).toBe(said === 'answered' ? said : 'refused');
    if (said !== 'answered') expect([answer.refusal, neighbours.asked]).toEqual([{ kind: said, param: STORED, excludedBy: plan.excludedBy }, []]);
    expect(neighbours.calls.map(({ request }) => request.byok)).toEqual(sent);
  });

  test('are decided by an estimate of the prompt and by the fewest tokens that it can be, in which media are next to nothing', async () => {
    const { neighbours, run } = story({ a: answersWith('x') }, { request: { promptTokens: 203_000, mediaTokens: 3_000 } });
    await run();
    expect(neighbours.decided).toMatchObject([{ promptTokens: 203_000, promptTokensMin: 50_000 }]);
  });

  test.each(['MODEL_NOT_FOUND', 'MODEL_DEPRECATED', 'NO_ELIGIBLE_PROVIDER', 'CONTEXT_LENGTH_EXCEEDED'] as const)('answer with %s before admission', async (refusal) => {
    const { neighbours, answer, run } = story({});
    neighbours.plan = planWith([], { refusal });
    await run();
    expect(answer.said).toEqual(['refuse routing']);
    expect(neighbours.asked).toEqual([]);
  });

  test('are not used if routing is away: the request fails as a fault, and nothing is dispatched', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('x') });
    neighbours.plan = new Fault('routing_unavailable', 'down');
    await run();
    expect(answer.refusal).toMatchObject({ kind: 'fault', fault: { code: 'routing_unavailable' } });
    expect(neighbours.calls).toEqual([]);
  });

  test.each(['RATE_LIMITED', 'BURST_LIMITED', 'COST_CAPPED', 'TRIAL_EXHAUSTED', 'ALLOTMENT_EXHAUSTED'] as const)('after an admission with %s, which is asked for once, reach no worker', async (decision) => {
    const { neighbours, answer, run } = story({ a: answersWith('x') });
    neighbours.admissions = [admissionOf(decision)];
    await run();
    expect([answer.said, neighbours.asked.length, neighbours.calls.length, neighbours.released]).toEqual([['refuse admission'], 1, 0, []]);
  });

  test.each([
    ['prices by the token alone', '0', 400, 0n, 1_000_000n],
    ['a fee for the request', '5000000', 400, 5_000_000n, 6_000_000n],
    ['a fee, whatever the length of the prompt', '5000000', 400_000, 5_000_000n, 6_000_000n],
  ])('after admission tell what the shortest request would need: %s', async (_what, requestNanoUsd, promptBytes, atLeast, below) => {
    const { neighbours, answer, run } = story({ a: answersWith('x') }, { request: { promptBytes } });
    neighbours.plan = planWith([plannedAt('a', { card: cardWith({ requestNanoUsd }) })]);
    neighbours.admissions = [admissionOf('COST_CAPPED')];
    await run();
    const least = answer.refusal?.kind === 'admission' ? answer.refusal.least : undefined;
    expect([least?.tokens, (least?.nanoUsd ?? 0n) > atLeast, (least?.nanoUsd ?? 0n) < below]).toEqual([18n, true, true]);
  });

  test('come after admission if all breakers of the plan are open, and release the hold', async () => {
    const { neighbours, answer, run } = story({});
    neighbours.plan = planWith([], { refusal: 'ALL_UNHEALTHY', retryAfterMs: 7_000 });
    await run();
    expect(answer.refusal).toEqual({ kind: 'attempts', attempts: [], retryAfterMs: 7_000 });
    expect([answer.said, neighbours.asked.length, neighbours.released.length]).toEqual([['refuse attempts'], 1, 1]);
  });
});

describe('a request that only live holds block', () => {
  test('waits for one to end, and asks for the same amount again', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('x') });
    neighbours.admissions = [admissionOf('BLOCKED_BY_LIVE'), admissionOf('BLOCKED_BY_LIVE'), admissionOf('ADMITTED', { heldNanoUsd: '1' })];
    const done = run();
    await neighbours.clock.settle();
    neighbours.waitingRoom.freed('acct_1');
    await neighbours.clock.settle();
    expect(answer.said).toEqual([]);
    neighbours.waitingRoom.freed('acct_2');
    await neighbours.clock.settle();
    expect(neighbours.asked.length).toBe(2);
    neighbours.waitingRoom.freed('acct_1');
    expect(await done).toMatchObject({ result: 'answered' });
    expect(new Set(neighbours.asked.map(({ requestId }) => requestId)).size).toBe(1);
    expect(answer.said).toEqual(['body 0:x!stop']);
  });

  test('also asks without a notice, and a last time when its wait is over', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('x') });
    neighbours.admissions = Array.from({ length: 8 }, () => admissionOf('BLOCKED_BY_LIVE')).concat(admissionOf('ADMITTED'));
    const done = run();
    await neighbours.clock.advanceAsync(2_000);
    expect(await done).toMatchObject({ result: 'answered' });
    expect([answer.said, neighbours.clock.pendingTimers()]).toEqual([['body 0:x!stop'], 0]);
  });

  test('is refused after two seconds', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('x') });
    neighbours.admissions = [admissionOf('BLOCKED_BY_LIVE', { retryAfterMs: 1_000 })];
    const done = run();
    await neighbours.clock.advanceAsync(1_900);
    expect(answer.said).toEqual([]);
    await neighbours.clock.advanceAsync(200);
    await done;
    expect(answer.said).toEqual(['refuse admission']);
  });

  test('of a client that leaves while waiting dispatches and holds nothing', async () => {
    const { neighbours, answer, run } = story({ a: answersWith('x') });
    neighbours.admissions = [admissionOf('BLOCKED_BY_LIVE'), admissionOf('ADMITTED')];
    const done = run();
    await neighbours.clock.settle();
    answer.leave();
    await neighbours.clock.advanceAsync(250);
    await done;
    expect([neighbours.calls.length, neighbours.asked.length, neighbours.clock.pendingTimers()]).toEqual([0, 1, 0]);
  });
});

describe('amounts', () => {
  const capped = callerWith({ account: { costCaps: [{ capNanoUsd: '1000000000', period: 'month' }] } });

  test('the hold covers the most expensive attempt of the plan', async () => {
    const { neighbours, run } = story({}, { request: { maxTokens: 100 }, caller: capped });
    neighbours.plan = planWith([plannedAt('a'), plannedAt('b', { card: cardWith({ outputText: '9000000000' }) })]);
    await run();
    // (400 bytes + 16) at 1 USD and 100 at 9 USD a million.
    expect(neighbours.asked[0]).toMatchObject({ amountNanoUsd: '1316000', minAmountNanoUsd: '992000', tokens: '516', counter: 'CHAT' });
  });

  test('the worker is told the tokens of a hold, even if it does not grow, since they are known nowhere else after a loss of the counters', async () => {
    const { neighbours, run } = story({ a: answersWith('x') }, { request: { maxTokens: 100 }, caller: callerWith({ account: { includedTokens: '1000', hardCap: true } }) });
    neighbours.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '1316000', heldTokens: '516', roomTokens: '1000' })];
    await run();
    expect(neighbours.calls[0]?.request).toMatchObject({ heldNanoUsd: '1316000', heldTokens: '516' });
    expect(neighbours.calls[0]?.request.heldOutputTokens).toBeUndefined();
  });

  test('the worker is told these tokens also without a limit, in case one is set when the counters are lost', async () => {
    const { neighbours, run } = story({ a: answersWith('x') });
    neighbours.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '1316000', heldTokens: '1440' })];
    await run();
    expect(neighbours.calls[0]?.request).toMatchObject({ heldNanoUsd: '1316000', unwatchedTokens: '1440' });
    expect([neighbours.calls[0]?.request.heldTokens, neighbours.calls[0]?.request.maxTokens]).toEqual([undefined, undefined]);
  });

  test.each<[string, Partial<ChatRequest>]>([
    ['a JSON Schema', { needs: { responseFormat: 'json_schema' } }],
    ['tools that earlier turns called', { calledToolBytes: 60 }],
  ])('the hold includes the prompt of the tools by which a wire serves %s', async (_name, over) => {
    const { neighbours, run } = story({}, { request: { maxTokens: 100, ...over }, caller: capped });
    neighbours.plan = planWith([plannedAt('a'), plannedAt('b', { wireProtocol: 'anthropic-messages' })]);
    await run();
    expect(neighbours.asked[0]).toMatchObject({ tokens: String(516 + 600 + (over.calledToolBytes ?? 0)) });
  });

  test('the provider is asked for as long an answer as the hold pays for', async () => {
    const { neighbours, run } = story({ a: answersWith('x') }, { request: { maxTokens: 1_000 }, caller: capped });
    neighbours.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '616000' })];
    await run();
    expect(neighbours.calls[0]?.request).toMatchObject({ maxTokens: 100, shortened: true, heldNanoUsd: '616000' });
  });

  test.each<[string, Partial<ChatRequest>, boolean, boolean]>([
    ['a stream begins with a tranche', { stream: true }, true, false],
    ['a long answer without a stream is streamed and gathered', { stream: false }, true, true],
    ['a short answer without a stream is held whole', { stream: false, maxTokens: 1_024 }, false, false],
  ])('under a cap %s', async (_name, request, isStream, isGathered) => {
    const { neighbours, run } = story({ a: answersWith('x') }, { request, caller: capped });
    neighbours.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '2464000', heldTokens: '1440', roomNanoUsd: '6416000' })];
    await run();
    // (400 bytes + 16) at 1 USD and 1,024 at 2 USD a million are held; the room pays for 3,000 tokens.
    expect(neighbours.asked[0]).toMatchObject({ amountNanoUsd: '2464000', minAmountNanoUsd: '544000', tokens: '1440', minTokens: '480' });
    const whole = request.maxTokens ?? 3_000;
    expect(neighbours.calls[0]?.request).toMatchObject({ stream: isStream, clientStream: request.stream ?? false, gather: isGathered, maxTokens: whole, shortened: whole === 3_000 });
    expect(neighbours.calls[0]?.request.heldOutputTokens).toBe(isStream ? 1_024 : undefined);
  });

  test('for a model with hidden reasoning the whole answer is held', async () => {
    const { neighbours, run } = story({}, { request: { stream: true }, caller: capped });
    neighbours.plan = planWith([plannedAt('a', { hiddenReasoning: true })]);
    await run();
    expect(neighbours.asked[0]).toMatchObject({ amountNanoUsd: '16800000', tokens: String(416 + 8_192) });
  });

  test('without a limit the client’s own bound, or none, is passed on', async () => {
    const asked = story({ a: answersWith('x') }, { request: { maxTokens: 9 } });
    const silent = story({ a: answersWith('x') });
    await Promise.all([asked.run(), silent.run()]);
    expect([asked.neighbours.calls[0]?.request.maxTokens, silent.neighbours.calls[0]?.request.maxTokens]).toEqual([9, undefined]);
    expect(silent.neighbours.asked[0]?.minAmountNanoUsd).toBe('0');
  });

  test('each worker is told the context window of its endpoint, into which prompt and answer must fit', async () => {
    const { neighbours, run } = story({ a: fails('CONNECT'), b: answersWith('x') }, { request: { promptBytes: 680_000, promptTokens: 170_000 } });
    neighbours.plan = planWith([plannedAt('a', { contextWindow: 200_000 }), plannedAt('b', { contextWindow: 0 })]);
    await run();
    expect(neighbours.calls.map(({ request }) => [request.promptTokens, request.contextWindow])).toEqual([[170_000, 200_000], [170_000, 0]]);
  });

  test('fields that an endpoint does not take are left out, for that attempt only', async () => {
    const fields = ['messages', 'seed'].map((name) => ({ name, value: Buffer.from('1') }));
    const { neighbours, run } = story({ a: fails('CONNECT'), b: answersWith('x') }, { request: { fields } });
    neighbours.plan = planWith([plannedAt('a', { dropParams: ['seed'] }), plannedAt('b')]);
    await run();
    expect(neighbours.calls.map(({ request }) => request.fields?.map(({ name }) => name))).toEqual([['messages'], ['messages', 'seed']]);
  });
});

describe('own credentials', () => {
  const own = (over: object = {}) => callerWith({
    account: { providerKeys: [{ handle: 'cred_1', accountId: 'acct_1', provider: 'a', last4: 'abcd', zdr: true, baseUrl: '', createdAt: '1' }, { handle: 'cred_2', accountId: 'acct_1', provider: 'b', last4: '', zdr: false, baseUrl: '', createdAt: '1' }], ...over },
  });
  const plan = () => planWith([plannedAt('a', { byok: true })]);

  test('cost the account nothing, and are passed on as a handle', async () => {
    const { neighbours, run } = story({ a: answersWith('x') }, { caller: own({ costCaps: [{ capNanoUsd: '1', period: 'day' }] }) });
    neighbours.plan = plan();
    expect((await run()).result).toBe('answered');
    expect(neighbours.asked[0]).toMatchObject({ byok: true, amountNanoUsd: '0', minAmountNanoUsd: '0' });
    expect(neighbours.calls[0]?.request).toMatchObject({ byok: true, byokHandle: 'cred_1' });
  });

  test('are sent to routing with the account’s zero-retention agreement and own address, if any', async () => {
    const key = { accountId: 'acct_1', last4: '', zdr: false, baseUrl: '', createdAt: '1' };
    const providerKeys = [{ ...key, handle: 'cred_1', provider: 'a', zdr: true }, { ...key, handle: 'cred_2', provider: 'b', baseUrl: 'https://models.example.com' }];
    const { neighbours, run } = story({ a: answersWith('x') }, { caller: callerWith({ account: { providerKeys } }) });
    await run();
    expect(neighbours.decided).toMatchObject([{ byokProviders: ['a', 'b'], byokZdrProviders: ['a'], byokOwnAddressProviders: ['b'] }]);
  });

  test('of a tier with an allotment for them hold tokens, but no money', async () => {
    const { neighbours, run } = story({ a: answersWith('x') }, { caller: own({ tier: 'free' }), request: { maxTokens: 100 } });
    neighbours.plan = plan();
    neighbours.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '0' })];
    await run();
    expect(neighbours.asked[0]).toMatchObject({ byok: true, amountNanoUsd: '0', minAmountNanoUsd: '0', tokens: '516' });
    expect(neighbours.calls[0]?.request.maxTokens).toBe(100);
  });

  test('are not used if the plan is on the operator’s credentials', async () => {
    const { neighbours, run } = story({ a: answersWith('x') }, { caller: own() });
    await run();
    expect(neighbours.asked[0]?.byok).toBe(false);
    expect(neighbours.calls[0]?.request).toMatchObject({ byok: false, byokHandle: '' });
  });

  test('that the provider refuses are reported as that, and not as a wrong key of this service', async () => {
    const { neighbours, answer, run } = story({ a: fails('CREDENTIAL', { status: 401 }) }, { caller: own() });
    neighbours.plan = plan();
    await run();
    expect(answer.refusal).toMatchObject({ kind: 'attempts', attempts: [{ provider: 'a', byok: true, failed: { class: 'CREDENTIAL' } }] });
  });
});
