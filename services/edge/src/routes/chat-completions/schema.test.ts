import { describe, expect, jest, test } from '@jest/globals';
import type { ChatRequest } from '../../domain/chat-request.js';
import { PLUGINS } from '../../domain/plugins.js';
import { readChatRequest, readLargeChatRequest } from './schema.js';

const KNOWN = Object.keys(PLUGINS).join(', ');
const nameSession = (sessionId: string | undefined, opening: string): string => JSON.stringify([sessionId ?? null, opening]);
const base = { model: 'auto', messages: [{ role: 'user', content: 'Hi' }] };
const read = (over: object, variant: 'A' | 'B' = 'A') => readChatRequest(Buffer.from(JSON.stringify({ ...base, ...over })), variant, nameSession);
const requestOf = (over: object, variant: 'A' | 'B' = 'A'): ChatRequest => {
  const result = read(over, variant);
  if (result.kind !== 'ok') throw new Error(result.error.message);
  return result.request;
};
const tool = { type: 'function', function: { name: 'f' } };
const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
const user = (part: object): object => ({ messages: [{ role: 'user', content: [part] }] });

/** Nested objects, as in schemas of answers: `levels` below the outermost. */
const schemaOf = (levels: number, isNullable: boolean): object => {
  if (levels === 0) return { type: 'string' };
  const inner = { type: 'object', properties: { x: schemaOf(levels - 1, isNullable) } };
  return isNullable ? { anyOf: [inner, { type: 'null' }] } : inner;
};

test.each([
  ['objects', 14, false],
  ['objects or null', 7, true],
])('%s schemas nested in each other may have %d levels; for a deeper one the message explains how to write it', (_what, levels, isNullable) => {
  const ask = (more: number) => read({ response_format: { type: 'json_schema', json_schema: { name: 'deep', schema: schemaOf(levels + more, isNullable) } } });
  expect(ask(0).kind).toBe('ok');
  expect(ask(1)).toMatchObject({ kind: 'invalid', error: { status: 400, code: null, message: expect.stringMatching(/more than 32 levels deep\. In a JSON schema .* \$defs, and \$ref them/) } });
});

