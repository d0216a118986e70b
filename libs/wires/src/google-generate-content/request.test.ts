import { describe, expect, test } from '@jest/globals';
import type { FetchedMedia } from '../media.js';
import { Unsendable } from '../unsendable.js';
import { TOOL_NAMES } from './names.js';
import { draftGenerateContent } from './request.js';
import { readGenerateContentAnswer } from './response.js';
import { schemaBudget, toOpenApiSchema } from './schema.js';
import { createGenerateContentTransducer } from './stream.js';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const PDF = 'JVBERi0xLjQK';
const HI = [{ role: 'user', content: 'Hi' }];

interface Asked {
  readonly model?: string;
  readonly maxTokens?: number;
  readonly temperatureMax?: number;
  readonly withCallIds?: boolean;
}

function draft(fields: Readonly<Record<string, unknown>>, { model = 'gemini-3.8-flash', maxTokens, temperatureMax = 2, withCallIds = true }: Asked = {}) {
  return draftGenerateContent(
    { providerModelId: model, stream: false, maxTokens, temperatureMax, fields: Object.entries({ messages: HI, ...fields }).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) })) },
    { withCallIds },
  );
}
const compose = (fields: Readonly<Record<string, unknown>>, asked?: Asked, fetched: FetchedMedia = new Map()): Record<string, unknown> => JSON.parse(draft(fields, asked).body(fetched).toString()) as Record<string, unknown>;
const call = (id: string, name: string, args: string, more: object = {}): object => ({ id, type: 'function', function: { name, arguments: args }, ...more });
const tool = (name: string, parameters?: object, more: object = {}): object => ({ type: 'function', function: { name, ...(parameters === undefined ? {} : { parameters }), ...more } });
const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

