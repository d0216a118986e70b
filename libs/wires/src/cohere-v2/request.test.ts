import { describe, expect, test } from '@jest/globals';
import { Unsendable } from '../unsendable.js';
import { composeCohereChat } from './request.js';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const HI = [{ role: 'user', content: 'Hi' }];
const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

function compose(fields: Readonly<Record<string, unknown>>, maxTokens?: number): Record<string, unknown> {
  const body = composeCohereChat({ providerModelId: 'command-a-03-2025', stream: true, maxTokens, temperatureMax: 1, fields: Object.entries({ messages: HI, ...fields }).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) })) });
  return JSON.parse(body.toString()) as Record<string, unknown>;
}
const tool = (name: string, more: object = {}): object => ({ type: 'function', function: { name, parameters: CITY, ...more } });

test('what was not asked is not sent', () => {
  expect(compose({})).toEqual({ model: 'command-a-03-2025', stream: true, messages: HI });
});

test('every turn keeps its place; developer is system; results answer by id', () => {
  expect(
    compose({
      messages: [
        { role: 'developer', content: [{ type: 'text', text: 'A' }] },
        { role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'text', text: 'y' }] },
        { role: 'assistant', content: null, reasoning_content: 'private', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }, { id: 'c2', type: 'function', function: { name: 'g', arguments: '' } }] },
        { role: 'tool', tool_call_id: 'c2', content: 'four degrees' },
        { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: '{"c":4}' }] },
        { role: 'assistant', content: 'b' },
        { role: 'user', content: 'z' },
      ],
    })['messages'],
  ).toEqual([
    { role: 'system', content: 'A' },
    { role: 'user', content: 'xy' },
    { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }, { id: 'c2', type: 'function', function: { name: 'g', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: 'c2', content: 'four degrees' },
    { role: 'tool', tool_call_id: 'c1', content: '{"c":4}' },
    { role: 'assistant', content: 'b' },
    { role: 'user', content: 'z' },
  ]);
});

// vercel/ai 5794: "text content is not allowed when tool_calls are provided". Other models' answers have both.
test.each([
  ['Let me look.', { tool_plan: 'Let me look.' }],
  [' \n', {}],
  ['', {}],
])('text beside calls is their plan: %j', (content, plan) => {
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const result = { role: 'tool', tool_call_id: 'c1', content: 'four' };
  expect(compose({ messages: [...HI, { role: 'assistant', content, tool_calls: [call] }, result] })['messages']).toEqual([...HI, { role: 'assistant', ...plan, tool_calls: [call] }, result]);
});

test('turns that say nothing are left out, where others say something', () => {
  const mute = [{ role: 'assistant', content: '' }, { role: 'user', content: [{ type: 'text', text: ' ' }] }];
  expect(compose({ messages: [...HI, ...mute, ...HI] })['messages']).toEqual([...HI, ...HI]);
  expect(compose({ messages: [{ role: 'user', content: '' }] })['messages']).toEqual([{ role: 'user', content: '' }]);
});

test('images go by data URL and by URL', () => {
  const content = [{ type: 'text', text: 'see' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}`, detail: 'low' } }, { type: 'image_url', image_url: { url: 'https://a.example/1' } }];
  expect(compose({ messages: [{ role: 'user', content }] })['messages']).toEqual([{ role: 'user', content }]);
});

test.each([
  ['sound', { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } }, true],
  ['a file', { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0xLjQK' } }, true],
  ['an image that is none', { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }, false],
])('%s is refused by name', (_what, part, retryable) => {
  let thrown: unknown;
  try {
    compose({ messages: [{ role: 'user', content: [part] }] });
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(Unsendable);
  expect((thrown as Unsendable).failure).toMatchObject({ class: 'BAD_REQUEST', retryable });
  expect((thrown as Unsendable).failure.publicParam).toMatch(/^messages\.\[0\]\.content\.\[0\]\./);
});

describe('tools', () => {
  test.each([
    ['auto', 'auto', undefined, ['f', 'g']],
    ['absent', undefined, undefined, ['f', 'g']],
    ['none', 'none', 'NONE', ['f', 'g']],
    ['required', 'required', 'REQUIRED', ['f', 'g']],
    ['named', { type: 'function', function: { name: 'g' } }, 'REQUIRED', ['g']],
  ])('choice %s', (_what, choice, expected, names) => {
    const body = compose({ tools: [tool('f', { description: 'D' }), tool('g')], ...(choice === undefined ? {} : { tool_choice: choice }) });
    expect(body['tool_choice']).toBe(expected);
    expect((body['tools'] as { function: { name: string } }[]).map((offered) => offered.function.name)).toEqual(names);
  });

  test('a tool without parameters has an empty object of them; strict holds when all are strict', () => {
    expect(compose({ tools: [{ type: 'function', function: { name: 'f', strict: true } }] })).toMatchObject({ tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }], strict_tools: true });
    expect(compose({ tools: [tool('f', { strict: true }), tool('g')] })).not.toHaveProperty('strict_tools');
  });
});

describe('settings', () => {
  test('each has its name and its bounds', () => {
    expect(compose({ temperature: 1.7, top_p: 1, presence_penalty: -2, frequency_penalty: 1.5, stop: ['a', 'b'], seed: -7, logprobs: true, user: 'u', logit_bias: { 1: 2 } }, 100)).toEqual({
      model: 'command-a-03-2025', stream: true, messages: HI, temperature: 1, p: 0.99, presence_penalty: 0, frequency_penalty: 1, stop_sequences: ['a', 'b'], seed: 7, max_tokens: 100, logprobs: true,
    });
  });

  test('JSON: a schema is native, object mode says so in words too, beside tools words are all there is', () => {
    const schema = { type: 'json_schema', json_schema: { name: 's', schema: CITY } };
    expect(compose({ response_format: schema })).toMatchObject({ response_format: { type: 'json_object', json_schema: CITY }, messages: HI });
    expect(compose({ response_format: { type: 'json_object' } })).toMatchObject({ response_format: { type: 'json_object' }, messages: [{ role: 'system' }, HI[0]] });
    const beside = compose({ response_format: schema, tools: [tool('f')] });
    expect(beside).not.toHaveProperty('response_format');
    expect(JSON.stringify(beside['messages'])).toContain('JSON Schema');
    expect(compose({ response_format: { type: 'text' } })).not.toHaveProperty('response_format');
  });

  test.each([
    ['none', undefined, { type: 'disabled' }],
    ['low', undefined, { type: 'enabled', token_budget: 1_024 }],
    ['medium', 1_000, { type: 'enabled', token_budget: 500 }],
    ['high', 1_000, { type: 'enabled' }],
    ['odd', undefined, undefined],
  ])('effort %s with %p tokens', (effort, maxTokens, expected) => {
    expect(compose({ reasoning_effort: effort }, maxTokens)['thinking']).toEqual(expected);
  });
});

test.each([['9007199254740993', '9007199254740993'], ['-9223372036854775808', '9223372036854775808'], ['1e3', '1000'], ['-0', '0']])('the seed %s is sent with every digit', (seed, sent) => {
  const fields = [{ name: 'messages', value: Buffer.from(JSON.stringify(HI)) }, { name: 'seed', value: Buffer.from(seed) }];
  expect(composeCohereChat({ providerModelId: 'm', stream: false, temperatureMax: 1, fields }).toString()).toContain(`"seed":${sent}}`);
});