describe('chat request', () => {
  test.each<[object, string, string]>([
    [{ model: undefined }, 'missing_required_parameter', 'model'], [{ model: null }, 'missing_required_parameter', 'model'], [{ model: 3 }, 'invalid_type', 'model'], [{ model: '' }, 'invalid_value', 'model'],
    [{ model: 'a\0b', models: ['m'] }, 'invalid_value', 'model'], [{ models: ['m', '\0'] }, 'invalid_value', 'models.[1]'], [{ user: '\0' }, 'invalid_value', 'user'],
    [{ messages: undefined }, 'missing_required_parameter', 'messages'], [{ messages: [] }, 'invalid_value', 'messages'], [{ messages: {} }, 'invalid_type', 'messages'],
    [{ messages: [{ content: 'x' }] }, 'missing_required_parameter', 'messages.[0].role'], [{ messages: [{ role: 'robot', content: 'x' }] }, 'invalid_value', 'messages.[0].role'], [{ messages: [{ role: 'user' }] }, 'missing_required_parameter', 'messages.[0].content'],
    [{ messages: [{ role: 'user', content: 3 }] }, 'invalid_type', 'messages.[0].content'], [{ messages: [{ role: 'assistant', content: null }] }, 'missing_required_parameter', 'messages.[0].content'],
    [{ messages: [...base.messages, { role: 'tool', tool_call_id: 'c1', content: 'x' }] }, 'invalid_value', 'messages.[1].tool_call_id'], [{ messages: [{ role: 'tool', content: 'x' }] }, 'missing_required_parameter', 'messages.[0].tool_call_id'],
    [{ messages: [{ role: 'assistant', tool_calls: [{ ...call, function: { name: 'f', arguments: {} } }] }] }, 'invalid_type', 'messages.[0].tool_calls.[0].function.arguments'],
    [user({ type: 'image_url', image_url: { url: 'http://x/y.png' } }), 'invalid_value', 'messages.[0].content.[0].image_url.url'], [user({ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }), 'invalid_value', 'messages.[0].content.[0].image_url.url'],
    [user({ type: 'video' }), 'invalid_value', 'messages.[0].content.[0].type'],
    [{ temperature: '0.5' }, 'invalid_type', 'temperature'], [{ temperature: 2.01 }, 'invalid_value', 'temperature'], [{ temperature: -0.1 }, 'invalid_value', 'temperature'],
    [{ max_tokens: 0 }, 'invalid_value', 'max_tokens'], [{ max_tokens: 1.5 }, 'invalid_type', 'max_tokens'], [{ max_tokens: 1, max_completion_tokens: 1 }, 'invalid_value', 'max_tokens'],
    [{ stream: 'true' }, 'invalid_type', 'stream'], [{ stream_options: { include_usage: true } }, 'invalid_value', 'stream_options'],
    [{ top_p: 1.1 }, 'invalid_value', 'top_p'], [{ presence_penalty: -3 }, 'invalid_value', 'presence_penalty'], [{ stop: ['1', '2', '3', '4', '5'] }, 'invalid_value', 'stop'], [{ n: 0 }, 'invalid_value', 'n'], [{ top_logprobs: 21 }, 'invalid_value', 'top_logprobs'],
    [{ tools: Array.from({ length: 129 }, () => tool) }, 'invalid_value', 'tools'], [{ tools: [tool], tool_choice: 'any' }, 'invalid_value', 'tool_choice'], [{ tool_choice: 'required' }, 'invalid_value', 'tool_choice'],
    [{ tools: [tool], tool_choice: { type: 'function', function: { name: 'g' } } }, 'invalid_value', 'tool_choice'],
    [{ response_format: { type: 'xml' } }, 'invalid_value', 'response_format.type'], [{ response_format: { type: 'json_schema' } }, 'missing_required_parameter', 'response_format.json_schema'], [{ response_format: { type: 'json_object', schema: 'x' } }, 'invalid_type', 'response_format.schema'],
    [{ data_collection: 'maybe' }, 'invalid_value', 'data_collection'], [{ provider: { zdr: 'yes' } }, 'invalid_type', 'provider.zdr'], [{ zdr: 1 }, 'invalid_type', 'zdr'], [{ preferred_max_latency: 0 }, 'invalid_value', 'preferred_max_latency'], [{ min_quantization: 'int3' }, 'invalid_value', 'min_quantization'],
    [{ min_quantization: 'fp16', max_quantization: 'int8' }, 'invalid_value', 'min_quantization'], [{ plugins: ['nope'] }, 'unknown_plugin', 'plugins'], [{ plugins: 'web-search' }, 'invalid_type', 'plugins'],
    [{ provider: { max_price: { prompt: 1e-12 } } }, 'invalid_value', 'provider.max_price.prompt'], [{ session_id: 'x'.repeat(257) }, 'invalid_value', 'session_id'],
    [{ prompt_cache_key: 7 }, 'invalid_type', 'prompt_cache_key'], [{ prompt_cache_key: 'x'.repeat(1_025) }, 'invalid_value', 'prompt_cache_key'], [{ cache_control: 'ephemeral' }, 'invalid_type', 'cache_control'],
  ])('refuses %.80j with its code and parameter', (over, code, param) => {
    const result = read(over);
    expect(result.kind === 'invalid' ? [result.error.status, result.error.code, result.error.param] : 'ok').toEqual([400, code, param]);
  });

  test.each([['tool', "'text'"], ['assistant', "'text', 'refusal'"], ['system', "'text'"]])('an image in a message of a %s is refused with where it belongs', (role, types) => {
    const content = [{ type: 'text', text: 'Look' }, { type: 'image_url', image_url: { url: 'https://x/y' } }];
    const messages = [...base.messages, { role: 'assistant', content: null, tool_calls: [call] }, { role, content, ...(role === 'tool' ? { tool_call_id: 'c1' } : {}) }];
    expect(read({ messages })).toMatchObject({ error: { status: 400, code: 'invalid_value', param: 'messages.[2].content.[1].type', message: `Invalid value for 'messages.[2].content.[1].type': expected ${types}, since only a message of a user holds images, sound or files.` } });
  });

  test('an empty list of calls, which hosts refuse, is removed', () => {
    const messages = [...base.messages, { role: 'assistant', content: 'Well.', tool_calls: [] }, { role: 'user', content: 'So?' }];
    expect(JSON.parse(requestOf({ messages }).fields.find(({ name }) => name === 'messages')?.value.toString() ?? '')).toEqual([...base.messages, { role: 'assistant', content: 'Well.' }, { role: 'user', content: 'So?' }]);
    expect(read({ messages: [...base.messages, { role: 'assistant', content: null, tool_calls: [] }] })).toMatchObject({ kind: 'invalid', error: { param: 'messages.[1].content' } });
  });

  test('an empty user is removed', () => {
    const { fields, user: name } = requestOf({ user: '', stop: [] });
    expect([fields.map((field) => field.name), name]).toEqual([['messages'], undefined]);
  });

  test('images made for the user are not sent back to a model, and do not count as prompt', () => {
    const answer = { role: 'assistant', content: 'Here.', reasoning_content: 'hm' };
    const images = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(10_000)}` } }];
    const messages = [...base.messages, { ...answer, images }, { role: 'user', content: 'Another' }];
    const plain = requestOf({ messages: [...base.messages, answer, { role: 'user', content: 'Another' }] });
    const { fields, promptBytes, promptTokens, imageCount, needs, session } = requestOf({ messages });
    expect(JSON.parse(fields.find(({ name }) => name === 'messages')?.value.toString() ?? '')).toEqual([...base.messages, answer, { role: 'user', content: 'Another' }]);
    expect([promptBytes, promptTokens, imageCount, needs.vision, session]).toEqual([plain.promptBytes, plain.promptTokens, 0, false, plain.session]);
  });

  test('the tokens of parts that are not text are an estimate, given separately', () => {
    const plain = requestOf({ messages: [{ role: 'user', content: [{ type: 'text', text: 'What?' }] }] });
    const { promptTokens, mediaTokens } = requestOf({ messages: [{ role: 'user', content: [{ type: 'text', text: 'What?' }, ...['a', 'b'].map((name) => ({ type: 'image_url', image_url: { url: `https://x/${name}.png` } }))] }] });
    expect([plain.mediaTokens, mediaTokens]).toEqual([0, 2_000]);
    expect(promptTokens - mediaTokens).toBeLessThan(plain.promptTokens + 50);
  });

  test.each([['short', 30], ['long', 100_000]])('the bytes of a %s image in the body are told apart from those of text, escaped or not, and no others are', (_what, length) => {
    const of = (image: string, data = 'QUJD'): ChatRequest => {
      const content = [{ type: 'text', text: 'What?' }, { type: 'image_url', image_url: { url: 'IMAGE' } }, { type: 'input_audio', input_audio: { data, format: 'wav' } }];
      const result = readChatRequest(Buffer.from(JSON.stringify({ ...base, messages: [{ role: 'user', content }] }).replace('IMAGE', image)), 'A', nameSession);
      if (result.kind !== 'ok') throw new Error(result.error.message);
      return result.request;
    };
    const textOf = ({ promptBytes, inlineImageBytes }: ChatRequest): number => promptBytes - inlineImageBytes;
    const [none, plain] = [of('https://x'), of(`data:image/png;base64,${'QUI/'.repeat(length)}`)];
    expect([none.inlineImageBytes, plain.inlineImageBytes]).toEqual([0, 22 + 4 * length]);
    expect(textOf(plain)).toBe(textOf(none) - 'https://x'.length);
    // An escape may be more bytes than the character that it stands for, never fewer.
    for (const escape of ['\\/', '\\u002f']) expect(textOf(of(`data:image/png;base64,${`QUI${escape}`.repeat(length)}`))).toBeGreaterThanOrEqual(textOf(plain));
    expect(textOf(of('https://x', 'QUJD'.repeat(length)))).toBe(textOf(none) + 4 * length - 4);
  });

  test.each([['very short', 96], ['short', 6_000], ['long', 2_880_000]])('a %s recording whose header tells its length is told apart from text, with the tokens of that length', (_what, bytes) => {
    const header = Buffer.from('52494646ffffffff57415645666d74201000000001000100c05d000080bb00000200100064617461ffffffff', 'hex');
    const data = Buffer.concat([header, Buffer.alloc(bytes, 3)]).toString('base64');
    const of = (format: string, sound: string): ChatRequest => requestOf({ messages: [{ role: 'user', content: [{ type: 'text', text: 'What?' }, { type: 'input_audio', input_audio: { data: sound, format } }] }] });
    const [told, mp3] = [of('wav', data), of('mp3', data)];
    const seconds = bytes / 48_000;
    expect([told.inlineSoundBytes, Math.floor(told.soundTokensMax / 50)]).toEqual([data.length, Math.floor(30 + seconds)]);
    expect(told.soundTokensMax).toBeGreaterThan(50 * (30 + seconds));
    // Nothing tells how long it is.
    expect([mp3.inlineSoundBytes, mp3.soundTokensMax]).toEqual([0, 0]);
    expect([told.promptBytes, told.promptTokens]).toEqual([mp3.promptBytes, mp3.promptTokens]);
  });

  test('a prompt counts the same whether its client escapes non-ASCII text or not', () => {
    const body = JSON.stringify({ ...base, messages: [{ role: 'user', content: 'Привет, мир! 🚂'.repeat(100) }] });
    const escaped = body.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
    expect(escaped.length).toBeGreaterThan(2 * Buffer.byteLength(body));
    const [plain, counted] = [body, escaped].map((text) => readChatRequest(Buffer.from(text), 'A', nameSession)).map((result) => (result.kind === 'ok' ? [result.request.promptBytes, result.request.promptTokens] : []));
    expect(plain).toHaveLength(2);
    expect(counted).toEqual(plain);
  });

  test('an empty list of stop sequences, which hosts refuse, is removed', () => {
    expect(requestOf({ stop: [] }).fields.map(({ name }) => name)).toEqual(['messages']);
    expect(requestOf({ stop: ['a'] }).needs.params).toEqual(['stop']);
  });

  test('null counts as absent for every optional field, and is not forwarded', () => {
    const names = ['temperature', 'max_tokens', 'stream', 'stream_options', 'stop', 'n', 'tools', 'tool_choice', 'response_format', 'plugins', 'provider', 'zdr', 'data_collection', 'min_quantization', 'models', 'session_id', 'user', 'metadata', 'logit_bias'];
    expect(requestOf(Object.fromEntries(names.map((name) => [name, null]))).fields.map(({ name }) => name)).toEqual(['messages']);
  });

  test.each(['A', 'B'] as const)('a field of null asked for nothing, so it is not named as ignored, whether it is known or not: %s', (variant) => {
    const { ignoredParams } = requestOf({ store: null, functions: null, plugins: null, min_quantization: null, zrd: true, provider: { foo: null, bar: 1, max_price: { request: null } } }, variant);
    expect(ignoredParams).toEqual(variant === 'A' ? ['zrd', 'provider.bar'] : ['zrd', 'provider']);
  });

  test('nulls that hosts refuse are removed from messages, except for content', () => {
    const dumped = { refusal: null, annotations: [], audio: null, function_call: null, tool_calls: null };
    const messages = [{ role: 'user', content: 'Hi', name: null }, { role: 'assistant', content: 'a', ...dumped }, { role: 'assistant', content: null, refusal: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'c1', content: 'r' }];
    const [sent] = requestOf({ messages }).fields;
    expect(JSON.parse(sent?.value.toString() ?? '')).toEqual([{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'a', annotations: [] }, { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'c1', content: 'r' }]);
  });

  test('fields are forwarded byte for byte, but never those that control the gateway', () => {
    const body = Buffer.from('{"model":"m", "messages" : [ {"role":"user","content":"é"} ],"temperature":1.0,"max_tokens":5,"stream":true,"foo":1,"zdr":true}');
    const result = readChatRequest(body, 'A', nameSession);
    if (result.kind !== 'ok') throw new Error('expected a request');
    expect(result.request.fields.map(({ name, value }) => [name, value.toString()])).toEqual([['messages', '[ {"role":"user","content":"é"} ]'], ['temperature', '1.0']]);
    expect(result.request).toMatchObject({ stream: true, maxTokens: 5, zdr: true, ignoredParams: ['foo'], needs: { params: ['temperature', 'max_tokens'] } });
  });

  test.each([['\n', true], [['END', ' '], true], ['', true], ['END', false], [['END', '\nEND'], false]])('notes whether a stop sequence is blank: %j', (stop, isBlank) => {
    expect(requestOf({ stop }).needs.params?.filter((name) => name !== 'stop.second')).toEqual(isBlank ? ['stop', 'stop.blank'] : ['stop']);
  });

  test.each([
    ['9223372036854775807', 'ok'], ['-9223372036854775808', 'ok'], ['9007199254740993', 'ok'],
    ['9223372036854775808', 'invalid_value'], ['-9223372036854775809', 'invalid_value'], ['1e19', 'invalid_value'], ['9223372036854775808.0', 'invalid_value'], ['9.223372036854775808e18', 'invalid_value'], ['1e400', 'invalid_value'], ['1000000000000000000000000000000', 'invalid_value'],
    ['1.5', 'invalid_type'], ['"1"', 'invalid_type'], ['true', 'invalid_type'],
  ])('a seed is a 64-bit integer, and is forwarded with every digit: %s', (seed, expected) => {
    const result = readChatRequest(Buffer.from(`${JSON.stringify(base).slice(0, -1)},"seed":${seed}}`), 'A', nameSession);
    if (result.kind === 'ok') expect(['ok', result.request.fields.find(({ name }) => name === 'seed')?.value.toString()]).toEqual([expected, seed]);
    else expect([result.error.code, result.error.param]).toEqual([expected, 'seed']);
    if (expected === 'invalid_value' && result.kind === 'invalid') expect(result.error.message).toContain('from -9223372036854775808 to 9223372036854775807');
  });

  test.each([
    ['n', '1e0', '1'], ['n', '2.0', '2'], ['n', '127.99999999999999999', '128'], ['n', '100', '100'], ['n', '1E+2', '100'], ['n', '500e-1', '50'], ['top_logprobs', '-0', '0'], ['top_logprobs', '0.0e9', '0'], ['top_logprobs', '0.002e3', '2'],
    ['seed', '1e3', '1000'], ['seed', '-0', '0'], ['seed', '-1.5e1', '-15'], ['seed', '1e18', '1000000000000000000'], ['seed', '9223372036854775807.0', '9223372036854775807'], ['seed', '-9.223372036854775808e18', '-9223372036854775808'], ['seed', '1.234567890123456789E18', '1234567890123456789'],
  ])('an integer %s that is written as %s goes on as %s, which every host reads', (name, written, sent) => {
    const result = readChatRequest(Buffer.from(`${JSON.stringify(base).slice(0, -1)},"${name}":${written}}`), 'A', nameSession);
    if (result.kind !== 'ok') throw new Error(result.error.message);
    expect(result.request.fields.find((field) => field.name === name)?.value.toString()).toBe(sent);
  });

  const sampling = { temperature: 1, top_p: 1 };
  test.each<[object, string[]]>([
    [{ ...sampling, reasoning_effort: 'low' }, ['temperature.thinking', 'top_p.thinking']],
    [{ temperature: 1, reasoning_effort: 'high', max_tokens: 1_025 }, ['temperature.thinking']],
    [{ ...sampling, reasoning_effort: 'none' }, []],
    [{ ...sampling, reasoning_effort: 'low', max_tokens: 1_024 }, []],
    [{ ...sampling, reasoning_effort: 'low', tools: [tool], tool_choice: 'required' }, []],
    [{ reasoning_effort: 'low' }, []],
    [sampling, []],
    [{ stop: ['a', 'b'] }, ['stop.second']],
    [{ stop: ['a'] }, []],
  ])('notes sampling beside reasoning, and several stop sequences: %j', (body, names) => {
    expect((requestOf(body).needs.params ?? []).filter((name) => /\.(thinking|second)$/.test(name) && name !== 'top_p.second')).toEqual(names);
  });

  test.each<[object, string[]]>([
    [{ temperature: 1.25 }, ['temperature.of.1.25']],
    [{ temperature: 1 }, []],
    [{ presence_penalty: -0.1, frequency_penalty: 1.1 }, ['presence_penalty.wide', 'frequency_penalty.wide']],
    [{ presence_penalty: 0, frequency_penalty: 1 }, []],
    [{ user: 'anna@example.com' }, ['user.personal']],
    [{ user: '+41 79 123 45 67' }, ['user.personal']],
    [{ user: 'u'.repeat(257) }, ['user.personal']],
    [{ user: 'user-1' }, []],
    [{ stream: true, reasoning_effort: 'low', max_tokens: 1_024 }, ['reasoning_effort.cramped', 'reasoning_effort.of.low']],
    [{ stream: true, reasoning_effort: 'low', max_completion_tokens: 1_025 }, ['reasoning_effort.of.low']],
    [{ reasoning_effort: 'none', max_tokens: 5 }, ['reasoning_effort.of.none']],
    [{ stream: true, reasoning_effort: 'minimal' }, ['reasoning_effort.of.minimal']],
    [{ stream: true, reasoning_effort: 'medium' }, ['reasoning_effort.of.medium']],
    [{ reasoning_effort: 'high' }, ['reasoning_effort.whole', 'reasoning_effort.of.high']],
    [{ reasoning_effort: 'a lot' }, []],
    [{ tools: [tool], parallel_tool_calls: false }, ['parallel_tool_calls.single']],
    [{ tools: [tool], parallel_tool_calls: true }, []],
    [{ parallel_tool_calls: false }, []],
  ])('notes values that not all hosts accept: %j', (body, names) => {
    expect((requestOf(body).needs.params ?? []).filter((name) => name.includes('.'))).toEqual(names);
  });

  test('the token limit keeps the name under which it was sent', () => {
    for (const [body, name] of [[{ max_tokens: 5 }, 'max_tokens'], [{ max_completion_tokens: 5, max_tokens: null }, 'max_completion_tokens'], [{}, undefined]] as const) expect(requestOf(body).maxTokensParam).toBe(name);
  });

  test.each([{ user: 'a\ud800' }, { user: '\udfffa' }, { user: 'a\0' }, { session_id: 'a\ud800' }, { model: 'm\ud800' }, { models: ['a', 'm\ud800'] }, { provider: { ignore: ['a\ud800'] } }])('a name that cannot be stored exactly is refused: %j', (body) => {
    const result = read(body);
    const [field = ''] = Object.keys(body);
    expect(result.kind === 'invalid' ? [result.error.code, result.error.param?.split('.')[0]] : 'ok').toEqual(['invalid_value', field]);
    expect(read({ user: '\ud83d\ude00', session_id: '\ufffd' }).kind).toBe('ok');
  });

  test.each([['web', "'web-search' does"], ['file-parser', "'pdf-reader' does"], ['response-healing', 'by itself']])('for the plugin %s of OpenRouter the error names the equivalent here', (id, hint) => {
    for (const body of [{ plugins: [{ id }] }, { plugins: [id] }, { plugin_options: { [id]: {} } }]) expect(read(body)).toMatchObject({ kind: 'invalid', error: { code: 'unknown_plugin', message: expect.stringContaining(hint) } });
    expect(read({ plugins: ['nope'] })).toMatchObject({ error: { message: `There is no plugin 'nope'; known are ${KNOWN}.` } });
  });

  test.each<[object, boolean]>([[{ temperature: 1, top_p: 1 }, true], [{ top_p: 0.5, temperature: 0 }, true], [{ top_p: 1 }, false], [{ temperature: 1, top_p: null }, false]])('notes whether both ways of sampling are set: %j', (body, hasBoth) => {
    expect((requestOf(body).needs.params ?? []).includes('top_p.second')).toBe(hasBoth);
  });

  test('accepts a tool turn and notes what the request needs', () => {
    const request = requestOf({ tools: [tool], tool_choice: 'required', messages: [...base.messages, { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'c1', content: '4' }, { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x/y' } }] }] });
    expect(request).toMatchObject({ messageCount: 4, imageCount: 1, hasUnboundedParts: false, needs: { tools: true, forcedToolChoice: true, vision: true } });
  });

  test('notes the size of the definitions of tools that earlier turns called, each tool once', () => {
    const calling = (content: string | null, names: readonly string[]): object => ({ role: 'assistant', content, tool_calls: names.map((name, index) => ({ id: `c${index}`, type: 'function', function: { name, arguments: '{}' } })) });
    const bytesOf = (...messages: readonly object[]): number => requestOf({ messages: [...base.messages, ...messages] }).calledToolBytes;
    const one = bytesOf(calling(null, ['add']));
    expect(bytesOf()).toBe(0);
    expect(one).toBeGreaterThan('{"name":"add","input_schema":{"type":"object"}}'.length);
    expect(bytesOf(calling('Well.', ['add', 'add']), calling(null, ['add']))).toBe(one);
    expect(bytesOf(calling(null, ['add', 'sub']))).toBe(2 * one);
    expect(bytesOf({ role: 'assistant', content: null, function_call: { name: 'add', arguments: '{}' } })).toBe(one);
    expect(bytesOf({ role: 'assistant', content: 'Well.', function_call: { name: 'add', arguments: '{}' } })).toBe(one);
  });

  test.each<[string, object, object, object]>([
    ['memory', { write: false, namespace: 'private' }, { max_facts: 3 }, { write: false, namespace: 'private', max_facts: 3 }],
    ['web-search', { include_domains: ['a.example'], max_results: 2 }, { max_results: 4 }, { include_domains: ['a.example'], max_results: 4 }],
    ['memory', { write: false }, { write: null, namespace: 'private' }, { write: false, namespace: 'private' }],
    ['memory', { write: true }, { write: false }, { write: false }],
  ])('every option of %s is kept, in either form; plugin_options wins', (id, inObject, beside, merged) => {
    expect(requestOf({ plugins: [{ id, ...inObject }], plugin_options: { [id]: beside } }).pluginOptions).toEqual({ [id]: merged });
    expect(requestOf({ plugins: [{ id, ...inObject }, id, { id, ...beside }] })).toMatchObject({ pluginIds: [id], pluginOptions: { [id]: merged } });
  });

  test('a null under a name that the other form lacks is kept, so that an unknown option is reported', () => {
    const request = requestOf({ plugins: [{ id: 'memory', write: false }], plugin_options: { memory: { constructor: null } } });
    expect(Object.entries(request.pluginOptions['memory'] as object)).toEqual([['write', false], ['constructor', null]]);
  });

  test('merges plugins in both forms and turns price bounds into whole nano-dollars', () => {
    expect(requestOf({ plugins: ['web-search', { id: 'web-search', max_results: 3 }], provider: { max_price: { prompt: 0.15 } } })).toMatchObject({ pluginIds: ['web-search'], pluginOptions: { 'web-search': { max_results: 3 } }, provider: { maxPricePrompt: '150000000' } });
  });

  test('an unknown option of healing is refused by name', () => {
    const off = { 'json-healing': { enabled: false } };
    expect(requestOf({ plugin_options: off }).pluginOptions).toEqual(off);
    expect(read({ plugin_options: { 'json-healing': { enabld: false } } })).toMatchObject({ kind: 'invalid', error: { code: 'invalid_value', param: 'plugin_options.json-healing.enabld' } });
    expect(read({ plugin_options: { 'json-healing': { enabled: 'no' } } })).toMatchObject({ kind: 'invalid', error: { code: 'invalid_type' } });
  });

  test('of a body with thousands of unknown fields none is looked up', () => {
    const body = Buffer.from(`${JSON.stringify({ ...base, ...Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`x${String(at)}`, 1])) }).slice(0, -1)}, "gone" : null, "new": "null"}`);
    const looked = jest.spyOn(Object, 'hasOwn');
    const result = readChatRequest(body, 'A', nameSession);
    expect(looked.mock.calls.length).toBeLessThan(1_000);
    jest.restoreAllMocks();
    expect(result.kind === 'ok' ? result.request.ignoredParams.slice(9_999) : []).toEqual(['x9999', 'new']);
  });

  test('for a body with thousands of fields variant B copies only those that it has', () => {
    const body = Buffer.from(JSON.stringify({ ...base, ...Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`x${String(at)}`, 1])) }));
    const copied = [jest.spyOn(Object, 'fromEntries'), jest.spyOn(Object, 'entries')];
    const result = readChatRequest(body, 'B', nameSession);
    expect(copied.map(({ mock }) => mock.calls.filter(([of]) => Object.keys(of as object).length > 1_000))).toEqual([[], []]);
    jest.restoreAllMocks();
    expect(result).toMatchObject({ kind: 'ok', request: { model: 'auto', messageCount: 1 } });
    expect(result.kind === 'ok' ? result.request.ignoredParams.length : 0).toBe(10_000);
  });

  test('variant B ignores and names fields that only variant A has, but applies privacy', () => {
    expect(requestOf({ plugins: ['nope'], min_quantization: 'x', zdr: true, data_collection: 'deny' }, 'B')).toMatchObject({ pluginIds: [], minQuantization: '', zdr: true, dataCollection: 'deny', ignoredParams: ['plugins', 'min_quantization'] });
  });

  test.each<[object, { zdr: boolean; dataCollection: string }]>([
    [{ provider: { zdr: true, data_collection: 'deny' } }, { zdr: true, dataCollection: 'deny' }], [{ zdr: false, data_collection: 'allow', provider: { zdr: true, data_collection: 'deny' } }, { zdr: true, dataCollection: 'deny' }],
    [{ zdr: true, data_collection: 'deny', provider: { zdr: false, data_collection: 'allow' } }, { zdr: true, dataCollection: 'deny' }], [{ provider: { data_collection: 'allow' } }, { zdr: false, dataCollection: 'allow' }], [{}, { zdr: false, dataCollection: '' }],
  ])('a privacy wish counts wherever it is, the stricter one first: %j', (over, wishes) => {
    for (const variant of ['A', 'B'] as const) expect(requestOf(over, variant)).toMatchObject(wishes);
  });

  test('wishes for the cache are forwarded, but keep no endpoint away', () => {
    const wishes = { prompt_cache_key: 'agent-7', cache_control: { type: 'ephemeral' } };
    for (const variant of ['A', 'B'] as const) {
      const { fields, needs, ignoredParams } = requestOf({ ...wishes, provider: { require_parameters: true } }, variant);
      expect([fields.map(({ name }) => name), needs.params, ignoredParams]).toEqual([['messages', ...Object.keys(wishes)], [], variant === 'A' ? [] : ['provider']]);
    }
    expect(requestOf({ prompt_cache_key: '', cache_control: null }).fields.map(({ name }) => name)).toEqual(['messages']);
  });

  test.each(['tools', 'response_format'])('numbers in schemas keep every digit where nulls are removed from %s', (name) => {
    const schema = '{"type":"object","properties":{"id":{"const":9007199254740993}}}';
    const value = name === 'tools' ? `[{"type":"function","function":{"name":"f","strict":null,"parameters":${schema}}}]` : `{"type":"json_schema","json_schema":{"name":"a","strict":null,"schema":${schema}}}`;
    const result = readChatRequest(Buffer.from(`{"model":"m","messages":[{"role":"user","content":"x"}],"${name}":${value}}`), 'A', nameSession);
    expect(result.kind === 'ok' ? result.request.fields.find((field) => field.name === name)?.value.toString() : result).toBe(value.replace('"strict":null,', ''));
  });

  test('preferences without a meaning here are named', () => {
    expect(requestOf({ provider: { order: ['a'], zdr: true, quantizations: ['int4'], foo: 1, max_price: { prompt: 1, request: 2 } } }).ignoredParams).toEqual(['provider.quantizations', 'provider.foo', 'provider.max_price.request']);
  });

  test('a conversation keeps its name as it grows', () => {
    const grown = requestOf({ messages: [...base.messages, { role: 'assistant', content: 'Yes?' }, { role: 'user', content: 'Bye' }] });
    expect(grown.session).toBe(requestOf({}).session);
    expect(requestOf({ messages: [{ role: 'user', content: 'Other' }] }).session).not.toBe(grown.session);
    expect(requestOf({ session_id: 's', messages: [{ role: 'user', content: 'Other' }] }).session).toContain('"s"');
  });

  test('never throws, whatever value a field has', () => {
    const odd: unknown[] = [null, 0, -1, 1.5, 1e21, '', 'x', true, [], [null], [[]], {}, [{}], { type: null }, { type: 'function' }, [{ type: 'text' }], { constructor: 1 }, { id: {} }, ['toString'], { max_price: { prompt: 0.1234567891234 } }];
    const names = ['model', 'messages', 'temperature', 'max_tokens', 'stream', 'stream_options', 'stop', 'n', 'seed', 'logit_bias', 'metadata', 'modalities', 'tools', 'tool_choice', 'response_format', 'plugins', 'plugin_options', 'provider', 'models', 'session_id', 'min_quantization', 'constructor', 'toString'];
    for (const name of names) for (const value of odd) for (const variant of ['A', 'B'] as const) expect(['ok', 'invalid']).toContain(read({ [name]: value }, variant).kind);
    for (const value of odd) expect(['ok', 'invalid']).toContain(read({ messages: [{ role: 'user', content: value }, { role: 'assistant', content: value, tool_calls: value }] }).kind);
    expect(readChatRequest(Buffer.from('{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":1e999}'), 'A', nameSession).kind).toBe('invalid');
  });
});

