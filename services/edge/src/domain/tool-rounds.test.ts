import { describe, expect, test } from '@jest/globals';
import type { PrepareRequest, PrepareResponse__Output, RunToolRequest, Tool__Output } from '@signalbox/contracts/plugins';
import { Fault } from '@signalbox/kernel/fault';
import type { ManifestRecord } from '@signalbox/plugin-kit/manifest';
import { withMessages } from '../routes/chat-completions/with-messages.js';
import { callerWith, cardWith, plannedAt, planWith, requestWith } from '../testing/callers.js';
import { admissionOf, createFakeNeighbours, events, type PlayedCall } from '../testing/neighbours.js';
import { createRecordedAnswer } from '../testing/recorded-answer.js';
import { conduct, type Neighbours } from './conduct.js';
import type { ChatRequest } from './chat-request.js';
import { withTools } from './tool-request.js';

const CODE_EXEC: ManifestRecord = { id: 'code-exec', name: '', description: '', paid: false, kind: 'tool', fee_nano_usd: '0', zdr: true, data_collection_deny: true, options: {} };
const MESSAGES = '[{"role":"user","content":"compute"}]';
const TOOL = '{"type":"function","function":{"name":"code_exec","parameters":{"type":"object"}}}';

type Call = { readonly id: string; readonly name: string; readonly arguments: string };
const ours = (id = 'call_1'): Call => ({ id, name: 'code_exec', arguments: '{"code":"6*7"}' });
const theirs: Call = { id: 'call_9', name: 'get_weather', arguments: '{"city":"Oslo"}' };
const wire = ({ id, name, arguments: text }: Call) => ({ id, type: 'function', function: { name, arguments: text } });

