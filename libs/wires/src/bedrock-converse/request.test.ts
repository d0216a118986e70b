import { describe, expect, test } from '@jest/globals';
import type { ChatRequestField } from '../openai-chat/request.js';
import { Unsendable } from '../unsendable.js';
import { draftConverse, type ConverseInput } from './request.js';

const CLAUDE = 'us.anthropic.claude-sonnet-4-20250514-v1:0';
const CLAUDE_46 = 'global.anthropic.claude-opus-4-6-v1';
const CLAUDE_48 = 'global.anthropic.claude-opus-4-8';
const NOVA = 'global.amazon.nova-2-lite-v1:0';
const QWEN = 'qwen.qwen3-next-80b-a3b';
const LLAMA = 'meta.llama3-3-70b-instruct-v1:0';
const MISTRAL = 'mistral.mistral-large-3-675b-instruct';
const GPT = 'openai.gpt-5.5';

type Fields = Readonly<Record<string, unknown>>;
const raw = (fields: Fields): readonly ChatRequestField[] => Object.entries(fields).map(([name, value]) => ({ name, value: Buffer.from(typeof value === 'string' && name === 'messages' ? value : JSON.stringify(value)) }));
const draft = (fields: Fields, over: Partial<ConverseInput> = {}) => draftConverse({ providerModelId: QWEN, stream: true, temperatureMax: 1, maxOutputTokens: 0, fields: raw(fields), ...over });
const text = (fields: Fields, over: Partial<ConverseInput> = {}): string => draft(fields, over).body(new Map()).toString();
const body = (fields: Fields, over: Partial<ConverseInput> = {}): Fields => JSON.parse(text(fields, over)) as Fields;

const HI = [{ role: 'user', content: 'hi' }];
const SAID_HI = [{ role: 'user', content: [{ text: 'hi' }] }];
const tool = (name: string) => ({ type: 'function', function: { name, description: `Does ${name}.`, parameters: { properties: { city: { type: 'string' } }, required: ['city'] }, strict: true } });
const spec = (name: string) => ({ toolSpec: { name, description: `Does ${name}.`, inputSchema: { json: { properties: { city: { type: 'string' } }, required: ['city'], type: 'object' } } } });
const TOOLS = [tool('a'), tool('b')];
const SPECS = [spec('a'), spec('b')];
const call = (id: string, args = '{"city":"Oslo"}') => ({ id, type: 'function', function: { name: 'a', arguments: args } });
const use = (toolUseId: string) => ({ toolUse: { toolUseId, name: 'a', input: { city: 'Oslo' } } });
const result = (toolUseId: string, said: string) => ({ toolResult: { toolUseId, content: said === '' ? [] : [{ text: said }] } });
const PNG = 'iVBORw0KGgoAAAANSUhEUg==';
const PDF = 'JVBERi0xLjQK';