test.each<[object, string, string]>([
  [{ modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }, 'invalid_value', 'modalities.[1]'], [{ modalities: ['text', 1] }, 'invalid_type', 'modalities.[1]'],
  [{ logit_bias: { 5: 101 } }, 'invalid_value', 'logit_bias.5'], [{ logit_bias: { 5: '1' } }, 'invalid_type', 'logit_bias.5'], [{ metadata: { a: 'x', b: 1 } }, 'invalid_type', 'metadata.b'], [{ metadata: { a: null } }, 'invalid_type', 'metadata.a'],
])('names the wrong member in %j', (over, code, param) => {
  const result = read(over);
  expect(result.kind === 'invalid' ? [result.error.code, result.error.param] : 'ok').toEqual([code, param]);
});

test('an unknown plugin is refused with the names of the known ones', () => {
  const refused = read({ plugins: [{ id: 'web', max_results: 3 }] });
  expect(refused.kind === 'invalid' ? refused.error.message : '').toBe(`There is no plugin 'web'; known are ${KNOWN}. What it does, 'web-search' does here.`);
  const options = read({ plugin_options: { 'response-healing': {} } });
  expect(options.kind === 'invalid' ? options.error.message : '').toContain(` ${KNOWN}, json-healing. Leave it out`);
});

