import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { completionTokens, costOf, promptTokens } from '@signalbox/kernel/tokens';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import type { StreamEvent } from '../canonical.js';
import { SSE_EVENT_BYTES_MAX } from '../sse.js';
import { publicSentence, readRetryAfter } from './errors.js';
import { NO_QUIRKS, OPENAI, type ChatQuirks } from './quirks.js';
import { composeChatBody } from './request.js';
import { Envelope, recognise } from './envelope.js';
import { readChatAnswer } from './response.js';
import { createChatTransducer } from './stream.js';
import { readUsage } from './usage.js';

const fixture = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}.sse`, import.meta.url));

function replay(parts: readonly Uint8Array[]): { events: unknown[]; summary: unknown } {
  const transducer = createChatTransducer('seed');
  const events: StreamEvent[] = [...parts.flatMap((part) => transducer.push(part)), ...transducer.close()];
  return { events: events.map((event) => (event.type === 'chunk' ? { ...event, choices: JSON.parse(Buffer.from(event.choices).toString()) as unknown } : event)), summary: transducer.summary() };
}

const frame = (value: object): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);

describe('openai-chat stream', () => {
  test.each(['tools', 'text-crlf'])('%s gives the same events however its bytes are split', (name) => {
    const bytes = fixture(name);
    const whole = replay([bytes]);
    for (let at = 1; at < bytes.length; at += 1) expect(replay([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
    expect(replay(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(whole);
  });

  test('numbers tool calls densely, finishes with tool_calls and takes the last usage', () => {
    const { events, summary } = replay([fixture('tools')]);
    const calls = events.flatMap((event) => (event as { choices?: { delta: { tool_calls?: { index: number; id?: string }[] } }[] }).choices?.[0]?.delta.tool_calls ?? []);
    expect(calls.map((call) => [call.index, call.id])).toEqual([[0, 'call_a'], [0, undefined], [0, undefined], [1, 'call_b'], [1, undefined]]);
    expect(events.filter((event) => (event as StreamEvent).type === 'chunk' && (event as { finish: boolean }).finish)).toHaveLength(1);
    expect(events.at(-1)).toEqual({ type: 'done' });
    expect(summary).toMatchObject({ finishReason: 'tool_calls', usage: { tokens: { inputUncached: 8, cacheRead: 12, outputText: 5, outputReasoning: 3 } } });
  });

  test('counts of a tool call what its model wrote, in however many pieces it came', () => {
    const written = '{"city":"Oslo","days":[1,2,3]}';
    const call = (more: object): Buffer => frame({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...more }] }, finish_reason: null }] });
    const head = call({ id: 'call_a', type: 'function', function: { name: 'get_weather', arguments: '' } });
    const pieces = Array.from(written, (text) => call({ function: { arguments: text } }));
    const outputBytes = 'get_weather'.length + written.length;
    expect(replay([head, ...pieces]).summary).toMatchObject({ outputBytes });
    expect(replay([head, call({ function: { arguments: written } })]).summary).toMatchObject({ outputBytes });
    const body = { choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls: [{ id: 'call_a', type: 'function', function: { name: 'get_weather', arguments: written } }] }, finish_reason: 'tool_calls' }] };
    expect(readChatAnswer(Buffer.from(JSON.stringify(body)), 'seed')).toMatchObject({ ok: true, answer: { outputBytes } });
  });

  test('passes text through unchanged and ends well without [DONE] after a finish', () => {
    const { events, summary } = replay([fixture('text-crlf')]);
    const content = events.map((event) => (event as { choices?: { delta: { content?: string } }[] }).choices?.[0]?.delta.content ?? '').join('');
    expect(content).toBe('4 °C "in" 東京 é!');
    expect(events.at(-1)).toEqual({ type: 'done' });
    expect(summary).toMatchObject({ finishReason: 'length', systemFingerprint: 'fp_1' });
  });

  // What hosts put around text: padding, a time that moves on, usage that says nothing, several choices.
  const around = fc.record({ created: fc.constantFrom(1, 2), rest: fc.constantFrom({}, { usage: null }, { usage: null, obfuscation: 'a' }, { obfuscation: 'bcd' }, { p: 'abcdefg' }, { p: 'ab' }), logprobs: fc.boolean(), index: fc.constantFrom(0, 0, 0, 1) });
  const word = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '"', '\\', '\n', '\u0000', '😀', '\ud83d', '\ude00', '東京', '\\u12', '"}]}', 'data: '));
  const pieceOf = fc.record({ text: word, around, isEscaped: fc.boolean() });
  const escaped = (json: string): string => json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

  test('text arrives as it was sent, whatever stands around it and however its bytes are split', () => {
    fc.assert(
      fc.property(fc.array(pieceOf, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 6 }), fc.boolean(), (pieces, cuts, hasCrlf) => {
        const sent = ['', ''];
        const frames = pieces.map(({ text, around: { created, rest, logprobs, index }, isEscaped }) => {
          // Half of a surrogate pair has no UTF-8: only escapes carry it.
          const json = JSON.stringify({ id: 'x', created, choices: [{ index, delta: { content: text }, ...(logprobs ? { logprobs: null } : {}), finish_reason: null }], ...rest });
          sent[index] = `${sent[index] ?? ''}${text}`;
          return `data: ${isEscaped ? escaped(json) : json}${hasCrlf ? '\r\n\r\n' : '\n\n'}`;
        });
        const bytes = Buffer.from(frames.join(''));
        const at = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
        const { events } = replay(at.slice(1).map((to, part) => bytes.subarray(at[part], to)));
        const got = ['', ''];
        for (const event of events as { choices?: { index: number; delta: { content?: string } }[] }[]) for (const { index, delta } of event.choices ?? []) got[index] = `${got[index] ?? ''}${delta.content ?? ''}`;
        expect(got).toEqual(sent);
      }),
    );
  });

  test('texts that come in one read are given on as one chunk, in order with all else', () => {
    const text = (content: string, finish: string | null = null): Buffer => frame({ id: 'x', choices: [{ index: 0, delta: finish === null ? { content } : {}, logprobs: null, finish_reason: finish }] });
    const { events, summary } = replay([text('a'), Buffer.concat([text('b'), text('c'), text('d'), text('', 'length')]), Buffer.from('data: [DONE]\n\n')]);
    expect(events.map((event) => (event as { choices?: { delta: object }[] }).choices?.[0]?.delta)).toEqual([{ role: 'assistant', content: 'a' }, { content: 'b' }, { content: 'cd' }, {}, undefined]);
    expect(summary).toMatchObject({ outputBytes: 4, finishReason: 'length', isFinished: true });
  });

  test.each(['obfuscation', 'p'])('chunks that a host pads with `%s` pass without being parsed', (name) => {
    const padded = (pad: string): Buffer => Buffer.from(`{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"${name}":"${pad}"}`);
    const [first, other] = [padded('abc'), padded('abcdefghijk')];
    const ordinary = recognise(first, 0, first.length);
    if (ordinary === undefined) throw new Error('It is not recognised.');
    expect(new Envelope(first, 0, first.length, ordinary).textTo(other, 0, other.length)).toBe(ordinary.textTo);
  });

  test('a chunk in the known envelope is still read strictly', () => {
    const text = (content: string): string => `data: {"choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":null}]}\n\n`;
    for (const broken of ['\\q', '\\u12x4', '\t', 'a","x":"b']) {
      const { events } = replay([Buffer.from(text('a') + text('b') + text('c')), Buffer.from(text(broken))]);
      const last = events.at(-1) as StreamEvent;
      // The last one is JSON, but not of the envelope: it is parsed, and what is not text of the answer is left out.
      if (broken.startsWith('a"')) expect(JSON.stringify(events)).not.toContain('"x"');
      else expect(last).toMatchObject({ type: 'failed', failure: { class: 'GARBAGE' } });
    }
  });

  test('a chunk that is no JSON is not passed on as it is, however ordinary it looks', () => {
    expect(replay([Buffer.from('data: {"choices":[{"index":00,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}\n\n')]).events).toMatchObject([{ type: 'failed', failure: { class: 'GARBAGE' } }]);
  });

  test('text that stands in no message, as a completions endpoint writes it, is GARBAGE and not an answer of nothing', () => {
    expect(replay([frame({ choices: [{ index: 0, text: 'It is', finish_reason: null }] }), frame({ choices: [{ index: 0, text: '', finish_reason: 'stop' }] })]).events).toMatchObject([{ type: 'failed', failure: { class: 'GARBAGE' } }]);
    expect(replay([frame({ choices: [{ index: 0, delta: { content: 'a' }, text: 'a', finish_reason: null }] }), frame({ choices: [{ index: 0, text: '', finish_reason: 'stop' }] })]).events.at(-1)).toEqual({ type: 'done' });
  });

  test('a stream that just stops is DISCONNECTED', () => {
    expect(replay([frame({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }] })]).events.at(-1)).toMatchObject({ type: 'failed', failure: { class: 'DISCONNECTED' } });
  });

  test('a line beyond the limit is GARBAGE', () => {
    expect(replay([Buffer.alloc(SSE_EVENT_BYTES_MAX + 1, 97)]).events).toMatchObject([{ type: 'failed', failure: { class: 'GARBAGE' } }]);
  });

  test('the role stands in the first delta of each choice only', () => {
    const one = frame({ choices: [{ index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null }] });
    const { events } = replay([one, one]);
    expect(events.slice(0, 2)).toMatchObject([{ choices: [{ delta: { role: 'assistant' } }] }, { choices: [{ delta: { content: 'a' } }] }]);
    expect((events[1] as { choices: { delta: object }[] }).choices[0]?.delta).not.toHaveProperty('role');
  });

  test('adds what a stream without a finish reason lacks when it says [DONE]', () => {
    const { events } = replay([frame({ choices: [{ delta: { content: 'a' } }] }), Buffer.from('data: [DONE]\n\n')]);
    expect(events.slice(-2)).toMatchObject([{ finish: true, choices: [{ finish_reason: 'stop' }] }, { type: 'done' }]);
  });
});

describe('openai-chat usage', () => {
  test('buckets sum to the totals and the cost is never negative', () => {
    const price = asPrice(1_000_000n);
    const card = { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) };
    const figure = fc.nat(1_000_000);
    fc.assert(
      fc.property(figure, figure, figure, figure, figure, figure, (prompt, completion, cached, written, reasoning, audio) => {
        const usage = readUsage({ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written, audio_tokens: audio }, completion_tokens_details: { reasoning_tokens: reasoning } });
        if (usage === undefined) throw new Error('no usage');
        expect(Math.min(...Object.values(usage.tokens))).toBeGreaterThanOrEqual(0);
        expect(usage.isSuspect).toBe(cached + written > prompt || reasoning > completion);
        expect(promptTokens(usage.tokens)).toBe(prompt);
        expect(completionTokens(usage.tokens)).toBe(completion);
        expect(costOf(usage.tokens, card) >= 0n).toBe(true);
      }),
    );
  });

  // The first is Perplexity's own sample of `sonar-deep-research`: thoughts stand beside the completion, and outside the total too.
  test.each([
    ['more thoughts than completion', { prompt_tokens: 33, completion_tokens: 11_395, total_tokens: 11_428, reasoning_tokens: 193_947, citation_tokens: 0, num_search_queries: 28 }, { inputUncached: 33, outputText: 11_395, outputReasoning: 193_947 }],
    ['fewer thoughts than completion', { prompt_tokens: 33, completion_tokens: 11_395, total_tokens: 11_428, reasoning_tokens: 9_000, num_search_queries: 28 }, { inputUncached: 33, outputText: 11_395, outputReasoning: 9_000 }],
    ['what it read of its sources', { prompt_tokens: 33, completion_tokens: 7_163, total_tokens: 7_196, citation_tokens: 20_016, num_search_queries: 18, reasoning_tokens: 73_997 }, { inputUncached: 20_049, outputText: 7_163, outputReasoning: 73_997 }],
    ['thoughts within the total', { prompt_tokens: 33, completion_tokens: 10, total_tokens: 63, citation_tokens: 0, reasoning_tokens: 20 }, { inputUncached: 33, outputText: 10, outputReasoning: 20 }],
    ['sources that it does not bill, of a model without research', { prompt_tokens: 33, completion_tokens: 10, total_tokens: 43, citation_tokens: 7, num_search_queries: 1 }, { inputUncached: 33, outputText: 10, outputReasoning: 0 }],
  ])('perplexity tells %s, and all of it counts once', (_what, raw, buckets) => {
    expect(readUsage(raw)).toMatchObject({ tokens: { ...buckets, cacheRead: 0, cacheWrite: 0, audio: 0, image: 0 }, isSuspect: false });
  });

  test.each([
    ['DeepSeek', { prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 20 }],
    ['Moonshot', { cached_tokens: 64 }],
    ['Mistral', { num_cached_tokens: 64, prompt_tokens_details: null }],
    ['Mistral, in the singular', { prompt_token_details: { cached_tokens: 64 } }],
    ['Mistral, under all names at once', { num_cached_tokens: 64, prompt_token_details: { cached_tokens: 64 }, prompt_tokens_details: { cached_tokens: 64 } }],
  ])('what the cache gave counts once, as %s names it', (_who, named) => {
    expect(readUsage({ prompt_tokens: 84, completion_tokens: 2, total_tokens: 86, ...named })).toMatchObject({ tokens: { inputUncached: 20, cacheRead: 64 }, cachedKnown: true, isSuspect: false });
  });

  test.each([[{ prompt_tokens: -1, completion_tokens: 2 }], [{ prompt_tokens: 1.5, completion_tokens: 2 }], [{ prompt_tokens: 2 ** 60, completion_tokens: 2 }], [{}], [null]])('refuses figures that are no counts: %j', (raw) => {
    expect(readUsage(raw)).toBeUndefined();
  });
});

describe('openai-chat request and answer', () => {
  test('splices fields as sent, renames developer, clamps temperature', () => {
    const fields = [
      { name: 'messages', value: Buffer.from('[{"role":"developer","content":"x"}]') },
      { name: 'temperature', value: Buffer.from('1.9') },
      { name: 'seed', value: Buffer.from('7') },
      { name: 'model', value: Buffer.from('"other"') },
    ];
    const body = composeChatBody({ providerModelId: 'm"1', stream: false, maxTokens: 5, maxTokensParam: 'max_completion_tokens', temperatureMax: 1.5, fields }, { ...NO_QUIRKS, developerAsSystem: true, renameFields: { seed: 'random_seed' } });
    expect(JSON.parse(body.toString())).toEqual({ model: 'm"1', stream: false, max_completion_tokens: 5, messages: [{ role: 'system', content: 'x' }], temperature: 1.5, random_seed: 7 });
  });

  test.each<[string, Readonly<Record<string, unknown>>, unknown]>([
    ['openai/gpt-5.6-terra', { tools: [] }, 'none'],
    ['openai/gpt-6-sol', { tools: [] }, 'none'],
    ['openai/gpt-5.6-terra', { tools: [], reasoning_effort: 'high' }, 'high'],
    ['openai/gpt-5.6-terra', {}, undefined],
    ['openai/gpt-5.5', { tools: [] }, undefined],
    ['openai/gpt-5', { tools: [] }, undefined],
    ['acme/gpt-5.6-like', { tools: [] }, undefined],
  ])('%s with %j is told the effort %j', (model, told, effort) => {
    const fields = Object.entries({ messages: [], ...told }).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));
    const compose = (quirks: ChatQuirks): Record<string, unknown> => JSON.parse(composeChatBody({ model, providerModelId: 'm', stream: false, maxTokensParam: '', temperatureMax: 0, fields }, quirks).toString()) as Record<string, unknown>;
    expect(compose(OPENAI)['reasoning_effort']).toBe(effort);
    // Elsewhere the same model may think beside its tools.
    expect(compose(NO_QUIRKS)['reasoning_effort']).toBe(told['reasoning_effort']);
  });

  test.each<[string | null, object]>([
    ['', { reasoning_content: 'so' }],
    ['', { content: null, images: [] }],
    [null, { content: null, refusal: 'No.' }],
    [null, { content: null, function_call: { name: 'f', arguments: '{}' } }],
    [null, { content: null, tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' } }] }],
  ])('content is %j where the message says %j', (content, message) => {
    const result = readChatAnswer(Buffer.from(JSON.stringify({ choices: [{ message, finish_reason: 'length' }] })), 's');
    expect(result.ok && JSON.parse(Buffer.from(result.answer.choices).toString())).toMatchObject([{ message: { content } }]);
  });

  test('content is null beside tool calls and arguments are text', () => {
    const result = readChatAnswer(Buffer.from(JSON.stringify({ choices: [{ message: { content: '', tool_calls: [{ function: { name: 'f', arguments: { a: 1 } } }] }, finish_reason: 'stop' }] })), 's');
    expect(result.ok && JSON.parse(Buffer.from(result.answer.choices).toString())).toEqual([{ index: 0, message: { role: 'assistant', content: null, refusal: null, tool_calls: [{ id: 'call_s0', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] }, logprobs: null, finish_reason: 'tool_calls' }]);
  });

  const reading = (body: string): unknown => {
    const result = readChatAnswer(Buffer.from(body), 's');
    return result.ok ? { ...result.answer, choices: JSON.parse(Buffer.from(result.answer.choices).toString()) as unknown } : result;
  };

  test('a plain text answer reads the same whether its text is decoded or not', () => {
    const body = fc.record({
      text: fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"}],', '\\', '\n😀', '\ud83d', '東京')),
      extra: fc.constantFrom({}, { refusal: null }, { refusal: null, annotations: [] }, { annotations: [{ type: 'url_citation' }] }, { refusal: 'no' }),
      reason: fc.constantFrom('stop', 'length', 'eos', 'content_filter', 'error', 'other'),
      logprobs: fc.constantFrom({}, { logprobs: null }, { logprobs: { content: [] } }),
      around: fc.constantFrom({}, { usage: { prompt_tokens: 1, completion_tokens: 2 } }, { usage: 'none', service_tier: 'default' }, { error: { message: 'overloaded' } }, { system_fingerprint: null, usage: {} }),
      indent: fc.constantFrom(0, 2),
      isEscaped: fc.boolean(),
    });
    fc.assert(
      fc.property(body, ({ text, extra, reason, logprobs, around: fields, indent, isEscaped }) => {
        const choice = { index: 0, message: { role: 'assistant', content: text, ...extra }, ...logprobs, finish_reason: reason };
        const json = (choices: readonly object[]): string => {
          const said = JSON.stringify({ id: 'x', created: 1, system_fingerprint: 'fp', choices, ...fields }, null, indent);
          return isEscaped ? said.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`) : said;
        };
        // A name in front of `index` makes it no plain answer, and is left out of what is read.
        expect(reading(json([choice]))).toEqual(reading(json([{ unknown: 1, ...choice }])));
      }),
      { numRuns: 500 },
    );
  });

  test.each(['{"choices":[{"index":0,"message":{"role":"assistant","content":"\t"},"finish_reason":"stop"}]}', '{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],}', '{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]'])('what is no JSON is GARBAGE: %s', (body) => {
    expect(reading(body)).toMatchObject({ ok: false, failure: { class: 'GARBAGE' } });
  });

  test.each([
    ['{"choices":[{"index":0,"text":"It is 4 °C.","finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":6}}', 'EMPTY'],
    ['{"choices":[{"index":0,"message":null,"finish_reason":null}]}', 'EMPTY'],
    ['{"choices":[{"index":0,"finish_reason":"content_filter"}]}', 'CONTENT_POLICY'],
    ['{"choices":[{"index":0,"finish_reason":"content_filter: PROHIBITED_CONTENT"}]}', 'CONTENT_POLICY'],
  ])('an answer without a message is none: %s', (body, expected) => {
    expect(reading(body)).toMatchObject({ ok: false, failure: { class: expected } });
  });

  test.each([[{ 'retry-after': '2' }, 2_000], [{ 'retry-after-ms': '150', 'retry-after': '9' }, 150], [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:05 GMT' }, 5_000], [{ 'retry-after': '999999' }, 600_000], [{ 'retry-after': 'soon' }, 0], [{ 'retry-after': 'Thu, 26 Nov 2026 12:00:05 GMT', date: 'Thu, 26 Nov 2026 12:00:00 GMT' }, 5_000]])('reads %j as %d ms', (headers, ms) => {
    expect(readRetryAfter(headers, 0)).toBe(ms);
  });

  test('a public sentence holds nothing like a key', () => {
    expect(publicSentence('Incorrect key sk-proj-abc***xyz for org-12345 see https://x.y/z')).not.toMatch(/sk-|org-|https/);
    expect(publicSentence('AKIAIOSFODNN7EXAMPLE may not use eyJhbGciOiJIUzI1NiJ9.eyJzdWIi here')).toBe('[redacted] may not use [redacted] here');
    expect(publicSentence('Incorrect key sk-proj-abcdefgh***xyz.')).toBe('Incorrect key [redacted]');
  });
});