describe('turns', () => {
  const messagesOf = (messages: readonly unknown[], over: Partial<ConverseInput> = {}, more: Fields = { tools: TOOLS }): Fields => {
    const { system, messages: told } = body({ messages, ...more }, over);
    return system === undefined ? { messages: told } : { system, messages: told };
  };

  test('where Claude goes on with no words of its own, the user asks it to', () => {
    const said = [...HI, { role: 'assistant', content: 'So' }];
    const ask = { role: 'user', content: [{ text: 'Continue.' }] };
    for (const [model, asked] of [[CLAUDE, []], [CLAUDE_46, [ask]], [CLAUDE_48, [ask]], [LLAMA, []]] as const) {
      expect([model, messagesOf(said, { providerModelId: model }, {})]).toEqual([model, { messages: [...SAID_HI, { role: 'assistant', content: [{ text: 'So' }] }, ...asked] }]);
    }
  });

  test.each<[string, readonly unknown[], Fields]>([
    ['system and developer turns stand apart, wherever they come', [{ role: 'system', content: 'A' }, ...HI, { role: 'developer', content: [{ type: 'text', text: 'B' }] }], { system: [{ text: 'A' }, { text: 'B' }], messages: SAID_HI }],
    ['words of the system alone become the user’s', [{ role: 'system', content: 'A' }, { role: 'system', content: 'B' }], { system: [{ text: 'A' }], messages: [{ role: 'user', content: [{ text: 'B' }] }] }],
    ['neighbours of one role are one message', [...HI, { role: 'user', content: 'you' }], { messages: [{ role: 'user', content: [{ text: 'hi' }, { text: 'you' }] }] }],
    ['blank text is left out', [{ role: 'user', content: [{ type: 'text', text: ' ' }, { type: 'text', text: 'x' }] }], { messages: [{ role: 'user', content: [{ text: 'x' }] }] }],
    ['the user speaks first', [{ role: 'assistant', content: 'Hello.' }, ...HI], { messages: [{ role: 'user', content: [{ text: 'Continue.' }] }, { role: 'assistant', content: [{ text: 'Hello.' }] }, ...SAID_HI] }],
    ['a prefill ends without white space', [...HI, { role: 'assistant', content: 'So: \n' }], { messages: [...SAID_HI, { role: 'assistant', content: [{ text: 'So:' }] }] }],
    [
      'parallel calls, and their results first in one message, by id',
      [...HI, { role: 'assistant', content: 'Let me see.', tool_calls: [call('call_1'), call('call_2', '')] }, { role: 'tool', tool_call_id: 'call_2', content: '' }, { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: '4' }] }, { role: 'user', content: 'so?' }],
      { messages: [...SAID_HI, { role: 'assistant', content: [{ text: 'Let me see.' }, use('call_1'), { toolUse: { toolUseId: 'call_2', name: 'a', input: {} } }] }, { role: 'user', content: [result('call_2', ''), result('call_1', '4'), { text: 'so?' }] }] },
    ],
    [
      'ids of other providers are made to fit, alike for call and result',
      [...HI, { role: 'assistant', tool_calls: [call('a.b:c'), call(`x${'y'.repeat(80)}`), call(`x${'y'.repeat(70)}`)] }, { role: 'tool', tool_call_id: 'a.b:c', content: '1' }, { role: 'tool', tool_call_id: `x${'y'.repeat(70)}`, content: '2' }],
      { messages: [...SAID_HI, { role: 'assistant', content: [use('a_b_c'), use(`x${'y'.repeat(63)}`), use(`x${'y'.repeat(61)}_1`)] }, { role: 'user', content: [result('a_b_c', '1'), result(`x${'y'.repeat(61)}_1`, '2')] }] },
    ],
    [
      'arguments that are no object are kept under a name',
      [...HI, { role: 'assistant', tool_calls: [call('1', '[1]'), call('2', 'oops')] }],
      { messages: [...SAID_HI, { role: 'assistant', content: [{ toolUse: { toolUseId: '1', name: 'a', input: { arguments: '[1]' } } }, { toolUse: { toolUseId: '2', name: 'a', input: { arguments: 'oops' } } }] }] },
    ],
    ['the older function form', [...HI, { role: 'assistant', content: null, function_call: { name: 'a', arguments: '{"city":"Oslo"}' } }, { role: 'function', name: 'a', content: '4' }], { messages: [...SAID_HI, { role: 'assistant', content: [use('call_fn_1')] }, { role: 'user', content: [result('call_fn_1', '4')] }] }],
  ])('%s', (_what, messages, expected) => {
    expect(messagesOf(messages)).toEqual(expected);
  });

  test('calls of the past are told in words where the request has no tools', () => {
    const messages = [...HI, { role: 'assistant', content: null, tool_calls: [call('call_1')] }, { role: 'tool', tool_call_id: 'call_1', content: '4' }];
    const words = [...SAID_HI, { role: 'assistant', content: [{ text: '[I called the tool a with {"city":"Oslo"}]' }] }, { role: 'user', content: [{ text: '[The tool a answered: 4]' }] }];
    expect(body({ messages })).toEqual({ messages: words });
    expect(body({ messages, tools: TOOLS, tool_choice: 'none' })).toEqual({ messages: words });
  });

  test('numbers keep every digit', () => {
    expect(text({ messages: [...HI, { role: 'assistant', tool_calls: [call('1', '{"id": 12345678901234567890}')] }], tools: TOOLS })).toContain('"input":{"id": 12345678901234567890}');
  });

  test('Claude gets its own thought back, and nobody else’s', () => {
    const details = [
      { type: 'reasoning.text', text: 'Hm.', signature: 'S1', format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'R1', format: 'anthropic-claude-v1', index: 1 },
      { type: 'reasoning.text', text: 'unsigned', format: 'anthropic-claude-v1', index: 2 },
      { type: 'reasoning.encrypted', data: 'O1', format: 'openai-responses-v1', index: 3 },
    ];
    const messages = [...HI, { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.', reasoning_details: details }, ...HI];
    expect(messagesOf(messages, { providerModelId: CLAUDE })).toMatchObject({ messages: [{}, { content: [{ reasoningContent: { reasoningText: { text: 'Hm.', signature: 'S1' } } }, { reasoningContent: { redactedContent: 'R1' } }, { text: 'Yes.' }] }, {}] });
  });

  test('in the turn that is going on Claude gets thought only where it thinks, and no message of nothing else', () => {
    const details = [{ type: 'reasoning.text', text: 'Hm.', signature: 'S1', format: 'anthropic-claude-v1', index: 0 }];
    const round = (id: string, more: object = {}) => [{ role: 'assistant', content: null, tool_calls: [call(id)], ...more }, { role: 'tool', tool_call_id: id, content: '1' }];
    const messages = [...HI, { role: 'assistant', content: '', reasoning_details: details }, ...HI, ...round('a', { reasoning_details: details }), ...round('b')];
    const kinds = (more: Fields): unknown => (messagesOf(messages, { providerModelId: CLAUDE }, { tools: TOOLS, ...more })['messages'] as { content: object[] }[]).map(({ content }) => content.flatMap((block) => Object.keys(block)).join(' '));
    expect(kinds({})).toEqual(['text text', 'toolUse', 'toolResult', 'toolUse', 'toolResult']);
    expect(kinds({ reasoning_effort: 'low' })).toEqual(['text text', 'reasoningContent toolUse', 'toolResult', 'toolUse', 'toolResult']);
    const said = [...HI, { role: 'assistant', content: 'So' }];
    expect(messagesOf(said, { providerModelId: CLAUDE }, { reasoning_effort: 'low' })['messages']).toHaveLength(3);
    expect(messagesOf(said, { providerModelId: CLAUDE }, {})['messages']).toHaveLength(2);
  });

  describe.each([LLAMA, MISTRAL])('%s, which has turns of their own for calls and results', (model) => {
    const apart = (...messages: readonly object[]): unknown => messagesOf([...HI, ...messages], { providerModelId: model })['messages'];
    const ok = { role: 'assistant', content: [{ text: 'OK.' }] };
    const goOn = { role: 'user', content: [{ text: 'Continue.' }] };
    const called = { role: 'assistant', content: null, tool_calls: [call('c')] };
    const answered = { role: 'tool', tool_call_id: 'c', content: '4' };

    test('words behind results come after a word of the assistant, and calls behind words after one of the user', () => {
      expect(apart({ ...called, content: 'Let me see.' }, answered, { role: 'user', content: 'So?' })).toEqual([
        ...SAID_HI,
        { role: 'assistant', content: [{ text: 'Let me see.' }] }, goOn, { role: 'assistant', content: [use('c')] },
        { role: 'user', content: [result('c', '4')] }, ok, { role: 'user', content: [{ text: 'So?' }] },
      ]);
    });

    test('calls and results that stand alone stay as they are', () => {
      expect(apart(called, answered, { role: 'assistant', content: '4 °C.' }, { role: 'user', content: 'Thanks' })).toEqual([
        ...SAID_HI, { role: 'assistant', content: [use('c')] }, { role: 'user', content: [result('c', '4')] }, { role: 'assistant', content: [{ text: '4 °C.' }] }, { role: 'user', content: [{ text: 'Thanks' }] },
      ]);
    });

    test('a file behind results still has words beside it', () => {
      const file = { type: 'file', file: { file_data: `data:application/pdf;base64,${PDF}` } };
      expect(apart(called, answered, { role: 'user', content: [file] })).toMatchObject([{}, {}, {}, ok, { role: 'user', content: [{ document: {} }, { text: 'The file is attached.' }] }]);
    });
  });

  describe('a Claude that binds its thought to what stood before it', () => {
    const details = [{ type: 'reasoning.text', text: 'Hm.', signature: 'S1', format: 'anthropic-claude-v1', index: 0 }];
    const thought = { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'S1' } } };
    const told = (model: string, more: Fields = {}, said: object = { reasoning_details: details }): readonly unknown[] => {
      const { messages, additionalModelRequestFields: fields } = body({ messages: [...HI, { role: 'assistant', content: 'Yes.', ...said }, ...HI], ...more }, { providerModelId: model });
      return [fields, (messages as { content: object[] }[])[1]?.content];
    };

    test.each([
      ['anthropic.claude-fable-5-1', {}, {}],
      ['global.anthropic.claude-opus-5-5', { reasoning_effort: 'high' }, { display: 'summarized' }],
    ])('%s is told to leave out what does not fit, instead of refusing the conversation', (model, more, display) => {
      const [fields, content] = told(model, more);
      expect(fields).toMatchObject({ anthropic_beta: ['thinking-binding-controls-2026-08-01'], thinking: { type: 'adaptive', ...display, block_binding: { prefix_mismatch_behavior: 'drop_block' } } });
      expect(content).toEqual([thought, { text: 'Yes.' }]);
    });

    test('is sent none where it is told not to think', () => {
      expect(told('global.anthropic.claude-haiku-5-5', { reasoning_effort: 'none' })).toEqual([{ thinking: { type: 'disabled' } }, [{ text: 'Yes.' }]]);
    });

    test.each([
      ['one without thought to bind', 'anthropic.claude-fable-5-1', {}, [{ text: 'Yes.' }]],
      ['an earlier one', 'global.anthropic.claude-opus-5', { reasoning_details: details }, [thought, { text: 'Yes.' }]],
    ])('nothing is said of it to %s', (_whom, model, said, content) => {
      expect(told(model, {}, said)).toEqual([undefined, content]);
    });
  });

  test('cache points stand behind what is to be cached, the last four, and only where a model has a cache', () => {
    const part = (said: string) => ({ type: 'text', text: said, cache_control: { type: 'ephemeral' } });
    const messages = [{ role: 'system', content: [part('S')] }, { role: 'user', content: ['1', '2', '3', '4'].map(part) }];
    const point = { cachePoint: { type: 'default' } };
    expect(messagesOf(messages, { providerModelId: CLAUDE })).toEqual({ system: [{ text: 'S' }], messages: [{ role: 'user', content: ['1', '2', '3', '4'].flatMap((said) => [{ text: said }, point]) }] });
    expect(JSON.stringify(messagesOf(messages))).not.toContain('cachePoint');
  });

  test('a cache point stands behind a tool that has a mark, beside the function or in it, and counts first of the four', () => {
    const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } };
    const point = { cachePoint: { type: 'default' } };
    const named = (name: string, more: object = {}, inside: object = {}) => ({ type: 'function', function: { name, ...inside }, ...more });
    const plain = (name: string) => ({ toolSpec: { name, inputSchema: { json: { type: 'object' } } } });
    const toolsOf = (tools: readonly object[], messages: readonly object[] = HI, model = CLAUDE): unknown => body({ messages, tools }, { providerModelId: model })['toolConfig'];
    expect(toolsOf([named('a'), named('b', mark)])).toEqual({ tools: [plain('a'), plain('b'), point] });
    expect(toolsOf([named('a', {}, mark), named('b')])).toEqual({ tools: [plain('a'), point, plain('b')] });
    expect(toolsOf([named('a', { cache_control: null })])).toEqual({ tools: [plain('a')] });
    const said = (count: number) => [{ role: 'user', content: ['1', '2', '3', '4'].slice(0, count).map((text) => ({ type: 'text', text, ...mark })) }];
    expect(toolsOf([named('a', mark)], said(3))).toEqual({ tools: [plain('a'), point] });
    expect(toolsOf([named('a', mark)], said(4))).toEqual({ tools: [plain('a')] });
    expect(toolsOf([named('a', mark)], HI, MISTRAL)).toEqual({ tools: [plain('a')] });
  });

  test('a message’s own mark and a call’s are cache points behind its last block', () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const point = { cachePoint: { type: 'default' } };
    const messages = [{ role: 'system', content: 'S', ...mark }, { role: 'user', content: 'Q', ...mark }, { role: 'assistant', content: null, tool_calls: [{ ...call('c'), ...mark }] }, { role: 'tool', tool_call_id: 'c', content: '4', ...mark }];
    expect(messagesOf(messages, { providerModelId: CLAUDE })).toMatchObject({ system: [{ text: 'S' }, point], messages: [{ content: [{ text: 'Q' }, point] }, { content: [{ toolUse: {} }, point] }, { content: [{ toolResult: {} }, point] }] });
  });

  test('a mark of the whole request is a cache point behind its end', () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    expect(messagesOf(HI, { providerModelId: CLAUDE }, mark)).toEqual({ messages: [{ role: 'user', content: [{ text: 'hi' }, { cachePoint: { type: 'default' } }] }] });
    expect(messagesOf(HI, {}, mark)).toEqual({ messages: SAID_HI });
  });

  test.each(['amazon.nova-pro-v1:0', 'us.amazon.nova-2-lite-v1:0'])('%s has cache points behind words alone: behind tools, calls and results they are refused', (model) => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const point = { cachePoint: { type: 'default' } };
    const part = (text: string) => ({ type: 'text', text, ...mark });
    const messages = [{ role: 'system', content: [part('S')] }, { role: 'user', content: [part('Q')] }, { role: 'assistant', content: null, tool_calls: [call('c')] }, { role: 'tool', tool_call_id: 'c', content: [part('4')] }, { role: 'user', content: [part('And?')] }];
    expect(body({ messages, tools: [{ ...TOOLS[0], ...mark }] }, { providerModelId: model })).toMatchObject({
      toolConfig: { tools: [{ toolSpec: {} }] },
      system: [{ text: 'S' }, point],
      messages: [{ content: [{ text: 'Q' }, point] }, { content: [{ toolUse: {} }] }, { content: [{ toolResult: { content: [{ text: '4' }] } }, { text: 'And?' }, point] }],
    });
  });

  test('a cache point within the words of the system stays where it is', () => {
    const content = [{ type: 'text', text: 'Rules.', cache_control: { type: 'ephemeral' } }, { type: 'text', text: 'Monday.' }];
    expect(messagesOf([{ role: 'system', content }, ...HI], { providerModelId: CLAUDE })).toMatchObject({ system: [{ text: 'Rules.' }, { cachePoint: { type: 'default' } }, { text: 'Monday.' }] });
    expect(messagesOf([{ role: 'system', content }, ...HI])).toMatchObject({ system: [{ text: 'Rules.' }, { text: 'Monday.' }] });
  });

  test('a cache point stands behind the result that ends in one, not in it', () => {
    const messages = [...HI, { role: 'assistant', content: null, tool_calls: [call('call_1')] }, { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: '4', cache_control: { type: 'ephemeral' } }] }];
    expect((body({ messages, tools: TOOLS }, { providerModelId: CLAUDE })['messages'] as { content: unknown }[])[2]?.content).toEqual([{ toolResult: { toolUseId: 'call_1', content: [{ text: '4' }] } }, { cachePoint: { type: 'default' } }]);
  });

  test('ids that come again are told apart', () => {
    const round = (answer: string) => [{ role: 'assistant', content: null, tool_calls: [call('0')] }, { role: 'tool', tool_call_id: '0', content: answer }];
    expect(body({ messages: [...HI, ...round('1'), ...round('2')], tools: TOOLS })['messages']).toMatchObject([
      {},
      { content: [{ toolUse: { toolUseId: '0' } }] },
      { content: [{ toolResult: { toolUseId: '0', content: [{ text: '1' }] } }] },
      { content: [{ toolUse: { toolUseId: '0_2' } }] },
      { content: [{ toolResult: { toolUseId: '0_2', content: [{ text: '2' }] } }] },
    ]);
  });

  test('nothing but blanks is the client’s mistake', () => {
    expect(() => text({ messages: [{ role: 'user', content: ' ' }] })).toThrow(Unsendable);
  });
});

