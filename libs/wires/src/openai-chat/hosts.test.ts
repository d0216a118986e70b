import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import type { Failure, StreamEvent, StreamSummary } from '../canonical.js';
import { everySplit, gather, replay } from '../testing/replay.js';
import { readChatAnswer } from './response.js';
import { createChatTransducer } from './stream.js';

interface Told {
  readonly content: string;
  readonly reasoning: string;
  /** id, name, arguments. */
  readonly calls: readonly (readonly string[])[];
  readonly finishes: readonly string[];
  readonly last: unknown;
  readonly summary: StreamSummary;
}

interface Delta {
  readonly content?: string | null;
  readonly reasoning?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly { readonly index: number; readonly id?: string; readonly function: { readonly name?: string; readonly arguments: string } }[];
}

function told(parts: readonly Uint8Array[]): Told {
  const transducer = createChatTransducer('seed');
  const events: StreamEvent[] = [...parts.flatMap((part) => transducer.push(part)), ...transducer.close()];
  let [content, reasoning] = ['', ''];
  const calls: string[][] = [];
  const finishes: string[] = [];
  for (const event of events) {
    if (event.type !== 'chunk') continue;
    for (const { delta, finish_reason: finish } of JSON.parse(Buffer.from(event.choices).toString()) as readonly { delta: Delta; finish_reason: string | null }[]) {
      content += delta.content ?? '';
      reasoning += delta.reasoning_content ?? delta.reasoning ?? '';
      for (const { index, id = '', function: fn } of delta.tool_calls ?? []) {
        const call = (calls[index] ??= ['', '', '']);
        calls[index] = [`${call[0] ?? ''}${id}`, `${call[1] ?? ''}${fn.name ?? ''}`, `${call[2] ?? ''}${fn.arguments}`];
      }
      if (finish !== null) finishes.push(finish);
    }
  }
  return { content, reasoning, calls, finishes, last: events.at(-1), summary: transducer.summary() };
}

const tokens = (inputUncached: number, outputText: number, more: object = {}) => ({ inputUncached, cacheRead: 0, cacheWrite: 0, outputText, outputReasoning: 0, audio: 0, image: 0, ...more });
const done = { type: 'done' };