describe('messages', () => {
  test('system and developer turns become the system instruction, wherever they stand', () => {
    expect(compose({ messages: [{ role: 'system', content: 'A' }, { role: 'user', content: 'x' }, { role: 'developer', content: [{ type: 'text', text: 'B' }] }] })).toMatchObject({
      systemInstruction: { parts: [{ text: 'A' }, { text: 'B' }] },
      contents: [{ role: 'user', parts: [{ text: 'x' }] }],
    });
  });

  test('a conversation of system turns alone is sent as a prompt', () => {
    const body = compose({ messages: [{ role: 'system', content: 'A' }] });
    expect(body).toEqual({ contents: [{ role: 'user', parts: [{ text: 'A' }] }] });
  });

  test('results in a row become one turn, in the order of the calls, with objects as they are and text as output', () => {
    const body = compose({
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: null, tool_calls: [call('c1', 'f', '{"a":1}', { extra_content: { google: { thought_signature: 'S' } } }), call('c2', 'g', '')] },
        { role: 'tool', tool_call_id: 'c2', content: 'four degrees' },
        { role: 'tool', tool_call_id: 'c1', content: '{"c":4}' },
        { role: 'user', content: 'go on' },
      ],
    });
    expect(body['contents']).toEqual([
      { role: 'user', parts: [{ text: 'x' }] },
      { role: 'model', parts: [{ functionCall: { id: 'c1', name: 'f', args: { a: 1 } }, thoughtSignature: 'S' }, { functionCall: { id: 'c2', name: 'g', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'c1', name: 'f', response: { c: 4 } } }, { functionResponse: { id: 'c2', name: 'g', response: { output: 'four degrees' } } }] },
      { role: 'user', parts: [{ text: 'go on' }] },
    ]);
  });

  test.each([
    ['gemini-3.8-flash', 'skip_thought_signature_validator'],
    ['gemini-2.5-pro', undefined],
  ])('a call whose signature did not come back: %s', (model, signature) => {
    const body = compose({ messages: [...HI, { role: 'assistant', tool_calls: [call('c1', 'f', '{}'), call('c2', 'f', '{}')] }, { role: 'tool', tool_call_id: 'c1', content: 'x' }] }, { model });
    const parts = (body['contents'] as { parts: { thoughtSignature?: string }[] }[])[1]?.parts ?? [];
    expect(parts.map((part) => part.thoughtSignature)).toEqual([signature, undefined]);
  });

  test('results stand right behind their calls, alone, and neighbouring turns of the model are one', () => {
    const body = compose({
      messages: [
        ...HI,
        { role: 'assistant', content: 'Let me see.' },
        { role: 'assistant', content: null, tool_calls: [call('c1', 'f', '{}'), call('c2', 'g', '{}')] },
        { role: 'tool', tool_call_id: 'c1', content: 'one' },
        { role: 'user', content: 'Hurry.' },
        { role: 'tool', tool_call_id: 'c2', content: 'two' },
        { role: 'assistant', content: 'So' },
        { role: 'assistant', content: ' it is.' },
        ...HI,
      ],
    }, { model: 'gemini-2.5-flash', withCallIds: false });
    expect(body['contents']).toEqual([
      { role: 'user', parts: [{ text: 'Hi' }] },
      { role: 'model', parts: [{ text: 'Let me see.' }, { functionCall: { name: 'f', args: {} } }, { functionCall: { name: 'g', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: 'one' } } }, { functionResponse: { name: 'g', response: { output: 'two' } } }] },
      { role: 'user', parts: [{ text: 'Hurry.' }] },
      { role: 'model', parts: [{ text: 'So' }, { text: ' it is.' }] },
      { role: 'user', parts: [{ text: 'Hi' }] },
    ]);
  });

  test('turns and parts that say nothing are left out', () => {
    const messages = [{ role: 'system', content: '' }, { role: 'user', content: [{ type: 'text', text: '' }, { type: 'text', text: 'a' }] }, { role: 'assistant', content: '' }, { role: 'user', content: '' }];
    expect(compose({ messages })).toEqual({ contents: [{ role: 'user', parts: [{ text: 'a' }] }] });
    expect(() => draft({ messages: [{ role: 'system', content: '' }, { role: 'user', content: '' }] }).body(new Map())).toThrow(expect.objectContaining({ failure: expect.objectContaining({ class: 'BAD_REQUEST', publicParam: 'messages', retryable: false }) }));
  });

  test('a conversation that begins with calls has someone to make them for', () => {
    const body = compose({ messages: [{ role: 'assistant', content: null, tool_calls: [call('c1', 'f', '{}')] }, { role: 'tool', tool_call_id: 'c1', content: '4' }] });
    expect(body['contents']).toMatchObject([{ role: 'user', parts: [{ text: 'Continue.' }] }, { role: 'model' }, { role: 'user' }]);
  });

  test('Vertex matches results by name alone', () => {
    const body = compose({ messages: [...HI, { role: 'assistant', tool_calls: [call('c1', 'f', '{}')] }, { role: 'tool', tool_call_id: 'c1', content: 'x' }] }, { withCallIds: false });
    expect(JSON.stringify(body)).not.toContain('c1');
    expect(JSON.stringify(body)).toContain('"functionResponse":{"name":"f"');
  });

  test('signatures of another vendor stay at home, those of a message go back with its text', () => {
    const body = compose({ messages: [...HI, { role: 'assistant', content: 'a', extra_content: { google: { thought_signature: 'T' }, other: { secret: 'O' } }, reasoning_content: 'thinking' }, ...HI] });
    expect((body['contents'] as object[])[1]).toEqual({ role: 'model', parts: [{ text: 'a', thoughtSignature: 'T' }] });
    expect(JSON.stringify(body)).not.toMatch(/secret|thinking/);
  });

  test('the older function form becomes calls and results', () => {
    const body = compose({ messages: [...HI, { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":1}' } }, { role: 'function', name: 'f', content: 'done' }] }, { model: 'gemini-2.5-flash', withCallIds: false });
    expect((body['contents'] as object[]).slice(1)).toEqual([{ role: 'model', parts: [{ functionCall: { name: 'f', args: { a: 1 } } }] }, { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: 'done' } } }] }]);
  });
});