describe('media', () => {
  const user = (...content: readonly object[]): Fields => ({ messages: [{ role: 'user', content }] });
  const image = (url: string) => ({ type: 'image_url', image_url: { url } });
  const pdf = (filename?: string) => ({ type: 'file', file: { file_data: `data:application/pdf;base64,${PDF}`, ...(filename === undefined ? {} : { filename }) } });
  const document = (name: string) => ({ document: { format: 'pdf', name, source: { bytes: PDF } } });
  const contentOf = (fields: Fields): unknown => (body(fields)['messages'] as { content: unknown }[])[0]?.content;

  test('images by data URL, and by URL once they are fetched', () => {
    expect(contentOf(user(image(`data:image/png;base64,${PNG}`)))).toEqual([{ image: { format: 'png', source: { bytes: PNG } } }]);
    const drafted = draft(user(image('https://x.example/a.jpg')));
    expect(drafted.media).toEqual([{ url: 'https://x.example/a.jpg', kind: 'image', param: 'messages.[0].content.[0].image_url.url' }]);
    expect(drafted.body(new Map([['https://x.example/a.jpg', { mediaType: 'image/jpeg', base64: '/9j/' }]])).toString()).toContain('{"image":{"format":"jpeg","source":{"bytes":"/9j/"}}}');
  });

  test('files have names of a narrow kind, each once, and words beside them', () => {
    expect(contentOf(user(pdf('Q3 – report_v2.final.pdf'), pdf('Q3 – report_v2.final.pdf'), pdf()))).toEqual([document('Q3 report v2 final'), document('Q3 report v2 final (2)'), document('file'), { text: 'The file is attached.' }]);
    expect(contentOf(user(pdf('a.pdf'), { type: 'text', text: 'Sum it up.' }))).toEqual([document('a'), { text: 'Sum it up.' }]);
  });

  test.each([
    ['an image that was not fetched', user(image('https://x.example/a.png')), 'messages.[0].content.[0].image_url.url', false],
    ['an image of another format', user(image('data:image/avif;base64,AAAA')), 'messages.[0].content.[0].image_url.url', true],
    ['sound', user({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }), 'messages.[0].content.[0].input_audio.data', true],
    ['a file of another format', user({ type: 'file', file: { file_data: 'data:application/zip;base64,AAAA' } }), 'messages.[0].content.[0].file.file_data', true],
  ])('%s is refused by name', (_what, fields, publicParam, retryable) => {
    expect(() => text(fields)).toThrow(expect.objectContaining({ failure: expect.objectContaining({ class: 'BAD_REQUEST', publicParam, retryable }) }));
  });
});

