import { describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { adaptFields, NO_QUIRKS, OPENAI, OPENAI_WITHOUT_BREAKPOINTS, quirksOfModel, type ChatQuirks } from './quirks.js';

type Body = Readonly<Record<string, unknown>>;

function adapt(body: Body, quirks: Partial<ChatQuirks>): Body {
  const fields = Object.entries(body).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));
  return Object.fromEntries(adaptFields(fields, { ...NO_QUIRKS, ...quirks }).map(({ name, value }) => [name, JSON.parse(Buffer.from(value).toString())]));
}

const tool = (name: string) => ({ type: 'function', function: { name, parameters: {} } });
const named = { type: 'function', function: { name: 'b' } };
const TOOLS = [tool('a'), tool('b')];
const CALLED = { id: 'c1', type: 'function', function: { name: 'a', arguments: '{}' } };
const MARK = { cache_control: { type: 'ephemeral' } };
const LONG = '“long” \\ '.repeat(20_000);
const call = (id: string) => ({ id, type: 'function', function: { name: 'a', arguments: '{}' }, extra_content: { google: {} } });

describe('quirks of hosts', () => {
  const table: readonly (readonly [string, Partial<ChatQuirks>, Body, Body])[] = [
    ['a developer turn', { developerAsSystem: true }, { messages: [{ role: 'developer', content: 'x' }] }, { messages: [{ role: 'system', content: 'x' }] }],
    ['a refused field', { dropFields: ['user'] }, { user: 'u', seed: 1 }, { seed: 1 }],
    ['a field of another name', { renameFields: { seed: 'random_seed' } }, { seed: 1 }, { random_seed: 1 }],
    ['required, said as any', { toolChoice: 'any' }, { tools: TOOLS, tool_choice: 'required' }, { tools: TOOLS, tool_choice: 'any' }],
    ['a named tool, sent alone', { toolChoice: 'any' }, { tools: TOOLS, tool_choice: named }, { tools: [tool('b')], tool_choice: 'any' }],
    ['auto, said as it is', { toolChoice: 'any' }, { tools: TOOLS, tool_choice: 'auto' }, { tools: TOOLS, tool_choice: 'auto' }],
    ['none, where only auto is known', { toolChoice: 'auto-only' }, { tools: TOOLS, tool_choice: 'none' }, {}],
    ['auto, where only auto is known', { toolChoice: 'auto-only' }, { tools: TOOLS, tool_choice: 'auto' }, { tools: TOOLS }],
    ['no choice at all', { toolChoice: 'auto-only' }, { tools: TOOLS }, { tools: TOOLS }],
    ['a name in a message', { messageFields: ['role', 'content'] }, { messages: [{ role: 'user', name: 'n', content: 'x' }] }, { messages: [{ role: 'user', content: 'n: x' }] }],
    ['what a client keeps of its own beside the first message', { messageFields: ['role', 'content'] }, { messages: [{ id: 'm1', role: 'user', content: [{ type: 'text', text: 'x' }], createdAt: '2026-11-01' }] }, { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] }],
    ['a member of the first message that parts have as well', { messageFields: ['role', 'content'] }, { messages: [{ type: 'message', role: 'user', content: 'x', data: {} }] }, { messages: [{ role: 'user', content: 'x' }] }],
    ['a member of a part that what it holds has as well', { messageFields: ['role', 'content'] }, { messages: [{ role: 'user', content: [{ type: 'text', text: 'x', data: '1' }, { type: 'image_url', image_url: { url: 'https://x', type: 'png' } }] }] }, { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'image_url', image_url: { url: 'https://x' } }] }] }],
    [
      'what a client keeps of its own in the parts of a content',
      { messageFields: ['role', 'content'] },
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'x', annotations: [], ...MARK }, { type: 'image_url', id: 'p1', image_url: { url: 'https://x', detail: 'low', format: 'image/png' } }, { type: 'file', file: { file_id: 'f', mime: '' }, file_id: 'g' }] }] },
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'image_url', image_url: { url: 'https://x', detail: 'low' } }, { type: 'file', file: { file_id: 'f' }, file_id: 'g' }] }] },
    ],
    [
      'what a client has read of a call',
      { messageFields: ['role', 'content', 'tool_calls'] },
      { messages: [{ role: 'assistant', content: null, tool_calls: [{ ...CALLED, function: { ...CALLED.function, parsed_arguments: {} } }] }] },
      { messages: [{ role: 'assistant', content: null, tool_calls: [CALLED] }] },
    ],
    [
      'the older form of a call and its result',
      { messageFields: ['role', 'content', 'tool_calls', 'tool_call_id'], namesResults: true, leavesOutMute: true },
      { messages: [{ role: 'user', content: 'x' }, { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":1}' } }, { role: 'function', name: 'f', content: '4' }, { role: 'function', name: 'f' }] },
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: null, tool_calls: [{ id: 'call_fn_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] },
          { role: 'tool', content: '4', tool_call_id: 'call_fn_1', name: 'f' },
          { role: 'tool', content: '', tool_call_id: 'call_fn_1', name: 'f' },
        ],
      },
    ],
    ['a result in the older form of a tool call', { messageFields: ['role', 'content', 'tool_calls', 'tool_call_id'] }, { messages: [{ role: 'assistant', content: null, tool_calls: [CALLED] }, { role: 'function', name: 'a', content: '4' }] }, { messages: [{ role: 'assistant', content: null, tool_calls: [CALLED] }, { role: 'tool', content: '4', tool_call_id: 'c1' }] }],
    ['the older form, where hosts take any field', {}, { messages: [{ role: 'assistant', content: null, function_call: CALLED.function }, { role: 'function', name: 'a', content: '4' }] }, { messages: [{ role: 'assistant', content: null, function_call: CALLED.function }, { role: 'function', name: 'a', content: '4' }] }],
    [
      'an answer of ours that comes back',
      { messageFields: ['role', 'content', 'tool_calls'] },
      { messages: [{ role: 'assistant', content: null, refusal: null, reasoning_content: 'r', tool_calls: [call('call_1')] }] },
      { messages: [{ role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'a', arguments: '{}' } }] }] },
    ],
    [
      'the thought and state of another maker’s model, for a host that takes neither',
      {},
      { messages: [{ role: 'user', content: 'x', reasoning: 'mine' }, { role: 'assistant', content: 'a', reasoning: 'r', reasoning_content: 'r', reasoning_details: [{ signature: 's' }], extra_content: { google: {} }, tool_calls: [call('call_1')] }] },
      { messages: [{ role: 'user', content: 'x', reasoning: 'mine' }, { role: 'assistant', content: 'a', tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'a', arguments: '{}' } }] }] },
    ],
    [
      'thought, for a host that goes on from it',
      { thoughtFields: ['reasoning_content'] },
      { messages: [{ role: 'assistant', content: 'a', reasoning_content: 'r', reasoning_details: [{ signature: 's' }] }] },
      { messages: [{ role: 'assistant', content: 'a', reasoning_content: 'r' }] },
    ],
    [
      'calls as a client put them together from a stream, with their places',
      {},
      { messages: [{ role: 'assistant', content: null, tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'a', arguments: '{"index":1}' } }] }] },
      { messages: [{ role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'a', arguments: '{"index":1}' } }] }] },
    ],
    [
      'texts in parts, for a host that wants them whole',
      { joinsTexts: true },
      {
        messages: [
          { role: 'system', content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b', cache_control: { type: 'ephemeral' } }] },
          { role: 'user', content: [{ type: 'text', text: 'c' }, { type: 'image_url', image_url: { url: 'https://x' } }] },
          { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }], tool_calls: [] },
          { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: '' }] },
          { role: 'user', name: 'n', content: [{ type: 'text', text: LONG }, { type: 'text', text: LONG }] },
        ],
      },
      {
        messages: [
          { role: 'system', content: 'a\nb' },
          { role: 'user', content: [{ type: 'text', text: 'c' }, { type: 'image_url', image_url: { url: 'https://x' } }] },
          { role: 'assistant', content: 'No.', tool_calls: [] },
          { role: 'tool', tool_call_id: 'a', content: '' },
          { role: 'user', name: 'n', content: `${LONG}\n${LONG}` },
        ],
      },
    ],
    ['texts in parts, one with a mark that the host reads', { joinsTexts: true, takesCacheMarks: true }, { messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }, { type: 'text', text: 'b' }] }] }, { messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }, { type: 'text', text: 'b' }] }] }],
    ['texts in parts, for a host that takes them', {}, { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }] }] }, { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }] }] }],
    [
      'a file, where it is a document',
      { filePart: 'document_url' },
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi' } }] }] },
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'document_url', document_url: 'data:application/pdf;base64,JVBERi', document_name: 'a.pdf' }] }] },
    ],
    [
      'marks of a cache, for a host that has none to mark',
      {},
      { messages: [{ role: 'system', content: 'x', cache_control: { type: 'ephemeral' } }, { role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] }], tools: [{ ...tool('a'), cache_control: { type: 'ephemeral' } }, { type: 'function', function: { name: 'b', parameters: { properties: { cache_control: {} } } } }] },
      { messages: [{ role: 'system', content: 'x' }, { role: 'user', content: [{ type: 'text', text: 'x' }] }], tools: [tool('a'), { type: 'function', function: { name: 'b', parameters: { properties: { cache_control: {} } } } }] },
    ],
    ['marks of a cache, for a host that reads them', { takesCacheMarks: true, developerAsSystem: true }, { messages: [{ role: 'developer', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] }] }, { messages: [{ role: 'system', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] }] }],
    [
      'marks of an hour, whose price is in no card, wherever they stand and however they are written',
      { takesCacheMarks: true },
      {
        messages: JSON.parse('[{"role":"system","content":"s","cache_control":{"type":"ephemeral","ttl":"1h"}},{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"y"}]},{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"a","arguments":"{}"},"cache_control":{"ttl":"1h"}}]},{"role":"tool","tool_call_id":"c","content":"1","cache_control":null}]') as unknown,
        tools: [{ ...tool('a'), cache_control: { type: 'ephemeral', ttl: '1h' } }, { type: 'function', function: { name: 'b', parameters: { properties: { cache_control: { ttl: '1h' } } }, cache_control: { ttl: '1h' } } }],
      },
      {
        messages: [{ role: 'system', content: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral' } }] }, { role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }, { type: 'text', text: 'y' }] }, { role: 'assistant', content: 'a', tool_calls: [{ id: 'c', type: 'function', function: { name: 'a', arguments: '{}' } }] }, { role: 'tool', tool_call_id: 'c', content: '1' }],
        tools: [{ ...tool('a'), cache_control: { type: 'ephemeral' } }, { type: 'function', function: { name: 'b', parameters: { properties: { cache_control: { ttl: '1h' } } } }, cache_control: { type: 'ephemeral' } }],
      },
    ],
    [
      'marks of whole messages, as ones on their last parts: on a result OpenRouter would never answer',
      { takesCacheMarks: true },
      {
        messages: [
          { role: 'system', content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }], ...MARK },
          { role: 'user', content: '', ...MARK },
          { role: 'assistant', content: null, tool_calls: [CALLED], ...MARK },
          { role: 'tool', tool_call_id: 'c1', content: LONG, ...MARK },
        ],
      },
      {
        messages: [
          { role: 'system', content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b', ...MARK }] },
          { role: 'user', content: '' },
          { role: 'assistant', content: null, tool_calls: [CALLED] },
          { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: LONG, ...MARK }] },
        ],
      },
    ],
    [
      'more than four marks, of which the last four count, tools before messages',
      { takesCacheMarks: true },
      { tools: [{ ...tool('a'), ...MARK }, { ...tool('b'), ...MARK }], messages: ['1', '2', '3'].map((text) => ({ role: 'user', content: [{ type: 'text', text, ...MARK }] })) },
      { tools: [tool('a'), { ...tool('b'), ...MARK }], messages: ['1', '2', '3'].map((text) => ({ role: 'user', content: [{ type: 'text', text, ...MARK }] })) },
    ],
    [
      'more than four marks in the messages alone',
      { takesCacheMarks: true },
      { messages: [{ role: 'user', content: ['1', '2', '3', '4', '5'].map((text) => ({ type: 'text', text, ...MARK })) }], tools: [{ ...tool('a'), ...MARK }] },
      { messages: [{ role: 'user', content: [{ type: 'text', text: '1' }, ...['2', '3', '4', '5'].map((text) => ({ type: 'text', text, ...MARK }))] }], tools: [tool('a')] },
    ],
    [
      'words right behind results, where the assistant must answer those first',
      { answersResults: true },
      { messages: [{ role: 'assistant', tool_calls: [] }, { role: 'tool', content: '1' }, { role: 'tool', content: '2' }, { role: 'user', content: 'x' }, { role: 'user', content: 'y' }, { role: 'tool', content: '3' }, { role: 'assistant', content: 'z' }] },
      { messages: [{ role: 'assistant', tool_calls: [] }, { role: 'tool', content: '1' }, { role: 'tool', content: '2' }, { role: 'assistant', content: 'OK.' }, { role: 'user', content: 'x' }, { role: 'user', content: 'y' }, { role: 'tool', content: '3' }, { role: 'assistant', content: 'z' }] },
    ],
    [
      'an assistant that said nothing, where that is refused',
      { leavesOutMute: true, answersResults: true },
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: '' },
          { role: 'assistant', content: [{ type: 'text', text: ' ' }], tool_calls: [] },
          { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'a', arguments: '{}' } }] },
          { role: 'tool', tool_call_id: 'a', content: '' },
          { role: 'assistant' },
          { role: 'assistant', content: null, refusal: 'No.' },
          { role: 'user', content: '' },
        ],
      },
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'a', arguments: '{}' } }] },
          { role: 'tool', tool_call_id: 'a', content: '' },
          { role: 'assistant', content: 'No.' },
          { role: 'user', content: '' },
        ],
      },
    ],
    ['nobody that said anything, where that is refused', { leavesOutMute: true }, { messages: [{ role: 'assistant', content: '' }] }, { messages: [{ role: 'assistant', content: '' }] }],
    ['the assistant last, where the user must be', { endsWithUser: true }, { messages: [{ role: 'user', content: 'x' }, { role: 'assistant', content: 'y' }] }, { messages: [{ role: 'user', content: 'x' }, { role: 'assistant', content: 'y' }, { role: 'user', content: 'Continue.' }] }],
    ['the user last, where it must be', { endsWithUser: true }, { messages: [{ role: 'assistant', content: 'y' }, { role: 'user', content: 'x' }] }, { messages: [{ role: 'assistant', content: 'y' }, { role: 'user', content: 'x' }] }],
    ['one turn, where turns alternate', { alternates: true }, { messages: [{ role: 'user', content: 'x' }] }, { messages: [{ role: 'user', content: 'x' }] }],
    [
      'neighbours of one role, where turns alternate',
      { alternates: true },
      { messages: [{ role: 'user', content: 'a' }, { role: 'user', name: 'n', content: 'b' }, { role: 'system', content: 's' }, { role: 'assistant', content: 'c' }, { role: 'assistant', content: [{ type: 'text', text: 'd' }] }, { role: 'developer', content: 't' }, { role: 'user', content: 'e' }] },
      { messages: [{ role: 'system', content: 's\n\nt' }, { role: 'user', content: 'a\n\nn: b' }, { role: 'assistant', content: 'c\n\nd' }, { role: 'user', content: 'e' }] },
    ],
    [
      'calls and their results, where turns alternate and there are no tools',
      { alternates: true, messageFields: ['role', 'content'] },
      { messages: [{ role: 'user', content: 'a' }, { role: 'assistant', content: null, tool_calls: [call('c1'), { ...call('c2'), function: { name: 'b', arguments: '' } }] }, { role: 'tool', tool_call_id: 'c2', content: '2' }, { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: '1' }] }, { role: 'user', content: 'e' }] },
      { messages: [{ role: 'user', content: 'a' }, { role: 'assistant', content: '[I called the tool a with {}]\n\n[I called the tool b with {}]' }, { role: 'user', content: '[The tool b answered: 2]\n\n[The tool a answered: 1]\n\ne' }] },
    ],
    [
      'pictures, where turns alternate',
      { alternates: true },
      { messages: [{ role: 'user', content: 'a' }, { role: 'assistant', content: null }, { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] }] },
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'image_url', image_url: { url: 'https://x' } }] }] },
    ],
    [
      'an assistant that speaks first and last, where turns alternate',
      { alternates: true },
      { messages: [{ role: 'assistant', content: 'a' }] },
      { messages: [{ role: 'user', content: 'Continue.' }, { role: 'assistant', content: 'a' }, { role: 'user', content: 'Continue.' }] },
    ],
    ['words of the system alone, where turns alternate', { alternates: true }, { messages: [{ role: 'system', content: 's' }, { role: 'developer', content: 't' }] }, { messages: [{ role: 'system', content: 's' }, { role: 'user', content: 't' }] }],
    ['effort none on a switch', { thinking: 'switch' }, { reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
    ['effort high on a switch', { thinking: 'switch' }, { reasoning_effort: 'high' }, { thinking: { type: 'enabled' }, reasoning_effort: 'high' }],
    ['effort none as a budget', { thinking: 'budget' }, { reasoning_effort: 'none' }, { enable_thinking: false }],
    ['effort low as a budget', { thinking: 'budget' }, { reasoning_effort: 'low' }, { enable_thinking: true, thinking_budget: 4_096 }],
    ['effort high as a budget', { thinking: 'budget' }, { reasoning_effort: 'high' }, { enable_thinking: true }],
    ['more stops than are taken', { stopMax: 1 }, { stop: ['a', 'b'] }, { stop: ['a'] }],
    ['one stop as a string', { stopMax: 1 }, { stop: 'a' }, { stop: 'a' }],
  ];
  test.each(table)('%s', (_name, quirks, sent, taken) => {
    expect(adapt(sent, quirks)).toEqual(taken);
  });

  test.each(['', [], [{ type: 'text', text: ' ' }]])('a conversation of nothing but %j goes as it came where turns alternate: the host says what it lacks', (content) => {
    const sent = { messages: [{ role: 'user', content }] };
    expect(adapt(sent, { alternates: true })).toEqual(sent);
  });

  test('without quirks the bytes of every field are those that came', () => {
    const fields = [{ name: 'messages', value: Buffer.from('[ {"role" : "developer"} ]') }, { name: 'stop', value: Buffer.from('["a"]') }];
    expect(adaptFields(fields, NO_QUIRKS)).toBe(fields);
  });

  test('a mark whose name is written in escapes is a plain one, too', () => {
    const fields = [{ name: 'messages', value: Buffer.from('[{"role":"user","content":[{"type":"text","text":"x","cache\\u005fcontrol":{"type":"ephemeral","ttl":"1h"}}]}]') }];
    const [adapted] = adaptFields(fields, { ...NO_QUIRKS, takesCacheMarks: true });
    expect(JSON.parse(Buffer.from(adapted?.value ?? []).toString())).toEqual([{ role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] }]);
  });

  test('a whole conversation without a thought keeps its bytes', () => {
    const fields = [{ name: 'messages', value: Buffer.from('[ {"role":"user","content":"q"}, {"role":"assistant","content":"a"} ]') }];
    expect(adaptFields(fields, NO_QUIRKS)).toBe(fields);
  });

  test.each<[string, ChatQuirks]>([['Azure', NO_QUIRKS], ['a host of open models', { ...NO_QUIRKS, joinsTexts: true }]])('what Mistral’s models refuse is kept from them at %s as well', (_host, host) => {
    const messages = (id: string, ...between: readonly object[]) => [{ role: 'user', content: 'x' }, { role: 'assistant', content: null, tool_calls: [{ ...CALLED, id }] }, { role: 'tool', tool_call_id: id, content: '1' }, ...between, { role: 'user', content: 'y' }];
    const sent = (model: string): unknown => adapt({ messages: messages('Ab3dE6gH9') }, quirksOfModel(host, 'm', model))['messages'];
    expect(sent('mistralai/mistral-large-2512')).toEqual(messages('Ab3dE6gH9', { role: 'assistant', content: 'OK.' }));
    expect(sent('meta-llama/llama-3.3-70b-instruct')).toEqual(messages('Ab3dE6gH9'));
    const { messages: told } = adapt({ messages: messages('call_of_another_model') }, quirksOfModel(host, 'm', 'mistralai/devstral-2512')) as { messages: { tool_call_id?: string; tool_calls?: { id: string }[] }[] };
    expect(told[1]?.tool_calls?.[0]?.id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(told[2]?.tool_call_id).toBe(told[1]?.tool_calls?.[0]?.id);
  });

  describe('breakpoints of OpenAI’s prompt cache', () => {
    const at = { prompt_cache_breakpoint: { mode: 'explicit' } };
    const messagesTo = (quirks: ChatQuirks, messages: readonly object[]): unknown => JSON.parse(Buffer.from(adaptFields([{ name: 'messages', value: Buffer.from(JSON.stringify(messages)) }], quirks)[0]?.value ?? []).toString()) as unknown;
    const sent = [
      { role: 'developer', content: [{ type: 'text', text: 'Rules.', ...at }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x' }, prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } }] },
      { role: 'assistant', content: [{ type: 'text', text: 'a', ...at }] },
      { role: 'user', content: [{ type: 'text', text: 'The word "prompt_cache_breakpoint".', prompt_cache_breakpoint: null }] },
    ];
    const bare = [
      { role: 'developer', content: [{ type: 'text', text: 'Rules.' }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] },
      { role: 'assistant', content: [{ type: 'text', text: 'a' }] },
      { role: 'user', content: [{ type: 'text', text: 'The word "prompt_cache_breakpoint".' }] },
    ];

    test.each(['openai/gpt-5.6-sol', 'openai/gpt-6-luna', 'openai/gpt-5.10'])('%s is sent those of the client, whose lifetime is the one with a price', (model) => {
      expect(messagesTo(quirksOfModel(OPENAI, 'm', model), sent)).toEqual([{ role: 'developer', content: [{ type: 'text', text: 'Rules.', ...at }] }, { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x' }, ...at }] }, ...bare.slice(2)]);
    });

    test.each<[string, ChatQuirks]>([
      ['an earlier model of OpenAI', quirksOfModel(OPENAI, 'gpt-5.5', 'openai/gpt-5.5')],
      ['OpenAI’s models elsewhere', quirksOfModel(OPENAI_WITHOUT_BREAKPOINTS, 'gpt-5.6-sol', 'openai/gpt-5.6-sol')],
      ['a model of another maker', quirksOfModel({ ...NO_QUIRKS, breakpointModels: /^openai/ }, 'anthropic/claude-opus-4.8', 'anthropic/claude-opus-4.8')],
      ['a host without them', NO_QUIRKS],
      ['a host that is strict', { ...NO_QUIRKS, messageFields: ['role', 'content'] }],
    ])('%s is sent none', (_whom, quirks) => {
      expect(messagesTo(quirks, sent)).toEqual(bare);
    });

    test('a lifetime is left out however the name of the breakpoint is written', () => {
      const fields = [{ name: 'messages', value: Buffer.from('[{"role":"user","content":[{"type":"text","text":"x","prompt\\u005fcache_breakpoint":{"mode":"explicit","ttl":"12h"}}]}]') }];
      expect(JSON.parse(Buffer.from(adaptFields(fields, OPENAI)[0]?.value ?? []).toString())).toEqual([{ role: 'user', content: [{ type: 'text', text: 'x', ...at }] }]);
    });

    test('texts in parts are joined where there are none', () => {
      expect(messagesTo({ ...NO_QUIRKS, joinsTexts: true }, [{ role: 'user', content: [{ type: 'text', text: 'a', ...at }, { type: 'text', text: 'b' }] }])).toEqual([{ role: 'user', content: 'a\nb' }]);
    });
  });

  describe('wishes of a whole request for the cache', () => {
    const messages = [{ role: 'system', content: 'S' }, { role: 'user', content: 'x' }];
    const told = { messages, cache_control: { type: 'ephemeral', ttl: '1h' }, prompt_cache_key: 'agent-7' };

    test.each<[string, Partial<ChatQuirks>, Body]>([
      ['a host that reads neither', {}, { messages }],
      ['a host that reads marks, on parts', { takesCacheMarks: true }, { messages: [messages[0], { role: 'user', content: [{ type: 'text', text: 'x', ...MARK }] }] }],
      ['a host that reads keys', { takesCacheKey: true }, { messages, prompt_cache_key: 'agent-7' }],
      ['a strict host', { messageFields: ['role', 'content'], dropFields: ['user'] }, { messages }],
    ])('%s', (_whom, quirks, sent) => {
      expect(adapt(told, quirks)).toEqual(sent);
    });

    test.each<[string, ChatQuirks]>([['OpenAI', quirksOfModel(OPENAI, 'gpt-5.5', 'openai/gpt-5.5')], ['its models elsewhere', OPENAI_WITHOUT_BREAKPOINTS]])('%s is sent the key', (_whom, quirks) => {
      expect(adapt(told, quirks)).toEqual({ messages, prompt_cache_key: 'agent-7' });
    });

    test('a key that OpenAI would refuse as too long is sent as its digest, always the same', () => {
      const keyOf = (key: string): unknown => adapt({ prompt_cache_key: key }, OPENAI)['prompt_cache_key'];
      expect(keyOf('k'.repeat(64))).toBe('k'.repeat(64));
      expect(keyOf('k'.repeat(65))).toMatch(/^[0-9a-f]{64}$/);
      expect([keyOf('k'.repeat(65)) === keyOf('k'.repeat(65)), keyOf('k'.repeat(65)) === keyOf('k'.repeat(66))]).toEqual([true, false]);
    });

    test('the mark counts as the last of the four that a host takes', () => {
      const part = (text: string) => ({ type: 'text', text, ...MARK });
      const sent = adapt({ messages: [{ role: 'user', content: ['1', '2', '3', '4'].map(part) }, { role: 'assistant', content: 'a' }, { role: 'user', content: '5' }], ...MARK }, { takesCacheMarks: true });
      expect(JSON.stringify(sent).match(/cache_control/g)).toHaveLength(4);
      expect(sent['messages']).toMatchObject([{ content: [{ text: '1' }, part('2'), part('3'), part('4')] }, {}, { content: [part('5')] }]);
    });
  });

  test('messages that no quirk concerns are not parsed', () => {
    const value = Buffer.from('[ {"role":"user","content":"hi"} ]');
    expect(adaptFields([{ name: 'messages', value }], { ...NO_QUIRKS, developerAsSystem: true, shortToolCallIds: true, messageFields: ['role'] })[0]?.value).toBe(value);
  });

  test.each(['"id":1', '"id": 1', '"id" : 1', '"id"\n:1', '"i\\u0064":1', '"\\\\":1'])('a member that a strict host refuses is found however it is written: %s', (member) => {
    const value = Buffer.from(`[{"role":"user","content":"x",${member}}]`);
    expect(Buffer.from(adaptFields([{ name: 'messages', value }], { ...NO_QUIRKS, messageFields: ['role', 'content'] })[0]?.value ?? []).toString()).toBe('[{"role":"user","content":"x"}]');
  });

  test.each(['{"id":1}', '{"id" : 1}', '\\"', 'a"id":'])('a text that looks like one stays as it came: %s', (text) => {
    const value = Buffer.from(`[ {"role": "user", "content": [{"type": "text", "text": ${JSON.stringify(text)}}, {"type": "image_url", "image_url": {"url": "https://x"}}]} ]`);
    expect(adaptFields([{ name: 'messages', value }], { ...NO_QUIRKS, messageFields: ['role', 'content'] })[0]?.value).toBe(value);
  });

  test('a short id is the FNV-1a of 64 bits in base 62, without a bigint for each byte of it', () => {
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    const expected = (id: string): string => {
      let hash = 0xcbf29ce484222325n;
      for (const byte of Buffer.from(id)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
      return Array.from({ length: 9 }, () => {
        const digit = digits.charAt(Number(hash % 62n));
        hash /= 62n;
        return digit;
      }).join('');
    };
    const short = (id: string): unknown => (adapt({ messages: [{ role: 'tool', tool_call_id: id, content: '' }] }, { shortToolCallIds: true }) as { readonly messages: readonly [{ readonly tool_call_id: string }] }).messages[0].tool_call_id;
    fc.assert(fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }).filter((id) => !/^[a-zA-Z0-9]{9}$/.test(id)), (id) => expect(short(id)).toBe(expected(id))));
    const bigint = jest.spyOn(globalThis, 'BigInt');
    short('x'.repeat(10_000));
    expect(bigint).not.toHaveBeenCalled();
    bigint.mockRestore();
  });

  test('short ids are nine letters or digits, alike for a call and its result, and unlike for unlike ids', () => {
    const id = fc.string({ minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(fc.uniqueArray(id, { minLength: 1, maxLength: 20 }), (ids) => {
        const { messages } = adapt({ messages: [{ role: 'assistant', tool_calls: ids.map(call) }, ...ids.map((one) => ({ role: 'tool', tool_call_id: one, content: '' }))] }, { shortToolCallIds: true });
        const [assistant, ...results] = messages as [{ tool_calls: { id: string }[] }, ...{ tool_call_id: string }[]];
        const mapped = assistant.tool_calls.map((one) => one.id);
        for (const one of mapped) expect(one).toMatch(/^[a-zA-Z0-9]{9}$/);
        expect(results.map((result) => result.tool_call_id)).toEqual(mapped);
        expect(new Set(mapped).size).toBe(ids.length);
      }),
    );
    expect(adapt({ messages: [{ role: 'tool', tool_call_id: 'Ab3dE6gH9', content: '' }] }, { shortToolCallIds: true })).toEqual({ messages: [{ role: 'tool', tool_call_id: 'Ab3dE6gH9', content: '' }] });
  });
});