test('numbers in calls and results keep every digit', () => {
  const body = draft({
    messages: [...HI, { role: 'assistant', tool_calls: [call('c1', 'f', '{"id":12345678901234567890}'), call('c2', 'f', '[1.10]')] }, { role: 'tool', tool_call_id: 'c1', content: '{"id":9007199254740993}' }, { role: 'tool', tool_call_id: 'c2', content: '1.10' }, { role: 'tool', tool_call_id: 'c2', content: '' }],
  }).body(new Map()).toString();
  for (const text of ['"args":{"id":12345678901234567890}', '"args":{"value":[1.10]}', '"response":{"id":9007199254740993}', '"response":{"output":1.10}', '"response":{}']) expect(body).toContain(text);
});

describe('media', () => {
  const parts = (...content: readonly object[]): object => ({ messages: [{ role: 'user', content }] });
  const image = (url: string): object => ({ type: 'image_url', image_url: { url } });

  test('data URLs go inline, sound and PDF too', () => {
    const body = compose(parts({ type: 'text', text: 'see' }, image(`data:image/png;base64,${PNG}`), { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } }, { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` } }) as Record<string, unknown>);
    expect(body['contents']).toEqual([
      { role: 'user', parts: [{ text: 'see' }, { inlineData: { mimeType: 'image/png', data: PNG } }, { inlineData: { mimeType: 'audio/mp3', data: 'AAAA' } }, { inlineData: { mimeType: 'application/pdf', data: PDF } }] },
    ]);
  });

  test('URLs are named for fetching and put in once fetched', () => {
    const asked = draft(parts(image('https://a.example/1'), image('https://a.example/1'), image('https://a.example/2')) as Record<string, unknown>);
    expect(asked.media).toEqual([
      { url: 'https://a.example/1', kind: 'image', param: 'messages.[0].content.[0].image_url.url' },
      { url: 'https://a.example/2', kind: 'image', param: 'messages.[0].content.[2].image_url.url' },
    ]);
    const media = { mediaType: 'image/png', base64: PNG };
    expect(asked.body(new Map([['https://a.example/1', media], ['https://a.example/2', media]])).toString()).toContain(`"inlineData":{"mimeType":"image/png","data":"${PNG}"}`);
    expect(() => asked.body(new Map())).toThrow(Unsendable);
  });

  test.each([
    ['an image that is a PDF', image(`data:image/png;base64,${PDF}`), 'messages.[0].content.[0].image_url.url', false],
    ['an image without its signature', image('data:image/png;base64,AAAA'), 'messages.[0].content.[0].image_url.url', false],
    ['data that is not base64', image('data:image/png;base64,!!'), 'messages.[0].content.[0].image_url.url', false],
    ['a file that is not the PDF it says', { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } }, 'messages.[0].content.[0].file.file_data', false],
    ['a file by id', { type: 'file', file: { file_id: 'file-1' } }, 'messages.[0].content.[0].file.file_id', true],
  ])('%s is refused by name', (_what, part, param, retryable) => {
    let thrown: unknown;
    try {
      draft(parts(part) as Record<string, unknown>);
    } catch (error) {
      thrown = error;
    }
    expect((thrown as Unsendable).failure).toMatchObject({ class: 'BAD_REQUEST', status: 0, publicParam: param, retryable });
  });

  test('an image with another image\'s type is sent as what it is', () => {
    expect(JSON.stringify(compose(parts(image(`data:image/jpeg;base64,${PNG}`)) as Record<string, unknown>))).toContain('"mimeType":"image/png"');
  });
});

describe('tools', () => {
  test.each([
    ['auto', 'auto', { mode: 'AUTO' }],
    ['absent', undefined, { mode: 'AUTO' }],
    ['none', 'none', { mode: 'NONE' }],
    ['required', 'required', { mode: 'ANY' }],
    ['named', { type: 'function', function: { name: 'f' } }, { mode: 'ANY', allowedFunctionNames: ['f'] }],
  ])('choice %s', (_what, choice, config) => {
    expect(compose({ tools: [tool('f', CITY, { description: 'D' })], ...(choice === undefined ? {} : { tool_choice: choice }) })).toMatchObject({
      tools: [{ functionDeclarations: [{ name: 'f', description: 'D', parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] } }] }],
      toolConfig: { functionCallingConfig: config },
    });
  });

  test('a name that begins with a digit is sent behind an underscore, everywhere, and comes back as it was', () => {
    const tools = [tool('1password__get', CITY), tool('f', CITY)];
    const body = compose({ tools, tool_choice: { type: 'function', function: { name: '1password__get' } }, messages: [...HI, { role: 'assistant', tool_calls: [call('c1', '1password__get', '{}')] }, { role: 'tool', tool_call_id: 'c1', content: 'x' }, ...HI] });
    expect(JSON.stringify(body).match(/"_?1password__get"/g)).toEqual(Array.from({ length: 4 }, () => '"_1password__get"'));
    const names = TOOL_NAMES.clientNames([{ name: 'tools', value: Buffer.from(JSON.stringify(tools)) }]);
    const answer = Buffer.from(JSON.stringify({ candidates: [{ content: { parts: [{ functionCall: { name: '_1password__get', args: {} } }, { functionCall: { name: 'f', args: {} } }] }, finishReason: 'STOP' }] }));
    const whole = readGenerateContentAnswer(answer, 'seed', names);
    const transducer = createGenerateContentTransducer('seed', names);
    const streamed = [...transducer.push(Buffer.concat([Buffer.from('data: '), answer, Buffer.from('\n\n')])), ...transducer.close()];
    for (const told of [String(whole.ok && whole.answer.choices), streamed.map((event) => (event.type === 'chunk' ? Buffer.from(event.choices).toString() : '')).join('')]) expect(told.match(/"name":"[^"]*"/g)).toEqual(['"name":"1password__get"', '"name":"f"']);
  });

  test('a name is left alone where another tool has it', () => {
    const named = (...all: readonly string[]): ReadonlyMap<string, string> => TOOL_NAMES.clientNames([{ name: 'tools', value: Buffer.from(JSON.stringify(all.map((name) => tool(name)))) }]);
    expect([...named('1', '2', '_2')]).toEqual([['_1', '1']]);
    expect([...named('f', '_1')]).toEqual([]);
    expect([...TOOL_NAMES.clientNames([])]).toEqual([]);
  });

  test('strict tools are validated', () => {
    expect(compose({ tools: [tool('f', CITY, { strict: true })] })).toMatchObject({ toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } } });
  });

  test.each([
    ['no parameters', undefined, { name: 'f' }],
    ['an empty object', { type: 'object', properties: {}, additionalProperties: false }, { name: 'f' }],
    ['what the subset cannot say', { type: 'object', properties: { n: { type: 'integer', enum: [1, 2] } } }, { name: 'f', parametersJsonSchema: { type: 'object', properties: { n: { type: 'integer', enum: [1, 2] } } } }],
  ])('%s', (_what, parameters, declaration) => {
    expect(compose({ tools: [tool('f', parameters)] })['tools']).toEqual([{ functionDeclarations: [declaration] }]);
  });
});

describe('schema', () => {
  test.each([
    ['nullable types', { type: ['string', 'null'] }, { type: 'STRING', nullable: true }],
    ['anyOf with null', { anyOf: [{ type: 'string' }, { type: 'null' }] }, { type: 'STRING', nullable: true }],
    ['anyOf', { anyOf: [{ type: 'string' }, { type: 'integer' }] }, { anyOf: [{ type: 'STRING' }, { type: 'INTEGER' }] }],
    [
      'anyOf with words of its own, which Vertex takes in its members alone',
      { title: 'Weight', description: 'In kg.', default: null, anyOf: [{ type: 'number', description: 'Exact.' }, { type: 'string' }, { type: 'null' }] },
      { anyOf: [{ type: 'NUMBER', title: 'Weight', nullable: true, description: 'In kg. Exact.' }, { type: 'STRING', title: 'Weight', nullable: true, description: 'In kg.' }] },
    ],
    ['anyOf of one, and null', { description: 'd', anyOf: [{ type: 'string', maxLength: 3 }, { type: 'null' }] }, { type: 'STRING', maxLength: 3, nullable: true, description: 'd' }],
    ['anyOf in anyOf', { anyOf: [{ anyOf: [{ type: 'string' }, { type: 'integer' }] }, { type: 'boolean' }, { type: 'null' }] }, { anyOf: [{ type: 'STRING', nullable: true }, { type: 'INTEGER', nullable: true }, { type: 'BOOLEAN', nullable: true }] }],
    ['anyOf beside the type that all have', { type: 'string', anyOf: [{ type: 'string', minLength: 1 }, { type: 'string', format: 'date-time' }] }, { anyOf: [{ type: 'STRING', minLength: 1 }, { type: 'STRING', format: 'date-time' }] }],
    ['enum and const of strings', { type: 'array', items: { type: 'string', const: 'a' } }, { type: 'ARRAY', items: { type: 'STRING', enum: ['a'] } }],
    ['references', { type: 'object', properties: { p: { $ref: '#/$defs/P', description: 'd' } }, $defs: { P: { type: 'number', minimum: 0 } } }, { type: 'OBJECT', properties: { p: { type: 'NUMBER', minimum: 0, description: 'd' } } }],
    ['formats it does not know are left out', { type: 'string', format: 'uuid' }, { type: 'STRING' }],
    ['formats it knows', { type: 'string', format: 'date-time' }, { type: 'STRING', format: 'date-time' }],
  ])('%s', (_what, schema, expected) => {
    expect(toOpenApiSchema(schema)).toEqual(expected);
  });

  test.each([
    ['anyOf beside a bound of all', { anyOf: [{ type: 'string' }, { type: 'integer' }], minLength: 2 }],
    ['anyOf beside another type', { type: 'array', items: { type: 'string' }, anyOf: [{ type: 'string' }, { type: 'integer' }] }],
    ['recursion', { $ref: '#/$defs/N', $defs: { N: { type: 'object', properties: { next: { $ref: '#/$defs/N' } } } } }],
    ['oneOf', { oneOf: [{ type: 'string' }] }],
    ['several types', { type: ['string', 'integer'] }],
    ['maps', { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } }],
    ['objects without properties', { type: 'object', properties: { a: { type: 'object' } } }],
    ['lists without items', { type: 'array' }],
    ['patterns of names', { type: 'object', properties: { a: { type: 'string' } }, patternProperties: {} }],
    ['definitions that each refer to two others, thirty deep', { $ref: '#/$defs/d0', $defs: Object.fromEntries(Array.from({ length: 31 }, (_, i) => [`d${String(i)}`, i === 30 ? { type: 'string' } : { type: 'object', properties: { a: { $ref: `#/$defs/d${String(i + 1)}` }, b: { $ref: `#/$defs/d${String(i + 1)}` } } }])) }],
    ['a long list that hundreds refer to', { type: 'object', properties: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`p${String(i)}`, { $ref: '#/$defs/long' }])), $defs: { long: { type: 'string', enum: Array.from({ length: 500 }, (_, i) => `v${String(i)}`) } } }],
    ['long words about hundreds of members', { description: 'd'.repeat(1_000), anyOf: Array.from({ length: 500 }, () => ({ type: 'string' })) }],
    ['a reference that leads nowhere', { $ref: '#/$defs/None' }],
    ['a prototype\'s name as a reference', { $ref: '#/constructor' }],
  ])('%s cannot be said', (_what, schema) => {
    expect(toOpenApiSchema(schema)).toBeUndefined();
  });
});