describe('tools', () => {
  const asked = (more: Fields, providerModelId = CLAUDE): Fields => {
    const { toolConfig, additionalModelRequestFields } = body({ messages: HI, tools: TOOLS, ...more }, { providerModelId });
    return { ...(toolConfig === undefined ? {} : { toolConfig }), ...(additionalModelRequestFields === undefined ? {} : { additionalModelRequestFields }) };
  };
  const NAMED = { type: 'function', function: { name: 'b' } };

  test.each<[string, Fields, string, Fields]>([
    ['auto', { tool_choice: 'auto' }, CLAUDE, { toolConfig: { tools: SPECS } }],
    ['required', { tool_choice: 'required' }, CLAUDE, { toolConfig: { tools: SPECS, toolChoice: { any: {} } } }],
    ['named', { tool_choice: NAMED }, CLAUDE, { toolConfig: { tools: SPECS, toolChoice: { tool: { name: 'b' } } } }],
    ['named, of a maker that has no word for it', { tool_choice: NAMED }, MISTRAL, { toolConfig: { tools: [spec('b')], toolChoice: { any: {} } } }],
    ['none', { tool_choice: 'none' }, CLAUDE, {}],
    ['one at a time', { parallel_tool_calls: false }, CLAUDE, { toolConfig: { tools: SPECS }, additionalModelRequestFields: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } } }],
    ['one at a time, named', { parallel_tool_calls: false, tool_choice: NAMED }, CLAUDE, { toolConfig: { tools: SPECS }, additionalModelRequestFields: { tool_choice: { type: 'tool', name: 'b', disable_parallel_tool_use: true } } }],
    ['one at a time, of a model that has no word for it', { parallel_tool_calls: false, tool_choice: 'required' }, LLAMA, { toolConfig: { tools: SPECS, toolChoice: { any: {} } } }],
  ])('%s', (_what, more, model, expected) => {
    expect(asked(more, model)).toEqual(expected);
  });
});

