import { describe, expect, test } from '@jest/globals';
import { Gatherer } from '../gather.js';
import { mayUnwrap } from '../json-tool.js';
import type { FetchedMedia } from '../media.js';
import { Unsendable } from '../unsendable.js';
import { nativeSchema } from './native-schema.js';
import { ANTHROPIC, draftMessages, MINIMAX, VERTEX, type MessagesQuirks } from './request.js';
import { ADAPTIVE, body, BUDGET, call, HELLO, NEWEST, OLDER, TOOL, type Sent } from './testing/sent.js';

const HOUR_MARK = { cache_control: { type: 'ephemeral', ttl: '1h' } };
const PNG = `iVBORw0KGgo${'A'.repeat(9)}`;
const PDF = `JVBERi0x${'A'.repeat(8)}`;
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const OPEN_SCHEMA = { type: 'object', additionalProperties: { type: 'string' } };
const asSchema = (schema: object): object => ({ type: 'json_schema', json_schema: { name: 's', schema } });

const turns = (messages: readonly object[], sent: Sent = {}): unknown => body({ messages }, sent)['messages'];
const user = (...parts: readonly object[]): readonly object[] => [{ role: 'user', content: parts }];

function refusalOf(compose: () => unknown): Unsendable['failure'] {
  try {
    compose();
  } catch (error) {
    if (error instanceof Unsendable) return error.failure;
    throw error;
  }
  throw new Error('it was sent');
}

describe('envelope', () => {
  test('the wire wants a token limit: the client’s, else the model’s', () => {
    expect(body({}, { maxTokens: 5 })).toEqual({ model: OLDER, max_tokens: 5, messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] });
    expect(body({}, { stream: true })).toMatchObject({ max_tokens: 64_000, stream: true });
    // The host refuses a limit that the prompt leaves no room for, and calls the prompt too long. What a client asks for is its own.
    for (const quirks of [ANTHROPIC, MINIMAX]) expect(body({}, { quirks, promptTokens: 120_000, contextWindow: 200_000 })).toMatchObject({ max_tokens: 50_000 });
    expect(body({}, { maxTokens: 60_000, promptTokens: 120_000, contextWindow: 200_000 })).toMatchObject({ max_tokens: 60_000 });
  });

  test('Vertex has the model in its path and a version in the body', () => {
    const sent = body({}, { quirks: VERTEX });
    expect(sent).toMatchObject({ anthropic_version: 'vertex-2023-10-16' });
    expect(sent).not.toHaveProperty('model');
  });

  test('settings that the wire has are sent by its names, others are not', () => {
    const sent = body({ temperature: 1.7, top_p: 0.5, stop: ['a', ' \n'], user: 'user-1', seed: 7, logit_bias: { 5: 1 }, presence_penalty: 1, n: 1, metadata: { a: 'b' } });
    expect(sent).toMatchObject({ temperature: 1, top_p: 0.5, stop_sequences: ['a'], metadata: { user_id: 'user-1' } });
    expect(Object.keys(sent).sort()).toEqual(['max_tokens', 'messages', 'metadata', 'model', 'stop_sequences', 'temperature', 'top_p']);
  });

  test.each([['a@example.org'], ['+44 20 7946 0958'], ['x'.repeat(300)]])('the wire refuses %s as a user id: it stays here', (name) => {
    expect(body({ user: name })).not.toHaveProperty('metadata');
  });

  test.each([
    [OLDER, { temperature: 0.5, top_p: 0.9 }],
    [BUDGET, { temperature: 0.5 }],
    [ADAPTIVE, {}],
    [NEWEST, {}],
  ])('%s is sent the sampling it takes', (model, sampling) => {
    const { temperature, top_p: topP } = body({ temperature: 0.5, top_p: 0.9 }, { model });
    expect(JSON.parse(JSON.stringify({ temperature, top_p: topP }))).toEqual(sampling);
  });
});