describe('streams as hosts write them', () => {
  const table: readonly (readonly [string, Omit<Told, 'summary'>, object])[] = [
    ['azure', { content: 'It is 4 °C in Oslo.', reasoning: '', calls: [], finishes: ['stop'], last: done }, tokens(20, 9)],
    ['azure-async-filter', { content: 'Some words', reasoning: '', calls: [], finishes: ['content_filter'], last: done }, tokens(12, 4)],
    ['zai', { content: 'Let me see.', reasoning: 'The user wants weather.', calls: [['call_z1', 'get_weather', '{"city":"Oslo"}']], finishes: ['tool_calls'], last: done }, tokens(127, 69, { cacheRead: 43 })],
    ['mistral', { content: 'Four.', reasoning: 'Two and two.', calls: [['D681PevKs', 'note', '{"n": 4}'], ['E1a2b3c4d', 'note', '{"n": 5}']], finishes: ['tool_calls'], last: done }, tokens(15, 30)],
    ['groq', { content: 'Yes.', reasoning: 'Hm. ', calls: [], finishes: ['stop'], last: done }, tokens(18, 3, { outputReasoning: 3 })],
    ['deepseek', { content: '9.8', reasoning: '9.11 < 9.8', calls: [], finishes: ['stop'], last: done }, tokens(20, 4, { cacheRead: 64, outputReasoning: 8 })],
    ['xai', { content: 'Hi', reasoning: 'Think', calls: [], finishes: ['stop'], last: done }, tokens(26, 2, { cacheRead: 6, outputReasoning: 100 })],
    ['perplexity', { content: 'The sky', reasoning: '', calls: [], finishes: ['stop'], last: done }, tokens(5, 2)],
    ['openrouter', { content: 'Done', reasoning: 'Deep', calls: [], finishes: ['stop'], last: done }, tokens(100, 6, { cacheRead: 200, cacheWrite: 900, outputReasoning: 4 })],
    ['together', { content: 'Ok', reasoning: '', calls: [], finishes: ['stop'], last: done }, tokens(7, 2)],
    ['moonshot', { content: 'Hello there', reasoning: 'Hm.', calls: [], finishes: ['stop'], last: done }, tokens(3, 21, { cacheRead: 16 })],
    ['alibaba', { content: '', reasoning: '', calls: [['call_q1', 'f', '{"a":1}'], ['call_q2', 'g', '{}']], finishes: ['tool_calls'], last: done }, tokens(50, 22)],
  ];
  const fixture = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}.sse`, import.meta.url));

  test.each(table)('%s', (name, expected, usage) => {
    const { summary, ...rest } = told([fixture(name)]);
    expect(rest).toEqual(expected);
    expect(summary.usage?.tokens).toEqual(usage);
    for (const call of rest.calls) expect(() => JSON.parse(call[2] ?? '') as unknown).not.toThrow();
  });

  test.each(table.map(([name]) => name))('%s is the same however its bytes are split', (name) => {
    const bytes = fixture(name);
    const whole = told([bytes]);
    expect(everySplit(bytes).filter((parts) => !isDeepStrictEqual(told(parts), whole))).toEqual([]);
  });

  const chunk = (delta: object, finish: string | null, more: object = {}): Buffer => Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`);

  test('usage within a choice is that of all only where there is one', () => {
    const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
    const both = Buffer.from(`data: ${JSON.stringify({ choices: [0, 1].map((index) => ({ index, delta: { role: 'assistant', content: 'a' }, finish_reason: 'stop', usage })) })}\n\n`);
    expect(replay(() => createChatTransducer('seed', 2), [both]).summary.usage).toBeUndefined();
    // What stands beside the choices counts, wherever it comes.
    expect(told([chunk({ role: 'assistant', content: 'a' }, 'stop'), chunk({}, 'stop', { usage: { ...usage, completion_tokens: 3, total_tokens: 12 } })]).summary.usage?.tokens).toEqual(tokens(9, 3));
  });

  test('an answer that a content filter left nothing of fails as policy, with the usage that follows', () => {
    const usage = { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 };
    const stream = told([chunk({ role: 'assistant', content: '' }, null), chunk({}, 'content_filter'), Buffer.from(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`)]);
    expect(stream).toMatchObject({ finishes: [], last: { type: 'failed', failure: { class: 'CONTENT_POLICY', retryable: false } }, summary: { usage: { tokens: { inputUncached: 9 } } } });
    for (const message of [{ role: 'assistant' }, { role: 'assistant', content: '' }, { role: 'assistant', content: null }]) {
      const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'content_filter', content_filter_results: {} }], usage });
      expect(readChatAnswer(Buffer.from(body), 's')).toMatchObject({ ok: false, failure: { class: 'CONTENT_POLICY' }, usage: { tokens: { inputUncached: 9 } } });
    }
    expect(readChatAnswer(Buffer.from(JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: 'content_filter' }] })), 's')).toMatchObject({ ok: true, answer: { finishReason: 'content_filter' } });
  });

  const FILTERED = { error: { message: 'The response was filtered.', type: null, code: 'content_filter' } };
  const filtered = Buffer.from(`data: ${JSON.stringify(FILTERED)}\n\n`);

  test('an error of a content filter behind text is the finish, with the usage that comes before or behind it', () => {
    const usage = { usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } };
    const behind = Buffer.from(`data: ${JSON.stringify({ choices: [], ...usage })}\n\n`);
    const begun = chunk({ role: 'assistant', content: 'Half' }, null);
    for (const parts of [[begun, filtered, behind], [begun, filtered, behind, Buffer.from('data: [DONE]\n\n')], [begun, behind, filtered], [begun, Buffer.from(`data: ${JSON.stringify({ ...FILTERED, ...usage })}\n\n`)]])
      expect(told(parts)).toMatchObject({ content: 'Half', finishes: ['content_filter'], last: { type: 'done' }, summary: { finishReason: 'content_filter', usage: { tokens: { inputUncached: 9, outputText: 3 } } } });
    expect(told([begun, filtered, Buffer.from('garbage\n\ndata: {\n\n')])).toMatchObject({ finishes: ['content_filter'], last: { type: 'done' }, summary: { usage: undefined } });
    // The host keeps the connection open.
    const transducer = createChatTransducer('seed');
    expect([...transducer.push(begun), ...transducer.push(filtered)].map(({ type }) => type)).toEqual(['chunk']);
    expect([transducer.summary().isFinished, transducer.finishOpen('stop')]).toMatchObject([true, { type: 'chunk', finish: true }]);
    expect(transducer.summary().finishReason).toBe('content_filter');
  });

  test('of several choices those that were whole keep their reason; an answer that had finished keeps none', () => {
    const of = (index: number, delta: object, reason: string | null): Buffer => Buffer.from(`data: ${JSON.stringify({ choices: [{ index, delta, finish_reason: reason }] })}\n\n`);
    const reasons = (parts: readonly Buffer[]): unknown => [...gather(replay(() => createChatTransducer('seed', 2), parts).events).values()].map((choice) => choice.reasons);
    expect(reasons([of(0, { content: 'a' }, 'length'), of(1, { content: 'b' }, null), filtered])).toEqual([['length'], ['content_filter']]);
    expect(reasons([of(0, { content: 'a' }, 'stop'), filtered])).toEqual([['content_filter']]);
  });

  test.each([
    ['text', { role: 'assistant', content: 'Half' }, 'content_filter'],
    ['a whole call', { role: 'assistant', content: null, tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{"a":1}' } }] }, 'content_filter'],
    ['half a call', { role: 'assistant', content: 'Half', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{"a"' } }] }, undefined],
    ['nothing', { role: 'assistant', content: '' }, undefined],
  ])('an error of a content filter beside a whole answer of %s', (_what, message, expected) => {
    const result = readChatAnswer(Buffer.from(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }], ...FILTERED, usage: { prompt_tokens: 9, completion_tokens: 3 } })), 's');
    expect(result).toMatchObject(expected === undefined ? { ok: false, failure: { class: 'CONTENT_POLICY', retryable: false } } : { ok: true, answer: { finishReason: expected, usage: { tokens: { inputUncached: 9 } } } });
    if (result.ok) expect(JSON.parse(String(result.answer.choices))).toMatchObject([{ finish_reason: expected }]);
  });

  test('a call without a name is left out where something else is said, and garbage where nothing is', () => {
    const nameless = { id: 'a', type: 'function', function: { arguments: '{}' } };
    const read = (message: object, finish = 'tool_calls'): unknown => readChatAnswer(Buffer.from(JSON.stringify({ choices: [{ index: 0, message, finish_reason: finish }], usage: { prompt_tokens: 9, completion_tokens: 3 } })), 's');
    expect(read({ role: 'assistant', content: null, tool_calls: [nameless] })).toMatchObject({ ok: false, failure: { class: 'GARBAGE' }, usage: { tokens: { inputUncached: 9 } } });
    expect(read({ role: 'assistant', content: null, tool_calls: [nameless] }, 'content_filter')).toMatchObject({ ok: false, failure: { class: 'CONTENT_POLICY' } });
    for (const more of [{ content: 'So' }, { refusal: 'No.' }, { images: [{}] }, { tool_calls: [nameless, { id: 'b', function: { name: 'f', arguments: '{}' } }] }, { tool_calls: [] }]) expect(read({ role: 'assistant', content: '', tool_calls: [nameless], ...more })).toMatchObject({ ok: true });
    // The host keeps the connection open.
    const transducer = createChatTransducer('seed');
    transducer.push(chunk({ role: 'assistant', tool_calls: [{ index: 0, ...nameless }] }, 'tool_calls'));
    expect([transducer.summary().isFinished, transducer.finishOpen('stop')]).toMatchObject([true, { type: 'failed', failure: { class: 'GARBAGE' } }]);
  });

  test.each<[string, readonly (readonly object[])[], readonly (readonly string[])[]]>([
    ['in one chunk, numbered alike', [[{ index: 0, function: { name: 'f' } }, { index: 0, function: { name: 'g', arguments: '{"b":2}' } }]], [['f', '{}'], ['g', '{"b":2}']]],
    ['in one chunk, not numbered', [[{ function: { name: 'f', arguments: '' } }, { function: { name: 'g', arguments: '' } }]], [['f', '{}'], ['g', '{}']]],
    ['in two chunks, numbered alike', [[{ index: 0, function: { name: 'f', arguments: '' } }], [{ index: 0, function: { name: 'g', arguments: '' } }], [{ index: 0, function: { arguments: '{"b":2}' } }]], [['f', '{}'], ['g', '{"b":2}']]],
    ['with arguments, numbered alike', [[{ index: 0, function: { name: 'f', arguments: '{"a":1}' } }, { index: 0, function: { name: 'g', arguments: '{"b":2}' } }]], [['f', '{"a":1}'], ['g', '{"b":2}']]],
    ['one whose name is said again with its arguments', [[{ index: 0, function: { name: 'f', arguments: '' } }], [{ index: 0, function: { name: 'f', arguments: '{"a":1}' } }]], [['f', '{"a":1}']]],
  ])('calls without ids are told apart by their names: %s', (_what, chunks, expected) => {
    const { calls, last } = told([...chunks.map((pieces) => chunk({ tool_calls: pieces }, null)), chunk({}, 'tool_calls')]);
    expect([calls.map(([, name, written]) => [name, written]), last]).toEqual([expected, done]);
  });

  test.each<[string, readonly string[], string]>([
    ['some of them stand with its name', ['{"b"', ':2', '}'], '{"b":2}'],
    ['none of them stand with its name', ['', '{"b":2}'], '{"b":2}'],
    ['an empty object stands with its name', ['{}', '{"b":2}'], '{"b":2}'],
    ['all of them stand with its name', ['{"b":2}', '{"c":3}'], '{"b":2}'],
  ])('a call that begins under the number of the one before goes on under its own: %s', (_what, [head = '', ...tail], expected) => {
    const chunks = [
      chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{"a":1}' } }] }, null),
      chunk({ tool_calls: [{ index: 0, id: 'b', function: { name: 'g', arguments: head } }] }, null),
      ...tail.map((text) => chunk({ tool_calls: [{ index: 1, function: { arguments: text } }] }, null)),
    ];
    expect(told([...chunks, chunk({}, 'tool_calls')])).toMatchObject({ calls: [['a', 'f', '{"a":1}'], ['b', 'g', expected]], finishes: ['tool_calls'], last: done });
  });

  test.each<[string, readonly string[], string]>([
    ['an empty object stands before them', ['{}', '{"a"', ':1}'], '{"a":1}'],
    ['an empty object is all that comes', ['{}'], '{}'],
    ['an empty object comes again', ['{}', '{}'], '{}'],
    ['they come once more in one piece', ['{"a"', ':1}', '{"a":1}'], '{"a":1}'],
    ['they come twice more, in other pieces', ['{"a":1}', '{"a', '":1}', '{"a":1}'], '{"a":1}'],
    ['they come once more, not to the end', ['{"a":1}', '{"a'], '{"a":1}'],
    ['what comes behind them begins alike, and nobody knows what it is', ['{"a":1}', '{"a":', '2}'], '{"a":1}{"a":2}'],
    ['a text of theirs repeats itself', ['{"a":"{}', '{}', '{}"}'], '{"a":"{}{}{}"}'],
  ])('arguments are told once: %s', (_what, pieces, expected) => {
    const chunks = pieces.map((text, at) => chunk({ tool_calls: [{ index: 0, ...(at === 0 ? { id: 'call_a', type: 'function' } : {}), function: { ...(at === 0 ? { name: 'f' } : {}), arguments: text } }] }, null));
    expect(told([...chunks, chunk({}, 'tool_calls')])).toMatchObject({ calls: [['call_a', 'f', expected]], finishes: ['tool_calls'], last: done });
  });

  test.each([['MAX_TOKENS', 'length'], ['LENGTH', 'length'], ['STOP', 'stop'], ['SAFETY', 'content_filter'], ['PROHIBITED_CONTENT', 'content_filter'], ['IMAGE_SAFETY', 'content_filter'], ['content_filter: PROHIBITED_CONTENT', 'content_filter'], ['content-filter', 'content_filter'], ['max-tokens', 'length'], ['repetition_truncation', 'length'], ['eos_token', 'stop']])('the finish reason %s of a gateway before another maker is %s, streamed as in one piece', (told, reason) => {
    const choice = (message: object): object => ({ index: 0, ...message, finish_reason: told });
    const { events } = replay(() => createChatTransducer('s'), [Buffer.from(`data: ${JSON.stringify({ choices: [choice({ delta: { content: 'It is' } })] })}\n\ndata: [DONE]\n\n`)]);
    expect(gather(events).get(0)?.reasons).toEqual([reason]);
    const result = readChatAnswer(Buffer.from(JSON.stringify({ choices: [choice({ message: { role: 'assistant', content: 'It is' } })] })), 's');
    expect(result).toMatchObject({ ok: true, answer: { finishReason: reason } });
  });

  test.each(['network_error', 'insufficient_system_resource', 'error', 'cancelled', 'MISSING_THOUGHT_SIGNATURE'])('the finish reason %s is a failure, not a finish', (reason) => {
    expect(told([chunk({ role: 'assistant', content: 'Half' }, null), chunk({}, reason)])).toMatchObject({ content: 'Half', finishes: [], last: { type: 'failed', failure: { class: 'PROVIDER_ERROR' } } });
  });

  test.each([
    ['behind it', [chunk({}, 'error'), chunk({ content: 'no more' }, null), Buffer.from(`data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } })}\n\n`)]],
    ['with it', [chunk({}, 'error', { usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } })]],
  ])('usage that comes with an error finish, or behind it, is what it cost: %s', (_when, end) => {
    const parts = [chunk({ role: 'assistant', content: 'Half' }, null), ...end];
    expect(told(parts)).toMatchObject({ content: 'Half', finishes: [], last: { type: 'failed', failure: { class: 'PROVIDER_ERROR' } }, summary: { usage: { tokens: { inputUncached: 9, outputText: 3 } } } });
    expect(told([Buffer.concat(parts)])).toEqual(told(parts));
  });

  test.each([
    ['openrouter, of a call that its host found to be none', { finish_reason: 'error', native_finish_reason: 'MALFORMED_FUNCTION_CALL' }, true],
    ['openrouter, with an error beside it', { finish_reason: 'error', native_finish_reason: 'UNEXPECTED_TOOL_CALL', error: { code: 502, message: 'Upstream error' } }, true],
    ['openrouter, of a host that failed', { finish_reason: 'error', native_finish_reason: 'error', error: { code: 502, message: 'Upstream error' } }, undefined],
    ["a gateway before Google's models", { finish_reason: 'UNEXPECTED_TOOL_CALL' }, true],
    ['a host that stopped', { finish_reason: 'abort' }, undefined],
  ])('an error finish says whose fault it is: %s', (_host, ending, isEndpointWell) => {
    const stream = replay(() => createChatTransducer('s'), [Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, ...ending }] })}\n\ndata: [DONE]\n\n`)]).events.at(-1);
    const whole = readChatAnswer(Buffer.from(JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: '' }, ...ending }] })), 's');
    const failures = [stream, whole].map((told) => (told as { failure: Failure }).failure);
    expect(failures).toMatchObject([{ class: 'PROVIDER_ERROR', retryable: true }, { class: 'PROVIDER_ERROR', retryable: true }]);
    expect(failures.map((failure) => failure.isEndpointWell)).toEqual([isEndpointWell, isEndpointWell]);
  });

  test('after an error finish without usage the stream fails at its end, or when nobody waits for it any more', () => {
    const transducer = createChatTransducer('seed');
    expect([transducer.push(chunk({ role: 'assistant' }, null)), transducer.push(chunk({}, 'error'))].flat()).toMatchObject([{ type: 'chunk' }]);
    expect([transducer.summary().isFinished, transducer.finishOpen('stop')]).toMatchObject([true, { type: 'failed', failure: { class: 'PROVIDER_ERROR' } }]);
    expect(transducer.push(Buffer.from('data: [DONE]\n\n'))).toMatchObject([{ type: 'failed', failure: { class: 'PROVIDER_ERROR' } }]);
  });

  test('what a host takes is read where its word for it is known, and nowhere else', () => {
    const costOf = (tellsCost: boolean): unknown => {
      const transducer = createChatTransducer('seed', 1, tellsCost);
      transducer.push(fixture('openrouter'));
      return transducer.summary().usage?.costNanoUsd;
    };
    expect([costOf(true), costOf(false)]).toEqual([3_100_000n, undefined]);
  });

  test.each([
    ['0.00001455', 14_550n], ['1.455e-05', 14_550n], ['0', 0n], ['0.0000000005', 1n], ['0.00000000049', 0n], ['1000000', 10n ** 15n],
    ['1000000.1', undefined], ['-0.01', undefined], ['1e999', undefined], ['"0.01"', undefined], ['null', undefined], ['{"total_cost":1}', undefined],
  ])('a whole answer for %s dollars costs %s', (cost, nano) => {
    const answer = (usage: string): Buffer => Buffer.from(`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2${usage}}}`);
    const read = (usage: string): unknown => {
      const result = readChatAnswer(answer(usage), 'seed', true);
      return result.ok ? [result.answer.usage?.tokens.inputUncached, result.answer.usage?.costNanoUsd] : result;
    };
    expect([read(`,"cost":${cost}`), read('')]).toEqual([[7, nano], [7, undefined]]);
  });

  test('openrouter tells in mid-stream that the host behind it failed', () => {
    expect(told([fixture('openrouter-cut')])).toMatchObject({ content: 'Half', finishes: [], last: { type: 'failed', failure: { class: 'PROVIDER_ERROR', publicMessage: '' } } });
  });

  const BROKEN = { code: 502, message: 'Provider returned error' };

  test.each<[string, readonly object[], object]>([
    ['an error in its choice', [{ finish_reason: null, error: BROKEN }], { class: 'PROVIDER_ERROR', status: 502 }],
    ['one beside a finish', [{ finish_reason: 'stop', error: BROKEN }], { class: 'PROVIDER_ERROR', status: 502 }],
    ['one beside its finish', [{ finish_reason: 'error', error: { code: 429, message: 'Slow down' } }], { class: 'RATE_LIMITED', status: 429 }],
    ['one in another choice', [{ finish_reason: 'stop' }, { index: 1, finish_reason: null, error: BROKEN }], { class: 'PROVIDER_ERROR' }],
    ['no finish', [{ finish_reason: null }], { class: 'DISCONNECTED', retryable: true }],
    ['a finish that says nothing', [{ finish_reason: '' }, { index: 1, finish_reason: 'null' }], { class: 'DISCONNECTED' }],
    ['no word of one', [{}], { class: 'DISCONNECTED' }],
  ])('a whole answer with %s is none, and what it cost is known', (_what, choices, expected) => {
    const body = { choices: choices.map((choice) => ({ index: 0, message: { role: 'assistant', content: 'Half' }, ...choice })), usage: { prompt_tokens: 9, completion_tokens: 3 } };
    expect(readChatAnswer(Buffer.from(JSON.stringify(body)), 's')).toMatchObject({ ok: false, failure: expected, usage: { tokens: { inputUncached: 9, outputText: 3 } } });
  });

  test('an answer of which one choice has a finish is whole, and an error that is none is no error', () => {
    const body = { choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: 'length', error: null }, { index: 1, message: { role: 'assistant', content: 'b' }, finish_reason: null }] };
    expect(readChatAnswer(Buffer.from(JSON.stringify(body)), 's')).toMatchObject({ ok: true, answer: { finishReason: 'length' } });
  });

  test.each<[string, string | null]>([['alone', null], ['beside a finish', 'stop'], ['beside a finish of errors', 'error']])('an error in a choice of a stream, %s, breaks it off', (_what, finish) => {
    const error = Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: '' }, finish_reason: finish, error: BROKEN }] })}\n\n`);
    expect(told([chunk({ role: 'assistant', content: 'Half' }, null), error, Buffer.from('data: [DONE]\n\n')])).toMatchObject({ content: 'Half', finishes: [], last: { type: 'failed', failure: { class: 'PROVIDER_ERROR', status: 502 } } });
  });

  test.each<[string, object, readonly (readonly [string, string])[] | undefined]>([
    ['perplexity: addresses, and titles of them', { citations: ['https://a.example', 'https://b.example'], search_results: [{ title: 'B', url: 'https://b.example', date: null }] }, [['https://a.example', ''], ['https://b.example', 'B']]],
    ['perplexity: results alone', { search_results: [{ title: 'A', url: 'https://a.example' }] }, [['https://a.example', 'A']]],
    ['xai: nothing looked up', { citations: [] }, undefined],
    ['a host’s own kind', { citations: [{ source: 1 }] }, undefined],
  ])('sources beside an answer are its annotations: %s', (_name, beside, expected) => {
    const annotations = expected?.map(([url, title]) => ({ type: 'url_citation', url_citation: { url, title, start_index: 0, end_index: 0 } }));
    const frame = (choice: object): Buffer => Buffer.from(`data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, ...choice }], ...beside })}\n\n`);
    const { events } = replay(() => createChatTransducer('seed'), [frame({ delta: { role: 'assistant', content: 'So [1]' } }), frame({ delta: { content: '.' }, finish_reason: 'stop' })]);
    const told = events.flatMap((event) => (event.type === 'chunk' ? event.choices.map(({ delta }) => (delta as { annotations?: unknown }).annotations) : [])).filter((one) => one !== undefined);
    expect(told).toEqual(annotations === undefined ? [] : [annotations]);
    const body = Buffer.from(JSON.stringify({ id: 'x', choices: [{ index: 0, message: { role: 'assistant', content: 'So [1].' }, finish_reason: 'stop' }], ...beside }));
    const whole = readChatAnswer(body, 'seed');
    expect(JSON.parse(String(whole.ok && Buffer.from(whole.answer.choices)))).toMatchObject([{ message: annotations === undefined ? { content: 'So [1].' } : { content: 'So [1].', annotations } }]);
  });
});