test('a large body is read like a small one, with other turns of the loop between scan, parser and checks', async () => {
  const turns: string[] = [];
  const readInSteps = async (text: string) => {
    turns.length = 0;
    const result = await readLargeChatRequest(Buffer.from(text), 'A', nameSession, () => {
      turns.push('turn');
      return Promise.resolve();
    });
    expect(result).toEqual(readChatRequest(Buffer.from(text), 'A', nameSession));
    return turns.length;
  };
  expect(await readInSteps(JSON.stringify({ ...base, metadata: { a: 'b' } }))).toBe(2);
  expect(await readInSteps(JSON.stringify({ ...base, temperature: 3 }))).toBe(2);
  expect(await readInSteps('{"model":"\n"}')).toBe(2);
  expect(await readInSteps('{"a":1,"a":2}')).toBe(0);
});

test('a tool choice without tools waits for plugins, and is ignored without either', () => {
  const named = { type: 'function', function: { name: 'code_exec' } };
  const request = requestOf({ plugins: ['code-exec'], tool_choice: named, parallel_tool_calls: false });
  expect(request.waitingToolFields?.map(({ name, value }) => [name, JSON.parse(value.toString('utf8'))])).toEqual([['tool_choice', named], ['parallel_tool_calls', false]]);
  expect([request.fields.map(({ name }) => name), request.needs.forcedToolChoice, request.needs.params]).toEqual([['messages'], false, []]);
  expect(requestOf({ tool_choice: 'none' }).waitingToolFields).toBeUndefined();
  expect(requestOf({ plugins: ['code-exec'], tools: [tool], tool_choice: 'required' })).toMatchObject({ needs: { forcedToolChoice: true } });
  for (const named of [{ tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } } }, { plugins: ['code-exec'], tools: [tool], tool_choice: { type: 'function', function: { name: 'code_exec' } } }]) expect(requestOf(named)).toMatchObject({ needs: { forcedToolChoice: true } });
});