describe('turns', () => {
  test('system and developer turns stand apart, in order, wherever they were', () => {
    const sent = body({ messages: [{ role: 'system', content: 'A' }, ...HELLO, { role: 'developer', content: [{ type: 'text', text: 'B' }, { type: 'text', text: 'C' }] }] });
    expect(sent).toMatchObject({ system: [{ type: 'text', text: 'A' }, { type: 'text', text: 'BC' }], messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] });
  });

  test('a system turn alone becomes the user’s', () => {
    expect(body({ messages: [{ role: 'system', content: 'A' }, { role: 'system', content: 'B' }] })).toMatchObject({ system: [{ text: 'A' }], messages: [{ role: 'user', content: [{ text: 'B' }] }] });
  });

  test('neighbours of one role become one message, and text without a word is left out', () => {
    expect(turns([...HELLO, { role: 'user', content: ' ' }, { role: 'user', content: 'there' }, { role: 'assistant', content: 'Yes? ' }])).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hi' }, { type: 'text', text: 'there' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Yes?' }] },
    ]);
  });

  test('results of calls are one user message, first in it, by ids that the wire takes', () => {
    const messages = [
      ...HELLO,
      { role: 'assistant', content: 'Let me see.', tool_calls: [call('a.1', 'f', '{"n":12345678901234567890}'), call('a:1', 'g', '')] },
      { role: 'tool', tool_call_id: 'a.1', content: '1' },
      { role: 'user', content: 'Well?' },
      { role: 'tool', tool_call_id: 'a:1', content: [{ type: 'text', text: '2' }] },
    ];
    expect(turns(messages)).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Let me see.' }, { type: 'tool_use', id: 'a_1', name: 'f', input: { n: expect.anything() } }, { type: 'tool_use', id: 'a_1_1', name: 'g', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a_1', content: '1' }, { type: 'tool_result', tool_use_id: 'a_1_1', content: '2' }, { type: 'text', text: 'Well?' }] },
    ]);
    const input = { providerModelId: OLDER, stream: false, maxOutputTokens: 9, temperatureMax: 0, fields: [{ name: 'messages', value: Buffer.from(JSON.stringify(messages)) }] };
    expect(draftMessages(input, ANTHROPIC).body(new Map()).toString()).toContain('"input":{"n":12345678901234567890}');
  });

  test('ids that come again are told apart, with their results: the wire refuses the second of a name', () => {
    const messages = [
      ...HELLO,
      { role: 'assistant', content: null, tool_calls: [call('call_0', 'f', '{}'), call('call_0', 'g', '{}')] },
      { role: 'tool', tool_call_id: 'call_0', content: 'of f' },
      { role: 'tool', tool_call_id: 'call_0', content: 'of g' },
      { role: 'assistant', content: null, tool_calls: [call('call_0', 'h', '{}'), call('call_1', 'f', '{}')] },
      { role: 'tool', tool_call_id: 'call_1', content: 'of f again' },
      { role: 'tool', tool_call_id: 'call_0', content: 'of h' },
    ];
    expect(turns(messages)).toMatchObject([
      {},
      { content: [{ id: 'call_0', name: 'f' }, { id: 'call_0_2', name: 'g' }] },
      { content: [{ tool_use_id: 'call_0', content: 'of f' }, { tool_use_id: 'call_0_2', content: 'of g' }] },
      { content: [{ id: 'call_0_3', name: 'h' }, { id: 'call_1', name: 'f' }] },
      { content: [{ tool_use_id: 'call_1', content: 'of f again' }, { tool_use_id: 'call_0_3', content: 'of h' }] },
    ]);
  });

  test('white space ends no prefill, whatever stands behind it', () => {
    for (const behind of [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: ' ' }]) {
      expect(turns([...HELLO, { role: 'assistant', content: 'Yes, \n' }, behind])).toMatchObject([{}, { role: 'assistant', content: [{ type: 'text', text: 'Yes,' }] }]);
    }
  });

  test.each<[string, Sent, boolean]>([
    ['claude-sonnet-4-5', {}, true],
    ['claude-haiku-4-5', {}, true],
    ['claude-sonnet-4-6', {}, false],
    ['claude-opus-4-6', { quirks: VERTEX }, false],
    ['claude-opus-4-8', {}, false],
    ['claude-fable-5-1', {}, false],
    ['MiniMax-M2', { quirks: MINIMAX }, true],
  ])('%s, behind words of the assistant, goes on with them: %#', (model, sent, takesPrefill) => {
    const said = [{ role: 'user' }, { role: 'assistant', content: [{ type: 'text', text: 'So' }] }, ...(takesPrefill ? [] : [{ role: 'user', content: [{ type: 'text', text: 'Continue.' }] }])];
    expect(turns([...HELLO, { role: 'assistant', content: 'So ' }], { model, ...sent })).toMatchObject(said);
    expect(turns([...HELLO, { role: 'assistant', content: 'So' }, ...HELLO], { model, ...sent })).toHaveLength(3);
  });

  test.each([
    ['[1]', { arguments: '[1]' }],
    ['{broken', { arguments: '{broken' }],
  ])('arguments that are no object are kept in one: %s', (args, input) => {
    expect(turns([...HELLO, { role: 'assistant', tool_calls: [call('a', 'f', args)] }])).toMatchObject([{}, { content: [{ input }] }]);
  });

  test('thinking comes back before what was said after it, another provider’s does not', () => {
    const details = [
      { type: 'reasoning.text', text: 'Hm.', signature: 's==', format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'e==', format: 'anthropic-claude-v1', index: 1 },
      { type: 'reasoning.encrypted', data: 'x', format: 'google-gemini-v1' },
      { type: 'reasoning.text', text: 'unsigned', format: 'anthropic-claude-v1' },
    ];
    expect(turns([...HELLO, { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.', reasoning_details: details }, ...HELLO])).toMatchObject([
      {},
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: 's==' }, { type: 'redacted_thinking', data: 'e==' }, { type: 'text', text: 'Yes.' }] },
      {},
    ]);
  });

  test('thinking that came in pieces goes back whole, for its signature is of all of it', () => {
    const piece = (index: number, more: object): object => ({ type: 'reasoning.text', format: 'anthropic-claude-v1', index, ...more });
    const details = [piece(0, { text: 'Let ' }), piece(0, { text: 'me.' }), piece(0, { signature: 's0==' }), piece(1, { text: 'And', signature: null }), piece(1, { text: ' so.', signature: 's1==' }), piece(1, { text: 'Cut off' })];
    expect(turns([...HELLO, { role: 'assistant', content: 'Yes.', reasoning_details: details }, ...HELLO])).toMatchObject([
      {},
      { content: [{ type: 'thinking', thinking: 'Let me.', signature: 's0==' }, { type: 'thinking', thinking: 'And so.', signature: 's1==' }, { type: 'text' }] },
      {},
    ]);
    const gatherer = new Gatherer();
    for (const detail of details) gatherer.add(Buffer.from(JSON.stringify([{ index: 0, delta: { reasoning_details: [detail] }, finish_reason: null }])));
    expect(JSON.parse(gatherer.whole().toString())).toMatchObject([{ message: { reasoning_details: [{ text: 'Let me.', signature: 's0==' }, { text: 'And so.', signature: 's1==' }, { text: 'Cut off' }] } }]);
  });

  test.each(['', ' ', '\n\t'])('a result of nothing but %j has no content: blank text is refused', (content) => {
    expect(turns([...HELLO, { role: 'assistant', tool_calls: [call('a', 'f', '{}')] }, { role: 'tool', tool_call_id: 'a', content }])).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }, { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] }]);
  });

  test('a call of the old form and its result', () => {
    expect(turns([...HELLO, { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } }, { role: 'function', name: 'f', content: '4' }])).toMatchObject([
      {},
      { content: [{ type: 'tool_use', name: 'f' }] },
      { content: [{ type: 'tool_result', content: '4' }] },
    ]);
  });

  test('marks of the prompt cache are kept, the last four', () => {
    const part = (text: string): object => ({ type: 'text', text, cache_control: { type: 'ephemeral', ttl: '1h' } });
    const sent = body({ messages: [{ role: 'system', content: [part('S')] }, ...user(part('1'), part('2'), part('3'), part('4'))] });
    expect(sent).toMatchObject({ system: [{ type: 'text', text: 'S' }] });
    expect(JSON.stringify(sent).match(/"cache_control":\{"type":"ephemeral"\}/g)).toHaveLength(4);
    expect(JSON.stringify(sent['system'])).not.toContain('cache_control');
  });

  test('a message’s own mark, as LiteLLM’s clients set it, is one on its last block', () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const sent = body({
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'A' }, { type: 'text', text: 'B' }], ...mark },
        { role: 'user', content: [{ type: 'text', text: '1' }, { type: 'text', text: '2' }], ...mark },
        { role: 'assistant', content: 'Let me see.', tool_calls: [call('a', 'f', '{}'), call('b', 'f', '{}')], ...mark },
        { role: 'tool', tool_call_id: 'a', content: '4' },
        { role: 'tool', tool_call_id: 'b', content: '5', ...mark },
      ],
      tools: [TOOL],
    });
    expect(sent).toEqual(
      expect.objectContaining({
        system: [{ type: 'text', text: 'AB', ...mark }],
        messages: [
          { role: 'user', content: [{ type: 'text', text: '1' }, { type: 'text', text: '2', ...mark }] },
          { role: 'assistant', content: [{ type: 'text', text: 'Let me see.' }, { type: 'tool_use', id: 'a', name: 'f', input: {} }, { type: 'tool_use', id: 'b', name: 'f', input: {}, ...mark }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: '4' }, { type: 'tool_result', tool_use_id: 'b', content: '5', ...mark }] },
        ],
      }),
    );
    expect(turns([...HELLO, { role: 'assistant', content: 'So', ...mark }, ...HELLO])).toMatchObject([{}, { content: [{ text: 'So', ...mark }] }, {}]);
  });

  test.each([['a string', 'Hi'], ['parts', [{ type: 'text', text: 'H' }, { type: 'text', text: 'i' }]]])('a mark of the whole request is one behind its end, where the last message is %s', (_what, content) => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const sent = body({ messages: [{ role: 'system', content: 'S' }, { role: 'user', content }], ...HOUR_MARK });
    expect(JSON.stringify(sent).match(/cache_control/g)).toHaveLength(1);
    expect((sent['messages'] as readonly { readonly content: readonly object[] }[])[0]?.content.at(-1)).toMatchObject(mark);
    expect(JSON.stringify(body({ cache_control: null }))).not.toContain('cache_control');
  });

  test.each([['beside', HOUR_MARK, {}], ['in', {}, HOUR_MARK]])('a mark %s a call’s function is one on the call', (_place, beside, inside) => {
    const told = [...HELLO, { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}', ...inside }, ...beside }] }, { role: 'tool', tool_call_id: 'a', content: '4' }];
    expect(turns(told)).toMatchObject([{}, { content: [{ type: 'tool_use', cache_control: { type: 'ephemeral' } }] }, {}]);
  });

  describe('marks of the prompt cache on tools', () => {
    const told = { cache_control: { type: 'ephemeral' } };
    const named = (name: string, more: object = {}, inside: object = {}): object => ({ type: 'function', function: { name, parameters: { type: 'object' }, ...inside }, ...more });
    const toolsOf = (tools: readonly object[], more: object = {}, quirks: MessagesQuirks = ANTHROPIC): unknown => body({ tools, ...more }, { quirks })['tools'];

    test.each<[string, object, object]>([
      ['beside the function', HOUR_MARK, {}],
      ['in the function', {}, HOUR_MARK],
      ['in both places', HOUR_MARK, HOUR_MARK],
    ])('%s are one on the tool, of five minutes', (_place, beside, inside) => {
      expect(toolsOf([named('a'), named('b', beside, inside)])).toEqual([{ name: 'a', input_schema: { type: 'object' } }, { name: 'b', input_schema: { type: 'object' }, ...told }]);
    });

    test.each([['Vertex', VERTEX], ['MiniMax', MINIMAX]])('go to %s as well', (_host, quirks) => {
      expect(toolsOf([named('a', HOUR_MARK)], {}, quirks)).toMatchObject([told]);
    });

    test('stay where no tool may be called', () => {
      expect(toolsOf([named('a', HOUR_MARK)], { tool_choice: 'none' })).toMatchObject([told]);
    });

    test('count first of the four: later ones cover what they mark', () => {
      const part = (text: string): object => ({ type: 'text', text, ...HOUR_MARK });
      const marked = (count: number): string => JSON.stringify(body({ tools: [named('a', HOUR_MARK), named('b', HOUR_MARK)], messages: [{ role: 'system', content: [part('S')] }, ...user(...['1', '2', '3'].slice(0, count).map(part))] })['tools']);
      expect(marked(2)).toBe(JSON.stringify([{ name: 'a', input_schema: { type: 'object' } }, { name: 'b', input_schema: { type: 'object' }, ...told }]));
      expect(marked(3)).not.toContain('cache_control');
      expect(JSON.stringify(body({ tools: [named('a', HOUR_MARK)], messages: [{ role: 'system', content: [part('S')] }, ...user(part('1'), part('2'), part('3'))] })).match(/"cache_control":\{"type":"ephemeral"\}/g)).toHaveLength(4);
    });

    test.each([null, 'ephemeral', true])('%j is none', (cache_control) => {
      expect(JSON.stringify(toolsOf([named('a', { cache_control })]))).not.toContain('cache_control');
    });

    test('a parameter of that name is none', () => {
      expect(toolsOf([named('a', {}, { parameters: { type: 'object', properties: { cache_control: { type: 'object' } } } })])).toEqual([{ name: 'a', input_schema: { type: 'object', properties: { cache_control: { type: 'object' } } } }]);
    });
  });

  test('a mark within the words of the system stays where it is: what follows it changes with each request', () => {
    const fixed = { type: 'text', text: 'Rules.', cache_control: { type: 'ephemeral' } };
    const says = (text: string): object => ({ type: 'text', text });
    expect(body({ messages: [{ role: 'system', content: [says('You are.'), fixed, says(' Today'), says(' is Monday.')] }, ...HELLO] })).toMatchObject({ system: [{ type: 'text', text: 'You are.Rules.', cache_control: { type: 'ephemeral' } }, { type: 'text', text: ' Today is Monday.' }] });
    expect(JSON.stringify(body({ messages: [{ role: 'system', content: [fixed, says('Monday')] }, ...HELLO] })['system'])).toBe('[{"type":"text","text":"Rules.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Monday"}]');
    expect(body({ messages: [{ role: 'system', content: [says('A'), says('B')] }, ...HELLO] })['system']).toEqual([{ type: 'text', text: 'AB' }]);
  });

  test('marks of the prompt cache are kept in answers and results, where a loop of tools has them', () => {
    const content = (text: string): object => ({ content: [{ type: 'text', text, cache_control: { type: 'ephemeral' } }] });
    expect(turns([...HELLO, { role: 'assistant', tool_calls: [call('a', 'f', '{}')], ...content('Let me see.') }, { role: 'tool', tool_call_id: 'a', ...content('4') }])).toMatchObject([
      {},
      { content: [{ type: 'text', cache_control: { type: 'ephemeral' } }, { type: 'tool_use' }] },
      { content: [{ type: 'tool_result', content: '4', cache_control: { type: 'ephemeral' } }] },
    ]);
  });
});