const calling = (...calls: readonly Call[]) => [
  { event: 'body' as const, body: { choices: Buffer.from(JSON.stringify([{ index: 0, message: { role: 'assistant', content: null, refusal: null, tool_calls: calls.map(wire) }, logprobs: null, finish_reason: 'tool_calls' }])), systemFingerprint: '', serviceTier: '' } },
  events.end({ finishReason: 'tool_calls' }),
];
const chunkOf = (delta: object, reason: string | null = null) => ({ event: 'chunk' as const, chunk: { choices: Buffer.from(JSON.stringify([{ index: 0, delta, logprobs: null, finish_reason: reason }])), content: reason === null, finish: reason !== null } });
const streaming = (...calls: readonly Call[]) => [
  events.role(),
  ...calls.flatMap(({ id, name, arguments: text }, index) => [
    chunkOf({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    chunkOf({ tool_calls: [{ index, function: { arguments: text } }] }),
  ]),
  chunkOf({}, 'tool_calls'),
  events.end({ finishReason: 'tool_calls' }),
];
const saying = () => [events.body('It is 42.'), events.end()];

interface Setting {
  readonly request?: Partial<ChatRequest>;
  readonly tools?: string;
  readonly roundsMax?: number;
  /** What the model does in each round; the last one stays. */
  readonly rounds: readonly ((call: PlayedCall) => void)[];
  readonly runTool?: (request: RunToolRequest, signal: AbortSignal) => Promise<unknown>;
  readonly providers?: readonly string[];
  /** Tools beside code_exec. */
  readonly offered?: readonly Tool__Output[];
}

function story({ request = {}, tools, roundsMax = 8, rounds, runTool, providers = ['a'], offered = [] }: Setting) {
  const fake = createFakeNeighbours(planWith(providers.map((provider) => plannedAt(provider))));
  let played = 0;
  for (const provider of providers) fake.scripts.set(provider, (call) => rounds[Math.min(played++, rounds.length - 1)]?.(call));
  const ran: RunToolRequest[] = [];
  const prepared: PrepareResponse__Output = { problem: null, messages: Buffer.alloc(0), stages: [], citations: [], files: [], observes: false, tools: [{ name: 'code_exec', definition: Buffer.from(TOOL), feeNanoUsdMax: '0', imagesMax: 0 }, ...offered], toolRoundsMax: roundsMax };
  const neighbours: Neighbours = Object.assign(fake, {
    withMessages,
    plugins: {
      manifests: () => Promise.resolve(new Map([['code-exec', CODE_EXEC]])),
      prepare: (_asked: PrepareRequest) => Promise.resolve(prepared),
      runTool: (asked: RunToolRequest, signal: AbortSignal) => {
        ran.push(asked);
        return (runTool?.(asked, signal) ?? Promise.resolve({ content: '{"result":"42"}', stage: { name: 'code-exec', plugin: 'code-exec', status: 'completed', durationMs: 3, feeNanoUsd: '0', detail: Buffer.alloc(0) }, images: [] })) as never;
      },
      observe: () => undefined,
    },
  });
  const answer = createRecordedAnswer();
  const fields = [{ name: 'messages', value: Buffer.from(MESSAGES) }, ...(tools === undefined ? [] : [{ name: 'tools', value: Buffer.from(tools) }]), ...(request.fields ?? [])];
  const turn = { requestId: 'chatcmpl-0123456789', caller: callerWith(), answer, request: requestWith({ pluginIds: ['code-exec'], promptBytes: 100, messageCount: 1, ...request, fields }) };
  const sent = (at: number, name: string): unknown => {
    const field = fake.calls[at]?.request.fields?.find((one) => one.name === name);
    return field === undefined ? undefined : (JSON.parse(Buffer.from(field.value as Uint8Array).toString('utf8')) as unknown);
  };
  return { fake, answer, ran, sent, turn, neighbours, run: () => conduct(neighbours, turn) };
}

describe('rounds', () => {
  test('the model is given what its call gave; usage and cost are those of all rounds, and every attempt shows', async () => {
    const { fake, answer, ran, sent, run } = story({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())] });
    const { attempts, result } = await run();
    expect([result, attempts.map(({ round }) => round)]).toEqual(['answered', [1, 2]]);
    expect(ran).toMatchObject([{ name: 'code_exec', arguments: '{"code":"6*7"}' }]);
    expect(sent(0, 'tools')).toEqual([JSON.parse(TOOL)]);
    expect(sent(1, 'messages')).toEqual([
      { role: 'user', content: 'compute' },
      { role: 'assistant', content: null, tool_calls: [wire(ours())] },
      { role: 'tool', tool_call_id: 'call_1', content: '{"result":"42"}' },
    ]);
    expect(fake.calls.map(({ request }) => [request.attempt, request.retryOf, request.rounds, request.earlierNanoUsd])).toEqual([[1, [], true, '0'], [2, [], true, '20000']]);
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '40000', savingsNanoUsd: '200', tokens: { inputUncached: 20, outputText: 10 } }, pipeline: [{ stage: 'code-exec', status: 'completed', detail: { round: 1 } }] });
    expect(fake.outcomes).toEqual(['a#1 DELIVERED followed', 'a#2 DELIVERED']);
  });

  test('a call goes back to its model with the signature that came with it, streamed or not', async () => {
    const signed = (text: string) => ({ extra_content: { google: { thought_signature: text } } });
    const whole = { index: 0, message: { role: 'assistant', content: 'hm', ...signed('m'), tool_calls: [{ ...wire(ours()), ...signed('c') }] }, logprobs: null, finish_reason: 'tool_calls' };
    const body = { event: 'body' as const, body: { choices: Buffer.from(JSON.stringify([whole])), systemFingerprint: '', serviceTier: '' } };
    const { id, name, arguments: text } = ours();
    const pieces = [events.role(), chunkOf({ content: 'hm', ...signed('m') }), chunkOf({ tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: '' }, ...signed('c') }] }), chunkOf({ tool_calls: [{ index: 0, function: { arguments: text } }] }), chunkOf({}, 'tool_calls')];
    for (const [stream, played] of [[false, [body]], [true, pieces]] as const) {
      const { sent, run } = story({ request: { stream }, rounds: [(call) => call.play(...played, events.end({ finishReason: 'tool_calls' })), (call) => call.play(...(stream ? [events.text('42'), events.finish(), events.end()] : saying()))] });
      expect((await run()).result).toBe('answered');
      expect(sent(1, 'messages')).toMatchObject([{}, { role: 'assistant', content: 'hm', ...signed('m'), tool_calls: [{ ...wire(ours()), ...signed('c') }] }, { role: 'tool' }]);
    }
  });

  test('the card that is told is the one of the last round, fees of its programs and all', async () => {
    for (const stream of [false, true]) {
      const told: string[] = [];
      const { answer, turn, neighbours } = story({
        request: { stream },
        rounds: [(call) => call.play(...(stream ? streaming(ours()) : calling(ours()))), (call) => call.play(...(stream ? [events.text('42'), events.finish(), events.end()] : saying()))],
        runTool: () => Promise.resolve({ content: '{}', stage: { name: 'code-exec', plugin: 'code-exec', status: 'completed', durationMs: 3, feeNanoUsd: '7', detail: Buffer.alloc(0) }, images: [] }),
      });
      const decided = (plan: { readonly attempts: readonly { readonly card?: { readonly id: string } | null }[] }): void => void told.push(plan.attempts[0]?.card?.id ?? '');
      await conduct(neighbours, { ...turn, explain: true, answer: Object.assign(answer, { decided }) });
      expect(told).toEqual(['card_1', 'card_1', 'card_1+plugins.7']);
    }
  });

  test('a request whose model calls nothing is one attempt like any other', async () => {
    const { fake, answer, run } = story({ rounds: [(call) => call.play(...saying())] });
    expect((await run()).result).toBe('answered');
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '20000' } });
    expect(fake.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('after the last round the model has to answer, and a model that calls on is not run', async () => {
    const { fake, answer, ran, sent, run } = story({ roundsMax: 2, rounds: [(call) => call.play(...calling(ours()))] });
    expect((await run()).result).toBe('answered');
    expect([ran.length, fake.calls.length]).toEqual([2, 3]);
    expect([sent(1, 'tool_choice'), sent(2, 'tool_choice')]).toEqual([undefined, 'none']);
    expect(JSON.parse(answer.raw.join(''))).toMatchObject([{ message: { content: '' }, finish_reason: 'stop' }]);
    expect(answer.raw.join('')).not.toContain('code_exec');
  });

  test.each([
    ['any tool', '"required"', 'required', true],
    ['the tool by name', '{"type":"function","function":{"name":"code_exec"}}', { type: 'function', function: { name: 'code_exec' } }, true],
    ['none', '"none"', 'none', false],
  ])('a client without tools of its own may want %s of ours called; it is wanted in the first round alone', async (_what, choice, sentChoice, isForced) => {
    const waitingToolFields = [{ name: 'tool_choice', value: Buffer.from(choice) }, { name: 'parallel_tool_calls', value: Buffer.from('false') }];
    const { sent, turn, run } = story({ request: { waitingToolFields }, rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())] });
    expect((await run()).result).toBe('answered');
    expect([sent(0, 'tool_choice'), sent(1, 'tool_choice')]).toEqual([sentChoice, undefined]);
    expect([sent(0, 'parallel_tool_calls'), sent(1, 'parallel_tool_calls')]).toEqual([false, false]);
    expect(withTools(turn.request, [TOOL]).needs).toMatchObject({ tools: true, forcedToolChoice: isForced, parallelToolCalls: true, params: ['tool_choice', 'parallel_tool_calls'] });
  });

  test('a tool that must be called and that no plugin offers is refused by name', async () => {
    const waitingToolFields = [{ name: 'tool_choice', value: Buffer.from('{"type":"function","function":{"name":"get_weather"}}') }];
    const { fake, answer, run } = story({ request: { waitingToolFields }, rounds: [(call) => call.play(...saying())] });
    expect((await run()).result).toBe('refused');
    expect(answer.refusal).toMatchObject({ kind: 'plugin-problem', problem: { kind: 'value', param: 'tool_choice', message: expect.stringMatching(/code_exec/) } });
    expect(fake.calls).toEqual([]);
  });

  test("calls of the client's own tools are handed to it untouched, ours beside them are not run", async () => {
    const { fake, answer, ran, run } = story({ tools: '[{"type":"function","function":{"name":"get_weather"}}]', rounds: [(call) => call.play(...calling(ours(), theirs))] });
    expect((await run()).result).toBe('answered');
    expect([ran.length, fake.calls.length]).toEqual([0, 1]);
    expect(JSON.parse(answer.raw.join(''))).toMatchObject([{ message: { content: null, tool_calls: [wire(theirs)] }, finish_reason: 'tool_calls' }]);
    expect(answer.raw.join('')).not.toContain('code_exec');
  });

  test('a tool that cannot be run is told to the model', async () => {
    const { sent, run } = story({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())], runTool: () => Promise.reject(new Error('away')) });
    expect((await run()).result).toBe('answered');
    expect(sent(1, 'messages')).toContainEqual({ role: 'tool', tool_call_id: 'call_1', content: 'Error: the tool is not available at the moment.' });
  });

  test('a round that fails moves on within the round; what it supersedes is of that round only', async () => {
    const { fake, run } = story({ providers: ['a', 'b'], rounds: [(call) => call.play(...calling(ours())), (call) => call.play(events.started(), events.failed('PROVIDER_ERROR')), (call) => call.play(events.started(), ...saying())] });
    expect((await run()).result).toBe('answered');
    expect(fake.calls.map(({ provider, request }) => [provider, request.attempt, request.retryOf])).toEqual([['a', 1, []], ['a', 2, []], ['b', 3, [2]]]);
    expect(fake.outcomes).toEqual(['a#2 SUPERSEDED', 'a#1 DELIVERED followed', 'b#3 DELIVERED']);
  });

  test('a round that nobody answers is an error, and nothing of the request is charged', async () => {
    const { fake, answer, run } = story({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(events.failed('PROVIDER_ERROR'))] });
    expect((await run()).result).toBe('refused');
    expect(answer.refusal).toMatchObject({ kind: 'attempts', attempts: [{ round: 1 }, { round: 2 }] });
    expect(fake.outcomes).toEqual(['a#2 DISCARDED followed', 'a#1 DISCARDED']);
    expect(fake.released).toEqual([]);
  });

  test('one answer only, and names of tools are one’s own', async () => {
    const several = story({ request: { choices: 2 }, rounds: [] });
    await several.run();
    expect(several.answer.refusal).toMatchObject({ kind: 'plugin-problem', problem: { param: 'n' } });
    const clash = story({ tools: `[{"type":"function","function":{"name":"x"}},${TOOL}]`, rounds: [] });
    await clash.run();
    expect(clash.answer.refusal).toMatchObject({ kind: 'plugin-problem', problem: { param: 'tools.[1].function.name' } });
    expect(clash.fake.calls).toHaveLength(0);
  });
});

