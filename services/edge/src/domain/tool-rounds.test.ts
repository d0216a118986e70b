import { describe, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { requestWith } from '../testing/callers.js';
import { events, type PlayedCall } from '../testing/neighbours.js';
import { calling, chunkOf, ours, saying, story, streaming, theirs, TOOL, wire } from '../testing/rounds-story.js';
import { conduct } from './conduct.js';
import { withTools } from './tool-request.js';

describe('rounds', () => {
  test('the model gets the result of its call; usage and cost are sums over all rounds, and all attempts are listed', async () => {
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
    expect(fake.calls.map(({ request }) => [request.attempt, request.retryOf, request.rounds, request.tended, request.earlierNanoUsd])).toEqual([[1, [], true, true, '0'], [2, [], true, true, '20000']]);
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '40000', savingsNanoUsd: '200', tokens: { inputUncached: 20, outputText: 10 } }, pipeline: [{ stage: 'code-exec', status: 'completed', detail: { round: 1 } }] });
    expect(fake.outcomes).toEqual(['a#1 DELIVERED followed', 'a#2 DELIVERED']);
  });

  test('a call is returned to its model with its signature, streamed or not', async () => {
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

  test('the reported price card is that of the last round, with the fees of its programs', async () => {
    for (const stream of [false, true]) {
      const told: string[] = [];
      const { answer, turn, neighbours } = story({
        request: { stream },
        rounds: [(call) => call.play(...(stream ? streaming(ours()) : calling(ours()))), (call) => call.play(...(stream ? [events.text('42'), events.finish(), events.end()] : saying()))],
        runTool: () => Promise.resolve({ content: '{}', stage: { name: 'code-exec', plugin: 'code-exec', status: 'completed', durationMs: 3, feeNanoUsd: '7', boughtProvider: '', boughtNanoUsd: '0', detail: Buffer.alloc(0) }, images: [] }),
      });
      const decided = (plan: { readonly attempts: readonly { readonly card?: { readonly id: string } | null }[] }): void => void told.push(plan.attempts[0]?.card?.id ?? '');
      await conduct(neighbours, { ...turn, explain: true, answer: Object.assign(answer, { decided }) });
      expect(told).toEqual(['card_1', 'card_1', 'card_1+plugins.7']);
    }
  });

  test('a request whose model calls nothing has one attempt, as without tools', async () => {
    const { fake, answer, run } = story({ rounds: [(call) => call.play(...saying())] });
    expect((await run()).result).toBe('answered');
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '20000' } });
    expect(fake.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('after the last round the model must answer, and further calls are not run', async () => {
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
  ])('a client without tools of its own may require %s of ours to be called, in the first round only', async (_what, choice, sentChoice, isForced) => {
    const waitingToolFields = [{ name: 'tool_choice', value: Buffer.from(choice) }, { name: 'parallel_tool_calls', value: Buffer.from('false') }];
    const { sent, turn, run } = story({ request: { waitingToolFields }, rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())] });
    expect((await run()).result).toBe('answered');
    expect([sent(0, 'tool_choice'), sent(1, 'tool_choice')]).toEqual([sentChoice, undefined]);
    expect([sent(0, 'parallel_tool_calls'), sent(1, 'parallel_tool_calls')]).toEqual([false, false]);
    expect(withTools(turn.request, [TOOL]).needs).toMatchObject({ tools: true, forcedToolChoice: isForced, parallelToolCalls: true, params: ['tool_choice', 'parallel_tool_calls'] });
  });

  test('a forced tool that no plugin offers is refused by name', async () => {
    const waitingToolFields = [{ name: 'tool_choice', value: Buffer.from('{"type":"function","function":{"name":"get_weather"}}') }];
    const { fake, answer, run } = story({ request: { waitingToolFields }, rounds: [(call) => call.play(...saying())] });
    expect((await run()).result).toBe('refused');
    expect(answer.refusal).toMatchObject({ kind: 'plugin-problem', problem: { kind: 'value', param: 'tool_choice', message: expect.stringMatching(/code_exec/) } });
    expect(fake.calls).toEqual([]);
  });

  test.each([
    ['neither the client nor a plugin offers', 'get_time', 'refused'],
    ['the client offers', 'get_weather', 'answered'],
    ['a plugin offers', 'code_exec', 'answered'],
  ])('beside tools of the client, a forced tool that %s: %s', async (_who, name, result) => {
    const choice = { name: 'tool_choice', value: Buffer.from(JSON.stringify({ type: 'function', function: { name } })) };
    const { fake, answer, run } = story({ tools: '[{"type":"function","function":{"name":"get_weather"}}]', request: { fields: [choice] }, rounds: [(call) => call.play(...saying())] });
    expect((await run()).result).toBe(result);
    const problem = { kind: 'value', param: 'tool_choice', message: "Invalid value for 'tool_choice': expected the name of one of `tools`, or code_exec." };
    expect([fake.calls.length, answer.refusal]).toEqual(result === 'refused' ? [0, expect.objectContaining({ problem: expect.objectContaining(problem) })] : [1, undefined]);
  });

  test("calls of the client's own tools are passed on unchanged, and calls of ours beside them are not run", async () => {
    const { fake, answer, ran, run } = story({ tools: '[{"type":"function","function":{"name":"get_weather"}}]', rounds: [(call) => call.play(...calling(ours(), theirs))] });
    expect((await run()).result).toBe('answered');
    expect([ran.length, fake.calls.length]).toEqual([0, 1]);
    expect(JSON.parse(answer.raw.join(''))).toMatchObject([{ message: { content: null, tool_calls: [wire(theirs)] }, finish_reason: 'tool_calls' }]);
    expect(answer.raw.join('')).not.toContain('code_exec');
  });

  test('the model is told when a tool cannot be run', async () => {
    const { sent, run } = story({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())], runTool: () => Promise.reject(new Error('away')) });
    expect((await run()).result).toBe('answered');
    expect(sent(1, 'messages')).toContainEqual({ role: 'tool', tool_call_id: 'call_1', content: 'Error: the tool is not available at the moment.' });
  });

  test('calls of one turn run a few at a time up to the bound, and results keep their order', async () => {
    const calls = Array.from({ length: 17 }, (_, at) => ({ ...ours(`call_${at}`), arguments: `{"code":"${at}"}` }));
    const waiting: (() => void)[] = [];
    const { fake, ran, sent, run } = story({
      rounds: [(call) => call.play(...calling(...calls)), (call) => call.play(...saying())],
      runTool: ({ arguments: text }) => new Promise((resolve) => waiting.push(() => resolve({ content: text, stage: { name: 'code-exec', plugin: 'code-exec', status: 'completed', durationMs: 1, feeNanoUsd: '0', boughtProvider: '', boughtNanoUsd: '0', detail: Buffer.alloc(0) }, images: [] }))),
    });
    const running = run();
    for (let done = 0; done < 16; done += 1) {
      await fake.clock.settle();
      expect(waiting).toHaveLength(Math.min(4, 16 - done));
      // In reverse order: no call waits for the one before it.
      waiting.pop()?.();
    }
    expect((await running).result).toBe('answered');
    expect(ran).toHaveLength(16);
    const told = (sent(1, 'messages') as readonly { readonly role: string; readonly tool_call_id?: string; readonly content: string }[]).filter(({ role }) => role === 'tool');
    expect(told.slice(0, 16)).toEqual(calls.slice(0, 16).map(({ id, arguments: content }) => ({ role: 'tool', tool_call_id: id, content })));
    expect(told[16]).toMatchObject({ tool_call_id: 'call_16', content: expect.stringMatching(/more than 16 calls/) });
  });

  test('calls that have not started when the client leaves are not run', async () => {
    const { fake, answer, ran, run } = story({ rounds: [(call) => call.play(...calling(...Array.from({ length: 6 }, (_, at) => ours(`call_${at}`))))], runTool: (_asked, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('left')))) });
    const running = run();
    await fake.clock.settle();
    answer.leave();
    expect((await running).result).toBe('gone');
    expect(ran).toHaveLength(4);
  });

  test('a failed attempt fails over within its round, and supersedes only attempts of that round', async () => {
    const { fake, run } = story({ providers: ['a', 'b'], rounds: [(call) => call.play(...calling(ours())), (call) => call.play(events.started(), events.failed('PROVIDER_ERROR')), (call) => call.play(events.started(), ...saying())] });
    expect((await run()).result).toBe('answered');
    expect(fake.calls.map(({ provider, request }) => [provider, request.attempt, request.retryOf])).toEqual([['a', 1, []], ['a', 2, []], ['b', 3, [2]]]);
    expect(fake.outcomes).toEqual(['a#2 SUPERSEDED', 'a#1 DELIVERED followed', 'b#3 DELIVERED']);
  });

  test('a round without an answer is an error, and nothing of the request is charged', async () => {
    const { fake, answer, run } = story({ rounds: [(call) => call.play(...calling(ours())), (call) => call.play(events.failed('PROVIDER_ERROR'))] });
    expect((await run()).result).toBe('refused');
    expect(answer.refusal).toMatchObject({ kind: 'attempts', attempts: [{ round: 1 }, { round: 2 }] });
    expect(fake.outcomes).toEqual(['a#2 DISCARDED followed', 'a#1 DISCARDED']);
    expect(fake.released).toEqual([]);
  });

  test('the client’s tools and those of plugins together are at most as many as a request may have', async () => {
    const toolsOf = (count: number): string => JSON.stringify(Array.from({ length: count }, (_, at) => ({ type: 'function', function: { name: `tool_${at}` } })));
    const full = story({ tools: toolsOf(127), rounds: [(call) => call.play(...saying())] });
    expect((await full.run()).result).toBe('answered');
    const { answer, fake, run } = story({ tools: toolsOf(128), rounds: [(call) => call.play(...saying())] });
    await run();
    expect(answer.refusal).toEqual({ kind: 'plugin-problem', problem: { kind: 'value', plugin: '', param: 'tools', message: "Invalid value for 'tools': expected at most 128 items, and 128 with the 1 of plugins of this request are 129." } });
    expect(fake.calls).toEqual([]);
  });

  test('requests with tools of plugins have one choice, and their tool names must be unique', async () => {
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
  test('text is passed on, calls of our tools are hidden, and all rounds are one stream with one end', async () => {
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

  test('for JSON only the JSON is streamed: text beside a call of our tools is hidden', async () => {
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

  test("calls of the client's tools are streamed with indexes of their own", async () => {
    const { answer, run } = story({ request: { stream: true }, tools: '[{"type":"function","function":{"name":"get_weather"}}]', rounds: [(call) => call.play(...streaming(ours(), theirs))] });
    expect((await run()).result).toBe('answered');
    const shown = answer.raw.join('');
    expect(shown).toContain('"tool_calls":[{"index":0,"id":"call_9"');
    expect(shown).not.toContain('code_exec');
    expect(shown).toContain('"finish_reason":"tool_calls"');
  });

  test('while a tool runs the client gets comments', async () => {
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

  test('a client that leaves while a tool runs aborts it, and pays for the rounds so far', async () => {
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

  test('the worker of a round is told that edge is alive when it begins, earlier ones every 10 s, and none after the end', async () => {
    let done: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => (done = resolve));
    const { fake, run } = story({
      rounds: [(call) => call.play(...calling(ours())), (call) => call.play(...saying())],
      runTool: async () => {
        await finished;
        return { content: '{"result":"42"}', stage: { name: 'code-exec', plugin: 'code-exec', status: 'completed', durationMs: 3, feeNanoUsd: '0', boughtProvider: '', boughtNanoUsd: '0', detail: Buffer.alloc(0) }, images: [] };
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

  test('a round that fails after content ends the stream with an error chunk and the figures of what was delivered', async () => {
    const { fake, answer, run } = story({ request: { stream: true }, rounds: [(call) => call.play(events.text('Let me see. '), ...streaming(ours()).slice(1)), (call) => call.play(events.failed('PROVIDER_ERROR'))] });
    expect((await run()).result).toBe('cut');
    expect(answer.said).toContain('cut PROVIDER_ERROR');
    expect(answer.settlement).toMatchObject({ end: { costNanoUsd: '20000' } });
    expect(fake.outcomes).toEqual(['a#2 DISCARDED followed', 'a#1 DELIVERED']);
  });

  test('a round whose worker is lost after content is charged, but its cost is unknown and not reported', async () => {
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