describe('media', () => {
  const image = (url: string): object => ({ type: 'image_url', image_url: { url } });
  const file = (data: string, filename = ''): object => ({ type: 'file', file: { file_data: data, filename } });

  test('an image in the body is sent as what it is, whatever it is called', () => {
    expect(turns(user(image(`data:image/jpeg;base64,${PNG}`)))).toEqual([{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }] }]);
  });

  test('an address is followed by the host that does so, else by us', () => {
    expect(turns(user(image('https://x.test/a.png')))).toEqual([{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } }] }]);
    const fetched: FetchedMedia = new Map([['https://x.test/a.png', { mediaType: 'image/png', base64: PNG }]]);
    expect(turns(user(image('https://x.test/a.png')), { quirks: VERTEX, fetched })).toMatchObject([{ content: [{ source: { type: 'base64', media_type: 'image/png' } }] }]);
  });

  test('only what the host does not follow is to be fetched', () => {
    const fields = [{ name: 'messages', value: Buffer.from(JSON.stringify(user(image('https://x.test/a.png'), file('http://x.test/a.pdf')))) }];
    const media = (quirks: MessagesQuirks): unknown => draftMessages({ providerModelId: OLDER, stream: false, maxOutputTokens: 0, temperatureMax: 0, fields }, quirks).media.map(({ url }) => url);
    expect([media(ANTHROPIC), media(VERTEX)]).toEqual([['http://x.test/a.pdf'], ['https://x.test/a.png', 'http://x.test/a.pdf']]);
  });

  test('PDF and text files', () => {
    expect(turns(user(file(`data:application/pdf;base64,${PDF}`, 'a.pdf'), file(`data:text/markdown;base64,${Buffer.from('# é').toString('base64')}`)))).toMatchObject([
      { content: [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF }, title: 'a.pdf' }, { type: 'document', source: { type: 'text', media_type: 'text/plain', data: '# é' } }] },
    ]);
  });

  test.each([
    ['an image format that is not known there', image('data:image/tiff;base64,AAAA'), 'messages.[0].content.[0].image_url.url', true],
    ['an archive', file('data:application/zip;base64,UEsDBAAA'), 'messages.[0].content.[0].file.file_data', true],
    ['sound', { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }, 'messages.[0].content.[0].input_audio.data', true],
    ['text that says it is an image', image('data:text/plain,hello'), 'messages.[0].content.[0].image_url.url', false],
  ])('%s is refused by name', (_what, part, param, retryable) => {
    expect(refusalOf(() => turns(user(part)))).toMatchObject({ class: 'BAD_REQUEST', publicParam: param, retryable });
  });

  test.each([
    ['a user without a word', [{ role: 'user', content: '' }]],
    ['blank space', [{ role: 'user', content: [{ type: 'text', text: ' \n' }] }, { role: 'assistant', content: '' }]],
    ['blank words of the system', [{ role: 'system', content: ' ' }]],
  ])('a conversation of nothing but %s is refused', (_what, messages) => {
    expect(refusalOf(() => turns(messages))).toMatchObject({ class: 'BAD_REQUEST', retryable: false, publicParam: 'messages', publicMessage: 'There is nothing to answer.' });
  });
});