describe('settings', () => {
  test('each has its name, and what was not asked is not sent', () => {
    expect(compose({})).toEqual({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] });
    expect(
      compose({ temperature: 1.9, top_p: 0.5, presence_penalty: 0.1, frequency_penalty: -0.1, stop: 'END', seed: 2 ** 40 + 7, n: 2, logprobs: true, top_logprobs: 3, user: 'u', logit_bias: { 1: 2 } }, { maxTokens: 100, temperatureMax: 1.5 })['generationConfig'],
    ).toEqual({ temperature: 1.5, topP: 0.5, presencePenalty: 0.1, frequencyPenalty: -0.1, stopSequences: ['END'], seed: 7, candidateCount: 2, maxOutputTokens: 100, responseLogprobs: true, logprobs: 3 });
  });

  test('penalties stay below the two that are refused', () => {
    expect(compose({ presence_penalty: 2, frequency_penalty: -2 })['generationConfig']).toEqual({ presencePenalty: 1.99, frequencyPenalty: -2 });
  });

  const schema = { type: 'json_schema', json_schema: { name: 's', schema: CITY } };
  test.each([
    ['object mode', { response_format: { type: 'json_object' } }, 'gemini-2.5-flash', { responseMimeType: 'application/json' }],
    ['schema mode', { response_format: schema }, 'gemini-2.5-flash', { responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] } }],
    ['a schema beyond the subset', { response_format: { type: 'json_schema', json_schema: { name: 's', schema: { oneOf: [] } } } }, 'gemini-2.5-flash', { responseMimeType: 'application/json', responseJsonSchema: { oneOf: [] } }],
    ['beside tools from the third generation on', { response_format: { type: 'json_object' }, tools: [tool('f', CITY)] }, 'gemini-3.8-flash', { responseMimeType: 'application/json' }],
    ['text', { response_format: { type: 'text' } }, 'gemini-2.5-flash', undefined],
  ])('JSON: %s', (_what, fields, model, config) => {
    expect(compose(fields, { model })['generationConfig']).toEqual(config);
  });

  test('JSON beside tools is asked for in words before the third generation', () => {
    const body = compose({ response_format: schema, tools: [tool('f', CITY)] }, { model: 'gemini-2.5-flash' });
    expect(body['generationConfig']).toBeUndefined();
    expect(JSON.stringify(body['systemInstruction'])).toContain('JSON Schema');
  });

  test.each([
    ['gemini-2.5-flash', 'none', { thinkingBudget: 0 }],
    ['gemini-2.5-pro', 'none', { thinkingBudget: 128 }],
    ['gemini-2.5-flash', 'low', { thinkingBudget: 1_024, includeThoughts: true }],
    ['gemini-2.5-pro', 'high', { thinkingBudget: 24_576, includeThoughts: true }],
    ['gemini-3.5-flash-lite', 'none', { thinkingLevel: 'MINIMAL' }],
    ['gemini-3.8-flash', 'minimal', { thinkingLevel: 'LOW', includeThoughts: true }],
    ['gemini-3.1-pro-preview', 'none', { thinkingLevel: 'LOW' }],
    ['gemini-3.1-pro-preview', 'medium', { thinkingLevel: 'MEDIUM', includeThoughts: true }],
    ['gemini-3-flash-preview', 'xhigh', { thinkingLevel: 'HIGH', includeThoughts: true }],
    ['gemini-4-argon', 'high', { thinkingLevel: 'HIGH', includeThoughts: true }],
    ['gemini-3.8-flash', 'constructor', undefined],
    ['gemma-4-31b-it', 'high', undefined],
  ])('%s thinks %s', (model, effort, thinkingConfig) => {
    expect(compose({ reasoning_effort: effort }, { model })['generationConfig']).toEqual(thinkingConfig === undefined ? undefined : { thinkingConfig });
  });
});