describe('streams', () => {
  test('words go on, our calls stay silent, and the rounds are one stream with one end', async () => {
    const { fake, answer, run } = story({
      request: { stream: true },
      rounds: [(call) => call.play(events.role(), events.text('Let me see. '), ...streaming(ours()).slice(1)), (call) => call.play(events.role(), events.text('It is 42.'), events.finish(), events.end())],
    });
    expect((await run()).result).toBe('answered');
    const shown = answer.raw.join('');
    expect(shown).toContain('Let me see. ');
    expect(shown).toContain('It is 42.');
    expect(shown).not.toContain('tool_calls');
    expect(shown.split('"role"')).toHaveLength(2);
    expect(answer.said.filter((said) => said.startsWith('finish'))).toHaveLength(1);
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '40000' } });
    expect(fake.outcomes).toEqual(['a#1 DELIVERED followed', 'a#2 DELIVERED']);
  });

  test('of JSON nothing is streamed but JSON: what the model says beside a call of ours stays with the model', async () => {
    const json = { stream: true, needs: { ...requestWith().needs, responseFormat: 'json_object' } };
    const beside = (text: string) => [events.role(), events.text(text), ...streaming(ours()).slice(1)];
    const ending = [events.role(), events.text('{"a":42}'), events.finish(), events.end()];
    const { answer, sent, run } = story({ request: json, rounds: [(call) => call.play(...beside('I will compute it.')), (call) => call.play(...ending)] });
    expect((await run()).result).toBe('answered');
    const wordsOf = (raw: readonly string[]): string => raw.flatMap((text) => (JSON.parse(text) as { delta?: { content?: string } }[]).map(({ delta }) => delta?.content ?? '')).join('');
    expect([wordsOf(answer.raw), answer.settlement?.healed]).toEqual(['{"a":42}', []]);
    expect(sent(1, 'messages')).toMatchObject([{}, { role: 'assistant', content: 'I will compute it.' }, { role: 'tool' }]);
    const twice = story({ request: json, rounds: [(call) => call.play(...beside('{"a":0}')), (call) => call.play(...ending)] });
    expect((await twice.run()).result).toBe('answered');
    expect([wordsOf(twice.answer.raw), twice.answer.settlement?.healed]).toEqual(['{"a":0}{"a":42}', ['failed']]);
  });

  test("calls of the client's tools are streamed with places of their own", async () => {
    const { answer, run } = story({ request: { stream: true }, tools: '[{"type":"function","function":{"name":"get_weather"}}]', rounds: [(call) => call.play(...streaming(ours(), theirs))] });
    expect((await run()).result).toBe('answered');
    const shown = answer.raw.join('');
    expect(shown).toContain('"tool_calls":[{"index":0,"id":"call_9"');
    expect(shown).not.toContain('code_exec');
    expect(shown).toContain('"finish_reason":"tool_calls"');
  });

  test('while a tool runs the connection is kept alive', async () => {
    let release: (value: unknown) => void = () => undefined;
    const { fake, answer, run } = story({
      request: { stream: true },
      rounds: [(call) => call.play(...streaming(ours())), (call) => call.play(events.text('done'), events.finish(), events.end())],
      runTool: () => new Promise((resolve) => {
        release = resolve;
      }),
    });
    const running = run();
    for (let turns = 0; turns < 50; turns += 1) await Promise.resolve();
    const keptAlive = (): number => answer.said.filter((said) => said === 'keep-alive').length;
    expect(keptAlive()).toBe(0);
    fake.clock.advance(10_000);
    fake.clock.advance(10_000);
    expect(keptAlive()).toBe(2);
    release({ content: 'x', stage: null, images: [] });
    expect((await running).result).toBe('answered');
  });

  test('a client that leaves while a tool runs ends it, and pays for the rounds so far', async () => {
    const aborted: boolean[] = [];
    const { fake, answer, run } = story({
      request: { stream: true },
      rounds: [(call) => call.play(...streaming(ours()))],
      runTool: (_request, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => {
        aborted.push(true);
        reject(new Error('aborted'));
      })),
    });
    const running = run();
    for (let turns = 0; turns < 50; turns += 1) await Promise.resolve();
    answer.leave();
    expect((await running).result).toBe('gone');
    expect([aborted, fake.outcomes]).toEqual([[true], ['a#1 DELIVERED']]);
  });

  test('a round’s worker hears that edge lives as it begins, those so far every 10 s while tools run, and nothing more at the end', async () => {
    let done: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => (done = resolve));
    const { fake, run } = story({
      rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())],
      runTool: async () => {
        await finished;
        return { content: '{"result":"42"}', stage: { name: 'code-exec', plugin: 'code-exec', status: 'completed', durationMs: 3, feeNanoUsd: '0', detail: Buffer.alloc(0) }, images: [] };
      },
    });
    const running = run();
    await fake.clock.advanceAsync(25_000);
    expect(fake.tended).toEqual(['a#1', 'a#1', 'a#1', 'a#1']);
    done();
    expect((await running).result).toBe('answered');
    await fake.clock.advanceAsync(60_000);
    expect([fake.tended.slice(4), fake.outcomes]).toEqual([['a#2'], ['a#1 DELIVERED followed', 'a#2 DELIVERED']]);
  });

  test('a round that fails after words is an error chunk with what was delivered', async () => {
    const { fake, answer, run } = story({ request: { stream: true }, rounds: [(call) => call.play(events.text('Let me see. '), ...streaming(ours()).slice(1)), (call) => call.play(events.failed('PROVIDER_ERROR'))] });
    expect((await run()).result).toBe('cut');
    expect(answer.said).toContain('cut PROVIDER_ERROR');
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '20000' } });
    expect(fake.outcomes).toEqual(['a#2 DISCARDED followed', 'a#1 DELIVERED']);
  });

  test('a round whose worker is lost after words is charged, at a cost that nobody can tell: none is told', async () => {
    const lost = (call: PlayedCall): void => {
      call.listener.onEvent(events.text('It is '));
      call.listener.onEnd(new Fault('link_lost', 'test'));
    };
    const { fake, answer, run } = story({ request: { stream: true }, rounds: [(call) => call.play(events.text('Let me see. '), ...streaming(ours()).slice(1)), lost] });
    expect((await run()).result).toBe('cut');
    expect([answer.said.at(-1), answer.settlement]).toEqual(['cut DISCONNECTED', undefined]);
    expect(fake.outcomes.sort()).toEqual(['a#1 DELIVERED followed', 'a#2 DELIVERED']);
  });
});