describe('tools', () => {
  test('definitions', () => {
    expect(body({ tools: [TOOL, { type: 'function', function: { name: 'g' } }] })).toMatchObject({ tools: [{ name: 'f', description: 'Does f.', input_schema: TOOL.function.parameters }, { name: 'g', input_schema: { type: 'object' } }] });
  });

  test.each([
    ['auto', undefined, { type: 'auto' }],
    ['none', undefined, { type: 'none' }],
    ['required', undefined, { type: 'any' }],
    [{ type: 'function', function: { name: 'f' } }, undefined, { type: 'tool', name: 'f' }],
    ['auto', false, { type: 'auto', disable_parallel_tool_use: true }],
    ['required', false, { type: 'any', disable_parallel_tool_use: true }],
    [{ type: 'function', function: { name: 'f' } }, false, { type: 'tool', name: 'f', disable_parallel_tool_use: true }],
    ['none', false, { type: 'none' }],
    [undefined, true, { type: 'auto' }],
  ])('choice %j, parallel %j', (choice, parallel, told) => {
    const sent = body({ tools: [TOOL], ...(choice === undefined ? {} : { tool_choice: choice }), ...(parallel === undefined ? {} : { parallel_tool_calls: parallel }) });
    expect(sent['tool_choice'] ?? { type: 'auto' }).toEqual(told);
  });

  test('tools of earlier turns stay defined when the request names none', () => {
    const messages = [...HELLO, { role: 'assistant', tool_calls: [call('a', 'f', '{}')] }, { role: 'tool', tool_call_id: 'a', content: '1' }];
    expect(body({ messages })).toMatchObject({ tools: [{ name: 'f', input_schema: { type: 'object' } }], tool_choice: { type: 'none' } });
  });
});

