import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import type { ChatQuirks } from '@signalbox/wires/openai-chat/quirks';
import { composeChatBody } from '@signalbox/wires/openai-chat/request';
import { loadWorkerOpenaiCompatibleConfig } from './config.js';
import { isConfigured, isPresetId, PRESETS, presetOf, type PresetId } from './presets.js';

interface ProviderRow {
  readonly id: string;
  readonly wire_protocol: string;
  readonly base_url: string | null;
  readonly env: readonly string[];
  readonly unsupported_params?: readonly string[];
}

const { providers } = JSON.parse(readFileSync(new URL('../../routing/catalog/providers.json', import.meta.url), 'utf8')) as { providers: readonly ProviderRow[] };
// OpenAI itself has a worker of its own.
const compatible = providers.filter(({ id, wire_protocol: wire }) => id !== 'openai' && (wire === 'openai-chat' || wire === 'mistral'));

describe('presets', () => {
  test('there is a row for each compatible provider of the catalog, and for no other', () => {
    expect(Object.keys(PRESETS).sort()).toEqual(compatible.map(({ id }) => id).sort());
  });

  test.each(compatible.map((row) => [row.id, row] as const))('%s has the address and the variables of the catalog', (id, row) => {
    if (!isPresetId(id)) throw new Error('no preset');
    const preset = presetOf(id);
    expect(preset.baseUrl).toBe(row.base_url ?? '');
    expect(preset.credentials).toEqual(row.env.filter((name) => !name.endsWith('_BASE_URL')));
    expect(preset.baseUrlVariable).toBe(`${preset.credentials[0]?.replace(/_API_KEY$/, '') ?? ''}_BASE_URL`);
  });

  test.each([
    ['groq', {}, false],
    ['groq', { GROQ_API_KEY: 'k' }, true],
    ['deepinfra', { DEEPINFRA_TOKEN: 'k' }, true],
    ['vllm', { VLLM_BASE_URL: 'http://127.0.0.1:8000/v1' }, true],
    ['vllm', {}, false],
    ['meta', { META_API_KEY: 'k' }, false],
    ['meta', { META_API_KEY: 'k', META_BASE_URL: 'https://api.example/v1' }, true],
  ] as const)('%s under %j is configured: %s', (id, environment, expected) => {
    expect(isConfigured(presetOf(id), environment)).toBe(expected);
  });

  test('a host without a fixed address requires one, by the variable’s name', () => {
    expect(() => loadWorkerOpenaiCompatibleConfig({ PROVIDER: 'meta', META_API_KEY: 'k' })).toThrow(/META_BASE_URL/);
  });

  // Fields that a strict host would answer 400 to, beside what it takes.
  const SENT = {
    messages: [{ role: 'developer', name: 'boss', content: 'x' }],
    logprobs: true,
    top_logprobs: 2,
    logit_bias: { 1: 2 },
    presence_penalty: 1,
    user: 'u',
    seed: 7,
    n: 2,
    stop: ['a', 'b'],
    metadata: {},
    service_tier: 'auto',
    verbosity: 'low',
    modalities: ['text'],
    top_p: 0.5,
    tools: [{ type: 'function', function: { name: 'f' } }],
    tool_choice: 'none',
    reasoning_effort: 'none',
  };
  const bodyFor = (id: keyof typeof PRESETS): Readonly<Record<string, unknown>> => {
    const fields = Object.entries(SENT).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));
    return JSON.parse(composeChatBody({ providerModelId: 'm', stream: true, maxTokens: 5, maxTokensParam: '', temperatureMax: 0, fields }, presetOf(id).quirks).toString()) as Record<string, unknown>;
  };
  const FULL = { model: 'm', stream: true, stream_options: { include_usage: true }, max_tokens: 5, ...SENT, messages: [{ role: 'system', name: 'boss', content: 'x' }] };
  const without = (source: object, ...names: readonly string[]) => Object.fromEntries(Object.entries(source).filter(([name]) => !names.includes(name)));
  const PLATFORM = ['service_tier', 'metadata', 'verbosity', 'modalities'];
  const nameless = { messages: [{ role: 'system', content: 'x' }] };

  test.each<[keyof typeof PRESETS, object]>([
    ['alibaba', { ...without(FULL, ...PLATFORM, 'logit_bias', 'user', 'reasoning_effort'), enable_thinking: false }],
    ['baseten', FULL],
    ['cerebras', without(FULL, ...PLATFORM, 'presence_penalty', 'logit_bias')],
    ['deepinfra', FULL],
    ['deepseek', { ...without(FULL, 'reasoning_effort'), thinking: { type: 'disabled' } }],
    ['fireworks', FULL],
    ['groq', { ...without(FULL, 'logprobs', 'top_logprobs', 'logit_bias', 'metadata', 'verbosity', 'modalities'), ...nameless }],
    ['meta', FULL],
    ['mistral', { ...without(FULL, ...PLATFORM, 'stream_options', 'logprobs', 'top_logprobs', 'logit_bias', 'user', 'seed'), messages: [{ role: 'system', content: 'x' }], random_seed: 7 }],
    ['moonshot', { ...without(FULL, ...PLATFORM, 'reasoning_effort'), thinking: { type: 'disabled' } }],
    ['nebius', FULL],
    ['novita', FULL],
    // It would shorten a conversation that is too long for a small model, and say nothing.
    ['openrouter', { ...FULL, plugins: [{ id: 'context-compression', enabled: false }] }],
    ['perplexity', { ...without(FULL, ...PLATFORM, 'stream_options', 'logprobs', 'top_logprobs', 'logit_bias', 'stop', 'seed', 'n', 'user', 'tools', 'tool_choice'), messages: [{ role: 'user', content: 'x' }] }],
    ['together', without(FULL, 'logprobs', 'top_logprobs')],
    ['vllm', FULL],
    ['xai', without(FULL, ...PLATFORM, 'presence_penalty', 'logit_bias')],
    ['xiaomi', { ...without(FULL, ...PLATFORM, 'logprobs', 'top_logprobs', 'logit_bias', 'reasoning_effort'), thinking: { type: 'disabled' } }],
    ['zai', { ...without(FULL, ...PLATFORM, 'stream_options', 'logprobs', 'top_logprobs', 'logit_bias', 'presence_penalty', 'seed', 'n', 'user', 'tools', 'tool_choice', 'reasoning_effort'), stop: ['a'], user_id: 'u', thinking: { type: 'disabled' } }],
  ])('%s is sent what it takes', (id, expected) => {
    expect(bodyFor(id)).toEqual(expected);
  });

  test.each<[string, boolean, string | undefined, object]>([
    ['qwen3-32b', false, undefined, { enable_thinking: false }],
    ['qwen3-30b-a3b', false, 'high', { enable_thinking: false }],
    ['qwen3-32b', false, 'none', { enable_thinking: false }],
    ['qwen3-32b', true, undefined, {}],
    ['qwen3-32b', true, 'low', { enable_thinking: true, thinking_budget: 4_096 }],
    ['qwen3.7-plus', false, 'high', { enable_thinking: true }],
    ['qwen3.7-plus', false, undefined, {}],
    ['qwen3-30b-a3b-instruct-2507', false, undefined, {}],
  ])('alibaba’s %s, streamed: %s, asked for the effort %s, is told %j', (providerModelId, stream, effort, told) => {
    const fields = effort === undefined ? [] : [{ name: 'reasoning_effort', value: Buffer.from(JSON.stringify(effort)) }];
    const { model: _model, stream: _stream, stream_options: _options, ...rest } = JSON.parse(composeChatBody({ providerModelId, stream, maxTokensParam: '', temperatureMax: 0, fields }, presetOf('alibaba').quirks).toString()) as Record<string, unknown>;
    expect(rest).toEqual(told);
  });

  const messagesFor = (id: PresetId, messages: readonly object[], providerModelId = 'm'): unknown => {
    const fields = [{ name: 'messages', value: Buffer.from(JSON.stringify(messages)) }];
    return (JSON.parse(composeChatBody({ providerModelId, stream: false, maxTokensParam: '', temperatureMax: 0, fields }, presetOf(id).quirks).toString()) as Record<string, unknown>)['messages'];
  };

  test('fireworks is sent no field of a message that it does not take, and a thought under its name', () => {
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
    const messages = [{ role: 'user', name: 'Alice', content: 'Hi' }, { role: 'assistant', content: 'Hm.', annotations: [], reasoning: 'I think.', tool_calls: [{ ...call, extra_content: {} }] }, { role: 'tool', tool_call_id: 'a', content: '4' }, { role: 'assistant', content: null, refusal: 'No.', tool_calls: [call] }];
    expect(messagesFor('fireworks', messages)).toEqual([messages[0], { role: 'assistant', content: 'Hm.', reasoning_content: 'I think.', tool_calls: [call] }, messages[2], { role: 'assistant', content: null, tool_calls: [call] }]);
  });

  test('mistral is told who speaks in words, and names a tool in its result alone', () => {
    const call = { id: 'D681PevKs', type: 'function', function: { name: 'look', arguments: '{}' } };
    const result = { role: 'tool', tool_call_id: 'D681PevKs', content: '4' };
    const messages = [{ role: 'system', name: 's', content: 'Be brief.' }, { role: 'user', name: 'Alice', content: 'Hi' }, { role: 'assistant', name: 'model', content: '', tool_calls: [call] }, { ...result, name: 'look' }, { ...result, name: '' }];
    expect(messagesFor('mistral', messages)).toEqual([{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Alice: Hi' }, { role: 'assistant', content: '', tool_calls: [call] }, { ...result, name: 'look' }, result]);
  });

  test.each([['openai/gpt-oss-120b', true], ['qwen/qwen3-32b', true], ['llama-3.3-70b-versatile', false], ['moonshotai/kimi-k2-instruct-0905', false]])('groq’s %s gets a thought back: %s', (providerModelId, isTold) => {
    const said = { role: 'assistant', content: 'Four.' };
    const thought = { ...said, reasoning: 'Two and two.' };
    expect(messagesFor('groq', [thought, { ...said, reasoning_content: 'Two and two.' }], providerModelId)).toEqual([isTold ? thought : said, said]);
  });

  test('cerebras gets a thought back under its own name for it, and no field of a message that it does not know', () => {
    const said = { role: 'assistant', content: 'Four.' };
    const messages = [{ role: 'user', name: 'Alice', content: 'Hi', note: 1 }, { ...said, reasoning_content: 'Two and two.', annotations: [], reasoning_details: [] }, { ...said, reasoning: 'Its own.', reasoning_content: 'Two and two.' }, said];
    expect(messagesFor('cerebras', messages)).toEqual([{ role: 'user', name: 'Alice', content: 'Hi' }, { ...said, reasoning: 'Two and two.' }, { ...said, reasoning: 'Its own.' }, said]);
  });

  test.each<PresetId>(['deepseek', 'moonshot', 'xiaomi'])('%s gets a thought back under its own name for it, once', (id) => {
    const said = { role: 'assistant', content: 'Four.' };
    const messages = [{ ...said, reasoning: 'Two and two.' }, { ...said, reasoning_content: '', reasoning: 'Two and two.' }, { ...said, reasoning: 'Another’s.', reasoning_content: 'Its own.' }, said, { role: 'user', content: 'And?', reasoning: 'mine' }];
    const thought = { ...said, reasoning_content: 'Two and two.' };
    expect(messagesFor(id, messages)).toEqual([thought, thought, { ...said, reasoning_content: 'Its own.' }, said, { role: 'user', content: 'And?', reasoning: 'mine' }]);
  });

  test('no host that stops a model for lack of a thought misses one for its name', () => {
    const asked: readonly ChatQuirks[] = Object.values(PRESETS).map(({ quirks }) => quirks);
    expect(asked.filter(({ stilled, thoughtName }) => stilled !== undefined && thoughtName !== 'reasoning_content')).toEqual([]);
  });

  const told = (id: PresetId, providerModelId: string, over: object): object => {
    const fields = Object.entries(over).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));
    const { thinking, reasoning_effort } = JSON.parse(composeChatBody({ providerModelId, stream: false, maxTokensParam: '', temperatureMax: 0, fields }, presetOf(id).quirks).toString()) as Record<string, unknown>;
    return { ...(thinking === undefined ? {} : { thinking }), ...(reasoning_effort === undefined ? {} : { reasoning_effort }) };
  };
  const ON = { thinking: { type: 'enabled' } };
  const OFF = { thinking: { type: 'disabled' } };

  test.each<[PresetId, string, string, object]>([
    ['moonshot', 'kimi-k2.6', 'high', ON],
    ['moonshot', 'kimi-k2.6', 'none', OFF],
    ['moonshot', 'kimi-k3', 'high', { reasoning_effort: 'high' }],
    ['deepseek', 'deepseek-v4-pro', 'high', { ...ON, reasoning_effort: 'high' }],
  ])('%s’s %s, asked for the effort %s, is told %j', (id, providerModelId, effort, expected) => {
    expect(told(id, providerModelId, { reasoning_effort: effort })).toEqual(expected);
  });

  test.each<[unknown, object]>([
    ['required', OFF],
    [{ type: 'function', function: { name: 'look' } }, OFF],
    ['auto', ON],
    ['none', ON],
  ])('deepseek thinks unless a call is forced: %j', (tool_choice, expected) => {
    const over = { tools: [{ type: 'function', function: { name: 'look' } }], tool_choice };
    expect(told('deepseek', 'deepseek-v4-pro', { ...over, reasoning_effort: 'high' })).toEqual(expected === OFF ? OFF : { ...ON, reasoning_effort: 'high' });
    expect(told('deepseek', 'deepseek-v4-pro', over)).toEqual(expected === OFF ? OFF : {});
  });

  describe('a conversation whose thoughts did not come back', () => {
    const user = { role: 'user', content: 'Hi' };
    const call = { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }] };
    const result = { role: 'tool', tool_call_id: 'c', content: '4' };
    const said = { role: 'assistant', content: 'Four.' };
    const thought = { reasoning_content: 'Two and two.' };

    test.each<[string, PresetId, string, readonly object[], object]>([
      ['a call without', 'deepseek', 'deepseek-v4-pro', [user, call, result], OFF],
      ['a call of an earlier turn without', 'deepseek', 'deepseek-v4-pro', [user, call, result, { ...said, ...thought }, user, said, user], OFF],
      ['an empty one', 'deepseek', 'deepseek-v4-pro', [user, { ...call, reasoning_content: '' }, result], OFF],
      ['an answer to results without', 'deepseek', 'deepseek-v4-pro', [user, { ...call, ...thought }, result, said, user], OFF],
      ['an answer to no call without', 'deepseek', 'deepseek-v4-pro', [user, said, user, { ...call, ...thought }, result], { ...ON, reasoning_effort: 'high' }],
      ['all there', 'deepseek', 'deepseek-v4-pro', [user, { ...call, ...thought }, result, { ...said, ...thought }, user], { ...ON, reasoning_effort: 'high' }],
      ['all there, under their other name', 'deepseek', 'deepseek-v4-pro', [user, { ...call, reasoning: 'Two and two.' }, result, { ...said, reasoning_content: '', reasoning: 'Four.' }, user], { ...ON, reasoning_effort: 'high' }],
      ['an empty one under either name', 'deepseek', 'deepseek-v4-pro', [user, { ...call, reasoning: '', reasoning_content: '' }, result], OFF],
      ['one under its other name', 'moonshot', 'kimi-k2.6', [user, { ...call, reasoning: 'Two and two.' }, result], ON],
      ['one under its other name', 'xiaomi', 'mimo-v2.5-pro', [user, { ...call, reasoning: 'Two and two.' }, result], { ...ON, reasoning_effort: 'high' }],
      ['a call without', 'moonshot', 'kimi-k2.6', [user, call, result], OFF],
      ['an answer to results without', 'moonshot', 'kimi-k2.6', [user, { ...call, ...thought }, result, said, user], ON],
      ['a call without', 'xiaomi', 'mimo-v2.5-pro', [user, call, result], OFF],
      ['a call without, where nothing stops the thinking', 'moonshot', 'kimi-k2.7-code', [user, call, result], ON],
    ])('%s: %s’s %s', (_what, id, providerModelId, messages, expected) => {
      expect(told(id, providerModelId, { messages, reasoning_effort: 'high' })).toEqual(expected);
      expect(told(id, providerModelId, { messages })).toEqual(expected === OFF ? OFF : {});
    });
  });

  describe.each(['deepseek/deepseek-v4-flash', 'moonshotai/kimi-k2.6'])('%s behind OpenRouter, which passes its maker’s refusals on', (wanting) => {
    const user = { role: 'user', content: 'Hi' };
    const call = { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }] };
    const result = { role: 'tool', tool_call_id: 'c', content: '4' };
    const details = [{ type: 'reasoning.text', text: 'Two and two.', format: 'unknown', index: 0 }];
    const sent = (providerModelId: string, over: object): Record<string, unknown> => {
      const fields = Object.entries({ messages: [user], ...over }).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));
      return JSON.parse(composeChatBody({ providerModelId, stream: false, maxTokensParam: '', temperatureMax: 0, fields }, presetOf('openrouter').quirks).toString()) as Record<string, unknown>;
    };

    test.each<[string, object]>([
      ['thoughts are missing', { messages: [user, call, result], reasoning_effort: 'high' }],
      ['a thought is empty', { messages: [user, { ...call, reasoning_content: '' }, result] }],
      ['a call is forced', { tool_choice: 'required' }],
    ])('is told not to think where %s, in OpenRouter’s words', (_when, over) => {
      const body = sent(wanting, over);
      expect(body).toMatchObject({ reasoning: { enabled: false } });
      expect(body).not.toHaveProperty('reasoning_effort');
      expect(body).not.toHaveProperty('thinking');
      expect(sent('anthropic/claude-sonnet-5', over)).not.toHaveProperty('reasoning');
    });

    test('thinks where its thoughts come back, which it is given under its own name as well', () => {
      const thought = { ...call, reasoning: 'Two and two.', reasoning_details: details };
      expect(sent(wanting, { messages: [user, thought, result], reasoning_effort: 'high' })).toMatchObject({ reasoning_effort: 'high', messages: [user, { ...thought, reasoning_content: 'Two and two.' }, result] });
      expect(sent('anthropic/claude-sonnet-5', { messages: [user, thought, result] })['messages']).toEqual([user, thought, result]);
    });
  });

  test('an empty message of the assistant is left out where it is refused, and one that is the last is followed by the user where that is', () => {
    const fields = [{ name: 'messages', value: Buffer.from(JSON.stringify([{ role: 'user', content: 'x' }, { role: 'assistant', content: '' }, { role: 'assistant', content: 'y' }])) }];
    const contents = (id: keyof typeof PRESETS): unknown => (JSON.parse(composeChatBody({ providerModelId: 'm', stream: false, maxTokensParam: '', temperatureMax: 0, fields }, presetOf(id).quirks).toString()) as { readonly messages: readonly { readonly content: string }[] }).messages.map(({ content }) => content);
    expect([contents('moonshot'), contents('mistral'), contents('groq')]).toEqual([['x', 'y'], ['x', 'y', 'Continue.'], ['x', '', 'y']]);
  });

  test('hosts of open models get texts whole', () => {
    expect(Object.keys(PRESETS).filter((id) => isPresetId(id) && JSON.stringify(messagesFor(id, [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }])).includes('"type":"text"'))).toEqual(['meta', 'mistral', 'openrouter', 'perplexity', 'xai']);
  });

  // Routing keeps requests away by capabilities, or leaves these out for every host but OpenAI's own.
  const KNOWN_OTHERWISE = new Set([...PLATFORM, 'n', 'logprobs', 'top_logprobs', 'tools', 'tool_choice', 'parallel_tool_calls']);

  test.each(compatible.map((row) => [row.id, row] as const))('what is not sent to %s is in the catalog, so that clients are told', (id, row) => {
    if (!isPresetId(id)) throw new Error('no preset');
    const dropped = presetOf(id).quirks.dropFields.filter((field) => !KNOWN_OTHERWISE.has(field));
    expect([...(row.unsupported_params ?? [])].sort()).toEqual([...dropped].sort());
  });
});