test.each<[string, object, string, unknown]>([
  ['a tool', { tools: [{ type: 'function', function: { name: 'f', description: null, strict: null, parameters: { default: null, enum: [null] } } }] }, 'tools', [{ type: 'function', function: { name: 'f', parameters: { default: null, enum: [null] } } }]],
  ['a tool without parameters', { tools: [{ type: 'function', function: { name: 'f', parameters: null } }] }, 'tools', [tool]],
  ['a format', { response_format: { type: 'json_schema', json_schema: { name: 's', strict: null, description: null, schema: { default: null } } } }, 'response_format', { type: 'json_schema', json_schema: { name: 's', schema: { default: null } } }],
  ['an object without a schema', { response_format: { type: 'json_object', schema: null } }, 'response_format', { type: 'json_object' }],
  ['a format without a schema', { response_format: { type: 'text', json_schema: null } }, 'response_format', { type: 'text' }],
  ['an image', user({ type: 'image_url', image_url: { url: 'https://x/y.png', detail: null } }), 'messages', [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x/y.png' } }] }]],
  ['a file', user({ type: 'file', file: { file_data: 'x', filename: null, file_id: null } }), 'messages', [{ role: 'user', content: [{ type: 'file', file: { file_data: 'x' } }] }]],
  ['an assistant message as a client wrote it', { messages: [...base.messages, { role: 'assistant', content: null, refusal: null, audio: null, function_call: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'c1', content: 'x' }] }, 'messages', [...base.messages, { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'c1', content: 'x' }]],
])('null is absent in %s too, and is not forwarded', (_what, over, name, sent) => {
  const field = requestOf(over).fields.find((one) => one.name === name);
  expect(JSON.parse(field?.value.toString('utf8') ?? '')).toEqual(sent);
});

test('an object by a schema is sent in the form that every host takes, digit for digit', () => {
  const schema = '{"type":"object","properties":{"n":{"maximum":1.0e400}}, "type2":9007199254740993}';
  const result = readChatRequest(Buffer.from(`{"model":"auto","messages":[{"role":"user","content":"hi"}],"response_format":{"schema" : ${schema} ,"type":"json_object"}}`), 'A', nameSession);
  if (result.kind === 'invalid') throw new Error(result.error.message);
  expect(result.request.needs.responseFormat).toBe('json_schema');
  expect(result.request.fields.find(({ name }) => name === 'response_format')?.value.toString('utf8')).toBe(`{"type":"json_schema","json_schema":{"name":"answer","schema":${schema}}}`);
  const empty = requestOf({ response_format: { type: 'json_object', schema: {} } });
  expect([empty.needs.responseFormat, empty.fields.find(({ name }) => name === 'response_format')?.value.toString('utf8')]).toEqual(['json_object', '{"type":"json_object"}']);
});

const DATA = 'data:application/pdf;base64,JVBERi0=';
const spoken = (audio: unknown): object => ({ messages: [...base.messages, { role: 'assistant', content: 'Hello', audio }] });

test.each<[string, object, string | undefined]>([
  ['an uploaded file', user({ type: 'file', file: { file_id: 'file-1' } }), 'messages.[0].content.[0].file.file_id'],
  ['an id beside data', user({ type: 'file', file: { file_data: DATA, file_id: 'file-1' } }), 'messages.[0].content.[0].file.file_id'],
  ['an id in Mistral’s form', user({ type: 'file', file: { file_data: DATA }, file_id: '8f0c' }), 'messages.[0].content.[0].file_id'],
  ['an image in the cache of a server', user({ type: 'image_url', image_url: { url: 'https://x/y.png' }, uuid: 'sku-1' }), 'messages.[0].content.[0].uuid'],
  ['sound in the cache of a server', user({ type: 'input_audio', input_audio: { data: 'AA==', format: 'wav', uuid: 'sku-1' } }), 'messages.[0].content.[0].input_audio.uuid'],
  ['an earlier spoken answer', spoken({ id: 'audio_1' }), 'messages.[1].audio.id'],
  ['the first of several', { messages: [{ role: 'user', content: [{ type: 'text', text: 'Read' }, { type: 'file', file: { file_id: 'file-1' } }] }, { role: 'assistant', content: 'No', audio: { id: 'audio_1' } }] }, 'messages.[0].content.[1].file.file_id'],
  ['none in data', user({ type: 'file', file: { file_data: DATA, file_id: null, filename: 'a.pdf' } }), undefined],
  ['none for an empty id', user({ type: 'file', file: { file_data: DATA, file_id: '' } }), undefined],
  ['none in sound without an id', spoken({ transcript: 'Hello' }), undefined],
  ['none in text', { ...user({ type: 'text', text: 'file_id: file-1' }), metadata: { file_id: 'file-1' } }, undefined],
])('finds the id of something stored at a provider: %s', (_what, over, param) => {
  for (const variant of ['A', 'B'] as const) expect(requestOf(over, variant)).toMatchObject({ storedParam: param, needs: { ownCredential: param !== undefined } });
});

test('no field that names something stored at a provider is forwarded otherwise', () => {
  const names = { store: true, previous_response_id: 'resp_1', conversation: 'conv_1', prompt: { id: 'pmpt_1' }, container: 'cntr_1', audio: { voice: { id: 'voice_1' } }, web_search_options: { vector_store_ids: ['vs_1'] }, file_ids: ['file-1'], cached_content: 'cachedContents/1', cache_salt: 'x', prediction: {} };
  const { fields, ignoredParams } = requestOf(names);
  expect([fields.map(({ name }) => name), ignoredParams]).toEqual([['messages'], Object.keys(names)]);
  expect(requestOf({ modalities: ['text'] }).fields.map(({ name }) => name)).toEqual(['messages', 'modalities']);
});