test('tools of one request share what may be converted: those beyond it go as they came', () => {
  const $defs = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`d${String(at)}`, { type: 'object', properties: { a: { $ref: `#/$defs/d${String(at + 1)}` }, b: { $ref: `#/$defs/d${String(at + 1)}` } } }]));
  const schema = { $defs: { ...$defs, d12: { type: 'string' } }, $ref: '#/$defs/d4' };
  const budget = schemaBudget();
  const converted = Array.from({ length: 128 }, () => toOpenApiSchema(schema, budget)).filter((told) => told !== undefined);
  expect(converted.length).toBeGreaterThan(1);
  // 1,022 schemas each, of 10,000.
  expect(converted.length).toBeLessThan(10);
});

test('seeds of 64 bits that differ in the last digit stay different', () => {
  const seedOf = (text: string): unknown => {
    const fields = [{ name: 'messages', value: Buffer.from('[{"role":"user","content":"Hi"}]') }, { name: 'seed', value: Buffer.from(text) }];
    const body = draftGenerateContent({ providerModelId: 'gemini-2.5-flash', stream: false, temperatureMax: 2, fields }, { withCallIds: true }).body(new Map());
    return (JSON.parse(body.toString()) as { generationConfig: { seed: number } }).generationConfig.seed;
  };
  expect(['9007199254740992', '9007199254740993', '-1', '7'].map(seedOf)).toEqual([0, 1, -1, 7]);
});
