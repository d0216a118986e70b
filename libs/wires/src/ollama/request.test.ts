import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../canonical.js';
import type { FetchedMedia } from '../media.js';
import { Unsendable } from '../unsendable.js';
import { draftOllamaChat, isCallForced, type OllamaSettings } from './request.js';

const PNG = `iVBORw0KGgo${'A'.repeat(9)}`;
const HELLO = [{ role: 'user', content: 'Hi' }];
const TOOL = { type: 'function', function: { name: 'f', description: 'Does f.', parameters: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] } } };
const OTHER = { type: 'function', function: { name: 'g' } };
const SETTINGS: OllamaSettings = { keepAlive: '', contextTokensMin: 8_192 };

interface Sent {
  readonly model?: string;
  readonly stream?: boolean;
  readonly maxTokens?: number;
  readonly settings?: OllamaSettings;
  readonly fetched?: FetchedMedia;
}

const fieldsOf = (fields: Readonly<Record<string, unknown>>) => Object.entries(fields).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));

function body(fields: Readonly<Record<string, unknown>>, { model = 'llama3.3:70b', stream = false, maxTokens, settings = SETTINGS, fetched = new Map() }: Sent = {}): JsonObject {
  const input = { providerModelId: model, stream, maxTokens, temperatureMax: 0, fields: fieldsOf({ messages: HELLO, ...fields }) };
  return JSON.parse(draftOllamaChat(input, settings).body(fetched).toString()) as JsonObject;
}

const schema = (name: string, parameters: object): object => ({ type: 'object', properties: { name: { type: 'string', enum: [name] }, arguments: parameters }, required: ['name', 'arguments'] });

describe('envelope', () => {
  test('streaming is said either way, since it is the default there', () => {
    expect(body({})).toEqual({ model: 'llama3.3:70b', stream: false, messages: [{ role: 'user', content: 'Hi' }], options: { num_ctx: 8_192 } });
    expect(body({}, { stream: true })).toMatchObject({ stream: true });
  });

  test('settings go under options', () => {
    const sent = body({ temperature: 1.7, top_p: 0.5, stop: 'a', seed: 7, presence_penalty: 1, frequency_penalty: -1, logprobs: true, top_logprobs: 2, user: 'u', logit_bias: {} }, { maxTokens: 9, settings: { ...SETTINGS, keepAlive: '10m' } });
    expect(sent).toEqual({
      model: 'llama3.3:70b', stream: false, messages: [{ role: 'user', content: 'Hi' }], keep_alive: '10m', logprobs: true, top_logprobs: 2,
      options: { num_ctx: 8_192, num_predict: 9, temperature: 1.7, top_p: 0.5, stop: ['a'], seed: 7, presence_penalty: 1, frequency_penalty: -1 },
    });
  });

  test.each([
    ['a long prompt', { messages: [{ role: 'user', content: 'x'.repeat(60_000) }] }, {}, 32_768],
    ['a long answer', {}, { maxTokens: 20_000 }, 32_768],
    ['images', { messages: [{ role: 'user', content: Array.from({ length: 4 }, () => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } })) }] }, {}, 16_384],
    ['many tools', { tools: Array.from({ length: 60 }, () => ({ ...TOOL, function: { ...TOOL.function, description: 'x'.repeat(400) } })) }, {}, 16_384],
    ['a context that the operator set', {}, { settings: { ...SETTINGS, contextTokensMin: 40_000 } }, 40_000],
  ])('the context is as long as it takes: %s', (_what, fields, sent, tokens) => {
    expect(body(fields, sent)['options']).toMatchObject({ num_ctx: tokens });
  });

  test.each([
    ['llama3.3:70b', 'high', true],
    ['qwen3:32b', 'none', false],
    ['gpt-oss:20b', 'none', 'low'],
    ['gpt-oss:20b', 'high', 'high'],
    ['gpt-oss:20b', 'word', undefined],
    ['qwen3:32b', undefined, undefined],
  ])('%s with effort %s thinks %p', (model, effort, think) => {
    expect(body(effort === undefined ? {} : { reasoning_effort: effort }, { model })['think']).toBe(think);
  });
});