describe('JSON answers', () => {
  const SCHEMA = { type: 'object', properties: { c: { type: 'number' } }, required: ['c'] };
  const format = (schema: unknown = SCHEMA) => ({ response_format: { type: 'json_schema', json_schema: { name: 'weather', description: 'Of a city.', schema } } });
  const TOOL_CONFIG = { tools: [{ toolSpec: { name: 'signalbox_json_answer', description: 'Gives the answer. Of a city.', inputSchema: { json: SCHEMA } } }], toolChoice: { tool: { name: 'signalbox_json_answer' } } };

  test.each<[string, string, Fields, Fields]>([
    ['the setting of newer Claudes', CLAUDE_46, format(), { outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema: { name: 'weather', description: 'Of a city.', schema: JSON.stringify({ ...SCHEMA, additionalProperties: false }) } } } } }],
    ['a tool that older ones must call', CLAUDE, format(), { toolConfig: TOOL_CONFIG }],
    ['a tool that Nova must call', NOVA, format(), { toolConfig: TOOL_CONFIG }],
    ['the only tool that Mistral is shown', MISTRAL, format(), { toolConfig: { ...TOOL_CONFIG, toolChoice: { any: {} } } }],
  ])('by %s', (_what, providerModelId, more, expected) => {
    expect(body({ messages: HI, ...more }, { providerModelId })).toEqual({ ...expected, messages: SAID_HI });
  });

  test.each<[string, string, Fields]>([
    ['of a model that may not take a tool', LLAMA, format()],
    ['beside tools', CLAUDE, { ...format(), tools: TOOLS }],
    ['beside thought', CLAUDE, { ...format(), reasoning_effort: 'low' }],
    ['of no schema', CLAUDE_46, { response_format: { type: 'json_object' } }],
    ['that is no object', CLAUDE, format({ type: 'array' })],
  ])('by words: %s', (_what, providerModelId, more) => {
    const { system, outputConfig, toolConfig } = body({ messages: HI, ...more }, { providerModelId, maxTokens: 4_000 });
    expect(JSON.stringify(system)).toContain('one JSON object and nothing else');
    expect(outputConfig).toBeUndefined();
    expect(JSON.stringify(toolConfig ?? {})).not.toContain('signalbox_json_answer');
  });
});