describe('limits', () => {
  const capped = callerWith({ account: { costCaps: [{ period: 'month', capNanoUsd: '1000000000' }] } });

  test('the hold grows for each round by what the rounds before are charged', async () => {
    const { fake, turn, run } = story({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    expect((await run()).result).toBe('answered');
    expect(fake.extended).toHaveLength(1);
    expect(fake.extended[0]?.[0]).toBeGreaterThan(20_000n);
    expect(fake.extended[0]?.[1]).toBeGreaterThan(15n);
  });

  test('the worker of a later round is told the whole hold, of an answer that does not grow too', async () => {
    const { fake, turn, run } = story({ request: { maxTokens: 100 }, rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    expect((await run()).result).toBe('answered');
    const [, second] = fake.calls;
    expect(second?.request.heldOutputTokens).toBeUndefined();
    expect([BigInt(String(second?.request.heldNanoUsd)), BigInt(String(second?.request.heldTokens))]).toEqual(fake.extended[0]);
  });

  test('quota that is away between two rounds is a fault of ours, never a cost cap: it costs nothing', async () => {
    const { fake, answer, turn, run } = story({ rounds: [(call) => call.play(...calling(ours()))] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    fake.grantsExtensions = new Fault('quota_unavailable', 'away');
    expect((await run()).result).toBe('refused');
    expect(answer.refusal).toMatchObject({ kind: 'fault', fault: { code: 'quota_unavailable' } });
    expect(fake.outcomes).toEqual(['a#1 DISCARDED']);
  });

  test('the same after words have reached the client: an error chunk, and what was delivered is charged', async () => {
    const { fake, answer, turn, run } = story({ request: { stream: true }, rounds: [(call) => call.play(events.role(), chunkOf({ content: 'Let me see. ' }), ...streaming(ours()).slice(1))] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    fake.grantsExtensions = new Fault('quota_unavailable', 'away');
    expect((await run()).result).toBe('cut');
    expect(answer.refusal).toMatchObject({ kind: 'fault', fault: { code: 'quota_unavailable' } });
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '20000' } });
    expect(fake.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('without room for another round the answer ends for its length, and says why', async () => {
    const { fake, answer, turn, run } = story({ rounds: [(call) => call.play(...calling(ours()))] });
    turn.caller = capped;
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '500000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    fake.grantsExtensions = false;
    expect((await run()).result).toBe('answered');
    expect(fake.calls).toHaveLength(1);
    expect(answer.settlement).toMatchObject({ end: { stoppedBy: 'cost_cap', finishReason: 'length', costNanoUsd: '20000' } });
    expect(JSON.parse(answer.raw.join(''))).toMatchObject([{ finish_reason: 'length', message: { content: '' } }]);
  });
});

describe('prices with steps', () => {
  const dear = cardWith({ id: 'card_2', inputUncached: '4000000000', outputText: '6000000000', outputReasoning: '6000000000' });

  test('a round that may have grown over a step is held for at the dearer card, and the worker has both', async () => {
    const steps = [{ fromPromptTokens: 0, card: cardWith() }, { fromPromptTokens: 900, card: dear }];
    const rounds = [(call: PlayedCall) => call.play(...calling(ours())), (call: PlayedCall) => call.play(...saying())];
    const { fake, turn, run } = story({ rounds });
    fake.plan = planWith([plannedAt('a', { steps })]);
    fake.admissions = [admissionOf('ADMITTED', { heldNanoUsd: '20000000', heldTokens: '50000', roomNanoUsd: '1000000000' })];
    turn.caller = callerWith({ account: { costCaps: [{ period: 'month', capNanoUsd: '1000000000' }] } });
    turn.request = { ...turn.request, maxTokens: 100 };
    expect((await run()).result).toBe('answered');
    expect(fake.calls.map(({ request }) => request.steps)).toEqual([steps, steps]);
    const first = { nanoUsd: BigInt(String(fake.asked[0]?.amountNanoUsd)), prompt: BigInt(String(fake.asked[0]?.tokens)) - 100n };
    // What the first round was charged stays held: 20,000 nano-USD and 15 tokens.
    const [nanoUsd = 0n, tokens = 0n] = fake.extended[0] ?? [];
    const second = { nanoUsd: nanoUsd - 20_000n, prompt: tokens - 15n - 100n };
    expect([first.prompt < 900n, second.prompt >= 900n]).toEqual([true, true]);
    expect([first.nanoUsd, second.nanoUsd]).toEqual([first.prompt * 1_000n + 100n * 2_000n, second.prompt * 4_000n + 100n * 6_000n]);
  });
});

describe('tools that spend', () => {
  const PICTURE = Buffer.from('a picture');
  const URL = `data:image/png;base64,${PICTURE.toString('base64')}`;
  const PAINT: Tool__Output = { name: 'generate_image', definition: Buffer.from('{"type":"function","function":{"name":"generate_image"}}'), feeNanoUsdMax: '50000000', imagesMax: 1 };
  const painting = (id = 'call_p'): Call => ({ id, name: 'generate_image', arguments: '{"prompt":"a fox"}' });
  const painted = (feeNanoUsd = '40000000') => ({ content: '{"status":"completed"}', stage: { name: 'image-gen', plugin: 'image-gen', status: 'completed', durationMs: 3, feeNanoUsd, detail: Buffer.alloc(0) }, images: [{ mediaType: 'image/png', data: PICTURE }] });
  const capped = callerWith({ account: { costCaps: [{ period: 'month', capNanoUsd: '1000000000' }] } });
  const ROOM = admissionOf('ADMITTED', { heldNanoUsd: '20000000', heldTokens: '50000', roomNanoUsd: '1000000000' });
  const paint = (setting: Partial<Setting> = {}) => {
    const wasted: string[] = [];
    const told = story({ offered: [PAINT], runTool: () => Promise.resolve(painted()), rounds: [(call) => call.play(...calling(painting())), (call) => call.play(...saying())], ...setting });
    Object.assign(told.fake, { wastedRuns: { note: (accountId: string) => void wasted.push(accountId), waitMs: () => 0 } });
    return { ...told, wasted };
  };
  const messageOf = (raw: readonly string[]): unknown => (JSON.parse(raw.join('')) as readonly { readonly message: unknown }[])[0]?.message;

  test('an image comes with the answer, its price in the round that follows, and the model sees nothing of it', async () => {
    const { fake, answer, sent, wasted, run } = paint();
    expect((await run()).result).toBe('answered');
    expect(messageOf(answer.raw)).toMatchObject({ content: 'It is 42.', images: [{ type: 'image_url', image_url: { url: URL } }] });
    expect(fake.calls.map(({ request }) => request.card?.requestNanoUsd)).toEqual(['0', '40000000']);
    expect(JSON.stringify(sent(1, 'messages'))).not.toContain(PICTURE.toString('base64'));
    expect(answer.settlement?.pipeline).toMatchObject([{ stage: 'image-gen', feeNanoUsd: 40_000_000n, detail: { round: 1 } }]);
    expect(wasted).toEqual([]);
  });

  test('in a stream the images are one chunk before the end', async () => {
    const { answer, run } = paint({ request: { stream: true }, rounds: [(call) => call.play(...streaming(painting())), (call) => call.play(events.role(), events.text('Here.'), events.finish(), events.end())] });
    expect((await run()).result).toBe('answered');
    const at = answer.raw.findIndex((text) => text.includes('"images"'));
    expect(JSON.parse(answer.raw[at] ?? '')).toEqual([{ index: 0, delta: { images: [{ type: 'image_url', image_url: { url: URL } }] }, logprobs: null, finish_reason: null }]);
    expect([at, answer.raw.filter((text) => text.includes('"images"')).length]).toEqual([answer.raw.length - 2, 1]);
  });

  test('a model that says nothing beside an image still begins with its role', async () => {
    const { answer, run } = paint({ request: { stream: true }, rounds: [(call) => call.play(...streaming(painting())), (call) => call.play(events.finish(), events.end())] });
    await run();
    expect(JSON.parse(answer.raw[0] ?? '')).toMatchObject([{ delta: { role: 'assistant', images: [{ type: 'image_url' }] } }]);
  });

  test('before anything is bought, the hold covers the round that pays for it at the most that it may cost', async () => {
    const order: string[] = [];
    const { fake, turn, run } = paint({ runTool: () => (order.push(`bought at ${fake.extended.length}`), Promise.resolve(painted())) });
    turn.caller = capped;
    fake.admissions = [ROOM];
    expect((await run()).result).toBe('answered');
    expect(order).toEqual(['bought at 1']);
    expect(fake.extended[0]?.[0]).toBeGreaterThanOrEqual(20_000n + 50_000_000n);
  });

  test('without room for it nothing is bought, and the answer ends for its length', async () => {
    for (const room of ['30000000', '1000000000']) {
      const { fake, answer, ran, turn, wasted, run } = paint();
      turn.caller = capped;
      fake.admissions = [{ ...ROOM, roomNanoUsd: room }];
      fake.grantsExtensions = room === '30000000';
      expect((await run()).result).toBe('answered');
      expect([ran, fake.calls.length, wasted]).toEqual([[], 1, []]);
      expect(answer.settlement).toMatchObject({ end: { stoppedBy: 'cost_cap', finishReason: 'length', costNanoUsd: '20000' } });
    }
  });

  test('an answer holds four images; further calls are told so and not run', async () => {
    const { answer, ran, sent, run } = paint({ rounds: [(call) => call.play(...calling(...['a', 'b', 'c', 'd', 'e', 'f'].map(painting))), (call) => call.play(...saying())] });
    expect((await run()).result).toBe('answered');
    expect(ran).toHaveLength(4);
    expect(messageOf(answer.raw)).toMatchObject({ images: [{}, {}, {}, {}] });
    expect(sent(1, 'messages')).toContainEqual({ role: 'tool', tool_call_id: 'f', content: 'Error: not run, since an answer holds 4 images at most.' });
  });

  test('a call that failed leaves its place to another, costs nothing and shows nothing', async () => {
    let calls = 0;
    const failing = { content: 'Error: x', stage: { ...painted().stage, status: 'failed', feeNanoUsd: '0' }, images: [] };
    const { fake, answer, ran, run } = paint({ runTool: () => Promise.resolve((calls += 1) <= 4 ? failing : painted()), rounds: [(call) => call.play(...calling(...['a', 'b', 'c', 'd'].map(painting))), (call) => call.play(...calling(painting())), (call) => call.play(...saying())] });
    expect((await run()).result).toBe('answered');
    expect([ran.length, fake.calls.map(({ request }) => request.card?.requestNanoUsd)]).toEqual([5, ['0', '0', '40000000']]);
    expect(messageOf(answer.raw)).toMatchObject({ images: [{}] });
  });

  test('images are given only where they are charged: a round that nobody answers takes them along, and is counted as waste', async () => {
    const { answer, fake, wasted, run } = paint({ rounds: [(call) => call.play(...calling(painting())), (call) => call.play(events.failed('PROVIDER_ERROR'))] });
    expect((await run()).result).toBe('refused');
    expect([answer.raw, fake.outcomes, wasted]).toEqual([[], ['a#2 DISCARDED followed', 'a#1 DISCARDED'], ['acct_1']]);
  });

  test('a round that fails after words leaves the client what earlier rounds are charged for, images too', async () => {
    const { answer, fake, wasted, run } = paint({
      request: { stream: true },
      rounds: [(call) => call.play(events.role(), events.text('One moment. '), ...streaming(painting()).slice(1)), (call) => call.play(...streaming(ours())), (call) => call.play(events.failed('PROVIDER_ERROR'))],
    });
    expect((await run()).result).toBe('cut');
    expect([answer.raw.filter((text) => text.includes('"images"')).length, answer.said.at(-1), wasted]).toEqual([1, 'cut PROVIDER_ERROR', []]);
    expect(fake.outcomes).toEqual(['a#3 DISCARDED followed', 'a#1 DELIVERED followed', 'a#2 DELIVERED']);
  });

  test('where nothing is charged in the end, what an earlier round had paid for is waste as well', async () => {
    const { answer, wasted, run } = paint({ rounds: [(call) => call.play(...calling(painting())), (call) => call.play(...calling(ours())), (call) => call.play(events.failed('PROVIDER_ERROR'))] });
    expect((await run()).result).toBe('refused');
    expect([answer.raw, wasted]).toEqual([[], ['acct_1']]);
  });

  test('a stream that breaks in the round that pays for an image still gives it: it is charged', async () => {
    const cut = events.end({ cut: events.failed('DISCONNECTED').failed ?? null, finishReason: 'error' });
    const { answer, wasted, run } = paint({ request: { stream: true }, rounds: [(call) => call.play(...streaming(painting())), (call) => call.play(events.role(), events.text('Here'), cut)] });
    expect((await run()).result).toBe('cut');
    expect([answer.raw.filter((text) => text.includes('"images"')).length, answer.said.at(-1), wasted]).toEqual([1, 'cut DISCONNECTED', []]);
  });

  test.each([['CONTEXT_LENGTH', ['acct_1']], ['CONTENT_POLICY', ['acct_1']], ['PROVIDER_ERROR', []]] as const)('a round that answered is waste where what came of it makes the next one fail: %s', async (reason, expected) => {
    const { answer, fake, wasted, run } = paint({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(events.failed(reason))] });
    expect((await run()).result).toBe('refused');
    expect([answer.raw, fake.outcomes.at(-1), wasted]).toEqual([[], 'a#1 DISCARDED', expected]);
  });

  test('a first round that fails is none: nothing of it was paid for', async () => {
    const { wasted, run } = paint({ rounds: [(call) => call.play(events.failed('CONTEXT_LENGTH'))] });
    expect([(await run()).result, wasted]).toEqual(['refused', []]);
  });

  test('a client that leaves while the round is asked that pays for an image is counted as waste', async () => {
    const { fake, answer, wasted, run } = paint({ rounds: [(call) => call.play(...calling(painting())), () => undefined] });
    const running = run();
    await fake.clock.settle();
    expect(fake.calls.length).toBe(2);
    answer.leave();
    expect([(await running).result, wasted]).toEqual(['gone', ['acct_1']]);
  });

  test('a client that leaves while an image is made is counted as waste', async () => {
    const { answer, wasted, run } = paint({ runTool: (_request, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))) });
    const running = run();
    for (let turns = 0; turns < 50; turns += 1) await Promise.resolve();
    answer.leave();
    expect([(await running).result, wasted]).toEqual(['gone', ['acct_1']]);
  });

  test("on the account's own credentials the tool is told so, with the names of them", async () => {
    const { fake, ran, turn, run } = paint();
    turn.caller = callerWith({ account: { providerKeys: [{ provider: 'a', handle: 'cred_1', zdr: true, last4: '', createdAt: '1', baseUrl: '', accountId: 'acct_1' }] } });
    fake.plan = planWith([plannedAt('a', { byok: true })]);
    expect((await run()).result).toBe('answered');
    expect(ran).toMatchObject([{ byok: true, ownCredentials: [{ provider: 'a', handle: 'cred_1', zdr: true }] }]);
  });
});