describe('messages', () => {
  test.each([[{ reasoning: 'Hm.' }, { thinking: 'Hm.' }], [{ reasoning: 'Hm.', reasoning_content: '' }, { thinking: 'Hm.' }], [{ reasoning: '' }, {}]])('a thought under either name comes back: %j', (told, thought) => {
    const said = { role: 'assistant', content: 'Yes.' };
    expect((body({ messages: [...HELLO, { ...said, ...told }, ...HELLO] })['messages'] as unknown[])[1]).toEqual({ ...said, ...thought });
  });

  test('calls have their arguments as an object and results the name of what was called', () => {
    const calls = [
      { id: 'a', type: 'function', function: { name: 'f', arguments: '{"n":12345678901234567890}' } },
      { id: 'b', type: 'function', function: { name: 'g', arguments: '' } },
    ];
    const messages = [{ role: 'developer', content: 'Be brief.' }, ...HELLO, { role: 'assistant', content: null, reasoning_content: 'Hm.', tool_calls: calls }, { role: 'tool', tool_call_id: 'b', content: '2' }, { role: 'tool', tool_call_id: 'a', content: '1' }];
    expect(body({ messages })['messages']).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: '', thinking: 'Hm.', tool_calls: [{ id: 'a', function: { name: 'f', arguments: { n: expect.anything() } } }, { id: 'b', function: { name: 'g', arguments: {} } }] },
      { role: 'tool', content: '2', tool_name: 'g', tool_call_id: 'b' },
      { role: 'tool', content: '1', tool_name: 'f', tool_call_id: 'a' },
    ]);
    expect(draftOllamaChat({ providerModelId: 'm', stream: false, temperatureMax: 0, fields: fieldsOf({ messages }) }, SETTINGS).body(new Map()).toString()).toContain('"arguments":{"n":12345678901234567890}');
  });

  test('images stand apart from the text, without an address', () => {
    const parts = [{ type: 'text', text: 'What' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }, { type: 'text', text: 'is it?' }, { type: 'image_url', image_url: { url: 'https://x.test/a.png' } }];
    const fetched: FetchedMedia = new Map([['https://x.test/a.png', { mediaType: 'image/png', base64: 'Zm9v' }]]);
    expect(body({ messages: [{ role: 'user', content: parts }] }, { fetched })['messages']).toEqual([{ role: 'user', content: 'What\nis it?', images: [PNG, 'Zm9v'] }]);
    expect(draftOllamaChat({ providerModelId: 'm', stream: false, temperatureMax: 0, fields: fieldsOf({ messages: [{ role: 'user', content: parts }] }) }, SETTINGS).media).toMatchObject([{ url: 'https://x.test/a.png', kind: 'image' }]);
  });

  test.each([
    [{ type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0x' } }, 'messages.[0].content.[0].file.file_data'],
    [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }, 'messages.[0].content.[0].input_audio.data'],
  ])('%j is refused by name: another endpoint may take it', (part, param) => {
    expect(() => body({ messages: [{ role: 'user', content: [part] }] })).toThrow(Unsendable);
    try {
      body({ messages: [{ role: 'user', content: [part] }] });
    } catch (error) {
      expect(error).toMatchObject({ failure: { class: 'BAD_REQUEST', publicParam: param, retryable: true } });
    }
  });
});

describe('tools and JSON', () => {
  test.each([
    ['auto', ['f', 'g'], undefined],
    [undefined, ['f', 'g'], undefined],
    ['none', undefined, undefined],
    ['required', ['f', 'g'], { anyOf: [schema('f', TOOL.function.parameters), schema('g', { type: 'object' })] }],
    [{ type: 'function', function: { name: 'f' } }, ['f'], schema('f', TOOL.function.parameters)],
  ])('choice %j', (choice, names, format) => {
    const sent = body({ tools: [TOOL, OTHER], ...(choice === undefined ? {} : { tool_choice: choice }) });
    expect((sent['tools'] as { function: { name: string } }[] | undefined)?.map((tool) => tool.function.name)).toEqual(names);
    expect(sent['format']).toEqual(format);
    expect((sent['messages'] as object[])[0]).toMatchObject(format === undefined ? { role: 'user' } : { role: 'system', content: expect.stringContaining('Call one') });
  });

  test('definitions', () => {
    expect(body({ tools: [TOOL, OTHER] })['tools']).toEqual([TOOL, { type: 'function', function: { name: 'g', description: '', parameters: { type: 'object', properties: {} } } }]);
  });

  test.each([
    [{ tool_choice: 'required' }, true],
    [{ tool_choice: { type: 'function', function: { name: 'f' } } }, true],
    [{ tool_choice: 'auto' }, false],
    [{}, false],
  ])('%j: the answer is a call that had to be made: %p', (fields, isForced) => {
    expect(isCallForced({ fields: fieldsOf({ messages: HELLO, ...fields }) })).toBe(isForced);
  });

  test.each([
    [{ type: 'json_object' }, 'json'],
    [{ type: 'json_schema', json_schema: { name: 's', schema: { type: 'array' } } }, { type: 'array' }],
    [{ type: 'text' }, undefined],
  ])('%j', (format, told) => {
    expect(body({ response_format: format })['format']).toEqual(told);
  });
});

test('a seed is sent with every digit', () => {
  const fields = [...fieldsOf({ messages: HELLO }), { name: 'seed', value: Buffer.from('9007199254740993') }];
  expect(draftOllamaChat({ providerModelId: 'm', stream: false, temperatureMax: 0, fields }, SETTINGS).body(new Map()).toString()).toContain('"seed":9007199254740993');
});