describe('settings', () => {
  const settings = (more: Fields, over: Partial<ConverseInput> = {}): Fields => {
    const { inferenceConfig, additionalModelRequestFields } = body({ messages: HI, ...more }, over);
    return { ...(inferenceConfig === undefined ? {} : { inferenceConfig }), ...(additionalModelRequestFields === undefined ? {} : { additionalModelRequestFields }) };
  };
  const inference = (config: Fields): Fields => ({ inferenceConfig: config });
  const additional = (fields: Fields): Fields => ({ additionalModelRequestFields: fields });

  test.each<[string, Fields, Partial<ConverseInput>, Fields]>([
    ['nothing told, nothing sent', {}, {}, {}],
    ['the limit', {}, { maxTokens: 7 }, inference({ maxTokens: 7 })],
    ['temperature is clamped', { temperature: 1.7, top_p: 0.5 }, {}, inference({ temperature: 1, topP: 0.5 })],
    ['stops that say something', { stop: ['a', ' ', 'b'] }, {}, inference({ stopSequences: ['a', 'b'] })],
    ['one stop', { stop: 'a' }, {}, inference({ stopSequences: ['a'] })],
    ['what has no words is left out', { seed: 1, presence_penalty: 1, frequency_penalty: 1, logit_bias: {}, user: 'u', logprobs: true }, {}, {}],
    ['Claude 4.6 takes one of both', { temperature: 0.2, top_p: 0.5 }, { providerModelId: CLAUDE_46 }, inference({ temperature: 0.2 })],
    ['Claude 4.8 takes neither', { temperature: 0.2 }, { providerModelId: CLAUDE_48 }, {}],
    ['a budget within the limit, and no sampling beside thought', { reasoning_effort: 'medium', temperature: 0.2 }, { providerModelId: CLAUDE, maxTokens: 8_000 }, { ...inference({ maxTokens: 8_000 }), ...additional({ thinking: { type: 'enabled', budget_tokens: 4_000 } }) }],
    ['a budget sends the limit it is part of', { reasoning_effort: 'low' }, { providerModelId: CLAUDE, maxOutputTokens: 64_000 }, { ...inference({ maxTokens: 64_000 }), ...additional({ thinking: { type: 'enabled', budget_tokens: 12_800 } }) }],
    ['a limit that the prompt leaves room for', { reasoning_effort: 'low' }, { providerModelId: CLAUDE, maxOutputTokens: 64_000, promptTokens: 120_000, contextWindow: 200_000 }, { ...inference({ maxTokens: 50_000 }), ...additional({ thinking: { type: 'enabled', budget_tokens: 10_000 } }) }],
    ['effort of newer Claudes', { reasoning_effort: 'high' }, { providerModelId: CLAUDE_46, maxTokens: 8_000 }, { ...inference({ maxTokens: 8_000 }), ...additional({ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }) }],
    ['no thought', { reasoning_effort: 'none', temperature: 0.2 }, { providerModelId: CLAUDE }, inference({ temperature: 0.2 })],
    ['effort of Nova', { reasoning_effort: 'low' }, { providerModelId: NOVA }, additional({ reasoningConfig: { type: 'enabled', maxReasoningEffort: 'low' } })],
    ['Nova’s highest effort takes no limit', { reasoning_effort: 'high', temperature: 0.2 }, { providerModelId: NOVA }, additional({ reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } })],
    ['and the client’s limit holds', { reasoning_effort: 'max' }, { providerModelId: NOVA, maxTokens: 9 }, { ...inference({ maxTokens: 9 }), ...additional({ reasoningConfig: { type: 'enabled', maxReasoningEffort: 'medium' } }) }],
    ['Nova without thought', { reasoning_effort: 'none' }, { providerModelId: NOVA }, additional({ reasoningConfig: { type: 'disabled' } })],
    ['effort by its own name', { reasoning_effort: 'xhigh' }, { providerModelId: GPT }, additional({ reasoning_effort: 'xhigh' })],
    ['effort of models without any', { reasoning_effort: 'high' }, {}, {}],
  ])('%s', (_what, more, over, expected) => {
    expect(settings(more, over)).toEqual(expected);
  });

  test('a profile’s geography and an ARN say nothing of the model', () => {
    for (const id of ['anthropic.claude-opus-4-6-v1', 'us-gov.anthropic.claude-opus-4-6-v1', 'arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-6-v1']) {
      expect(settings({ reasoning_effort: 'high' }, { providerModelId: id, maxTokens: 9_000 })).toMatchObject(additional({ thinking: { type: 'adaptive' } }));
    }
  });

  test.each<[string, Fields]>([
    ['anthropic/claude-opus-4.6', { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }],
    ['amazon/nova-2-lite-v1', { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'medium' } }],
    ['openai/gpt-oss-120b', { reasoning_effort: 'high' }],
  ])('of a profile that an account named itself the catalog says that it is %s', (model, fields) => {
    for (const kind of ['application-inference-profile', 'provisioned-model']) {
      const providerModelId = `arn:aws:bedrock:us-east-1:123456789012:${kind}/x2y8anthropic.z`;
      expect(settings({ reasoning_effort: 'high' }, { providerModelId, model, maxTokens: 9_000 })).toEqual({ ...inference({ maxTokens: 9_000 }), ...additional(fields) });
    }
  });
});