describe('JSON', () => {
  test('a schema is the model’s own setting where it has one', () => {
    expect(body({ response_format: asSchema(SCHEMA) }, { model: BUDGET })).toMatchObject({ output_config: { format: { type: 'json_schema', schema: SCHEMA } } });
  });

  test.each([
    ['an older model', OLDER, SCHEMA, ANTHROPIC],
    ['a schema that cannot be said there', BUDGET, OPEN_SCHEMA, ANTHROPIC],
    ['a host without the setting', BUDGET, SCHEMA, VERTEX],
  ])('%s: a tool that must be called', (_what, model, schema, quirks) => {
    const sent = body({ response_format: asSchema(schema) }, { model, quirks });
    expect(sent).toMatchObject({ tools: [{ name: 'signalbox_json_answer', input_schema: schema }], tool_choice: { type: 'tool', name: 'signalbox_json_answer' } });
    expect(sent).not.toHaveProperty('system');
  });

  test.each([
    ['json_object', { response_format: { type: 'json_object' } }, {}],
    ['tools of the client’s own', { response_format: asSchema(SCHEMA), tools: [TOOL] }, {}],
    ['thinking, which no tool may be forced beside', { response_format: asSchema(OPEN_SCHEMA), reasoning_effort: 'high' }, { model: BUDGET }],
    ['a schema of no object', { response_format: asSchema({ type: 'array' }) }, {}],
    ['a model that cannot be forced', { response_format: asSchema(OPEN_SCHEMA) }, { model: 'claude-fable-5' }],
    ['a newer one that can stop thinking, and not be forced', { response_format: asSchema(OPEN_SCHEMA) }, { model: 'claude-sonnet-5-5' }],
    ['a host that forces no tool', { response_format: asSchema(SCHEMA) }, { quirks: MINIMAX, model: 'MiniMax-M2' }],
  ])('%s: words', (_what, fields, sent) => {
    const told = body(fields, sent);
    expect(told).toMatchObject({ system: [{ type: 'text', text: expect.stringMatching(/JSON/) }] });
    expect(told['tool_choice']).toBeUndefined();
  });

  test('only an answer that was asked for as JSON, without tools, is unwrapped', () => {
    const named = (...names: readonly string[]): boolean => mayUnwrap({ fields: names.map((name) => ({ name, value: Buffer.from('{}') })) });
    expect([named('messages'), named('response_format'), named('response_format', 'tools')]).toEqual([false, true, false]);
  });

  test.each([
    ['bounds move to the description', { type: 'object', properties: { n: { type: 'integer', minimum: 3, description: 'Count.' } } }, { type: 'object', properties: { n: { type: 'integer', description: 'Count.\n\n{minimum: 3}' } }, additionalProperties: false }],
    ['definitions', { $defs: { a: { type: 'string' } }, type: 'object', properties: { x: { $ref: '#/$defs/a' }, y: { $ref: '#/$defs/a' } } }, { $defs: { a: { type: 'string' } }, type: 'object', properties: { x: { $ref: '#/$defs/a' }, y: { $ref: '#/$defs/a' } }, additionalProperties: false }],
    ['one of', { oneOf: [{ type: 'string' }, { type: 'null' }] }, { anyOf: [{ type: 'string' }, { type: 'null' }] }],
    ['an open object', OPEN_SCHEMA, undefined],
    ['an object of anything', { type: 'object' }, undefined],
    ['a recursive definition', { $defs: { a: { type: 'array', items: { $ref: '#/$defs/a' } } }, $ref: '#/$defs/a' }, undefined],
    ['a reference to itself', { type: 'object', properties: { next: { $ref: '#' } } }, undefined],
    ['a condition', { if: { type: 'string' }, then: {} }, undefined],
    ['enums of objects', { enum: [{ a: 1 }] }, undefined],
  ])('as the model has schemas: %s', (_what, schema, told) => {
    expect(nativeSchema(schema)).toEqual(told);
  });

  test('definitions that fan out without end are judged at once', () => {
    const $defs = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`d${String(at)}`, { anyOf: [{ $ref: `#/$defs/d${String(at + 1)}` }, { $ref: `#/$defs/d${String(at + 1)}` }] }]));
    expect(nativeSchema({ $defs: { ...$defs, d60: { type: 'string' } }, $ref: '#/$defs/d0' })).toBeDefined();
  });

  test('a schema of more parts than are taken there is given up, not said', () => {
    const properties = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${String(at)}`, { type: 'string' }]));
    const all = (count: number) => ({ type: 'object', properties: properties(count), required: Object.keys(properties(count)) });
    expect(nativeSchema(all(9_000))).toBeDefined();
    expect(nativeSchema(all(11_000))).toBeUndefined();
  });

  describe('a schema that the model’s host would not compile', () => {
    const named = (count: number, of: object) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${String(at)}`, of]));
    const closed = (properties: object, required: readonly string[] = Object.keys(properties)) => ({ type: 'object', properties, required, additionalProperties: false });
    const split = (properties: (count: number) => object, count: number) => closed({ list: { type: 'array', items: properties(count - 10) }, ...named(1, properties(10)) });

    test.each<[string, (count: number) => object, number]>([
      ['properties that may be left out', (count) => closed(named(count, { type: 'string' }), []), 24],
      ['such ones in several places', (count) => split((some) => closed(named(some, { type: 'string' }), []), count), 24],
      ['unions', (count) => closed(named(count, { anyOf: [{ type: 'string' }, { type: 'integer' }] })), 16],
      ['types that may be null', (count) => closed(named(count, { type: ['string', 'null'] })), 16],
      ['unions in several places', (count) => split((some) => closed(named(some, { oneOf: [{ type: 'string' }, { type: 'null' }] })), count), 16],
    ])('%s: as many as it takes are its own setting, one more a tool that must be called', (_what, schemaOf, max) => {
      expect(body({ response_format: asSchema(schemaOf(max)) }, { model: BUDGET })).toHaveProperty('output_config.format');
      const more = body({ response_format: asSchema(schemaOf(max + 1)) }, { model: BUDGET });
      expect(more).not.toHaveProperty('output_config');
      expect(more).toMatchObject({ tools: [{ name: 'signalbox_json_answer', input_schema: schemaOf(max + 1) }] });
    });

    test('a type alone in a list is no union, and what is needed may not be left out', () => {
      expect(nativeSchema(closed(named(100, { type: ['string'] })))).toBeDefined();
    });
  });

  test('definitions that lead to one another for ever so long cannot be said, and end nothing', () => {
    const $defs = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`d${String(at)}`, { $ref: `#/$defs/d${String(at + 1)}` }]));
    expect(nativeSchema({ $defs: { ...$defs, d20000: { type: 'string' } }, $ref: '#/$defs/d0' })).toBeUndefined();
  });
});
