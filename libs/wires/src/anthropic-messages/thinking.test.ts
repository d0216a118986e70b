import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../canonical.js';
import { claudeTraits } from './claude.js';
import { ANTHROPIC, draftMessages, MINIMAX, VERTEX } from './request.js';
import { ADAPTIVE, body, BUDGET, call, HELLO, NEWEST, OLDER, TOOL, type Sent } from './testing/sent.js';

describe('thinking', () => {
  const CALLED = [...HELLO, { role: 'assistant', tool_calls: [call('a', 'f', '{}')] }, { role: 'tool', tool_call_id: 'a', content: '1' }];
  const settings = (model: string, effort: string, more: object = {}, sent: Sent = {}): unknown => {
    const { thinking, output_config: output } = body({ reasoning_effort: effort, ...more }, { model, ...sent });
    return JSON.parse(JSON.stringify({ thinking, output }));
  };

  test.each([
    [OLDER, 'high', {}],
    [BUDGET, 'low', { thinking: { type: 'enabled', budget_tokens: 12_800 } }],
    [BUDGET, 'high', { thinking: { type: 'enabled', budget_tokens: 32_000 } }],
    [BUDGET, 'none', {}],
    [BUDGET, 'word', {}],
    ['claude-opus-4-6', 'medium', { thinking: { type: 'adaptive' }, output: { effort: 'medium' } }],
    ['claude-opus-4-6', 'xhigh', { thinking: { type: 'adaptive' }, output: { effort: 'high' } }],
    [ADAPTIVE, 'xhigh', { thinking: { type: 'adaptive', display: 'summarized' }, output: { effort: 'xhigh' } }],
    [ADAPTIVE, 'minimal', { thinking: { type: 'adaptive', display: 'summarized' }, output: { effort: 'low' } }],
    [ADAPTIVE, 'none', {}],
    [NEWEST, 'none', { thinking: { type: 'disabled' } }],
    ['claude-fable-5', 'none', { output: { effort: 'low' } }],
    ['claude-opus-5', 'none', { thinking: { type: 'disabled' } }],
    ['claude-opus-5-5', 'none', { output: { effort: 'low' } }],
    ['claude-sonnet-5-5', 'none', { thinking: { type: 'between_tools' } }],
    ['claude-haiku-5-5', 'none', { thinking: { type: 'disabled' } }],
    ['claude-something-new', 'max', { thinking: { type: 'adaptive', display: 'summarized' }, output: { effort: 'max' } }],
  ])('%s with effort %s', (model, effort, told) => {
    expect(settings(model, effort)).toEqual(told);
  });

  test('the budget is part of the limit, and is left out where it does not fit', () => {
    expect(settings(BUDGET, 'high', {}, { maxTokens: 3_000 })).toEqual({ thinking: { type: 'enabled', budget_tokens: 2_400 } });
    expect(settings(BUDGET, 'low', {}, { maxTokens: 1_500 })).toEqual({ thinking: { type: 'enabled', budget_tokens: 1_024 } });
    expect(settings(BUDGET, 'high', {}, { maxTokens: 1_000 })).toEqual({});
  });

  test('a client that does not send thinking back goes on without', () => {
    expect(settings(BUDGET, 'high', { messages: CALLED, tools: [TOOL] })).toEqual({});
    expect(settings(ADAPTIVE, 'high', { messages: CALLED, tools: [TOOL] })).toMatchObject({ thinking: { type: 'adaptive' } });
  });

  test('a call that must be made comes before thinking', () => {
    expect(settings(BUDGET, 'high', { tools: [TOOL], tool_choice: 'required' })).toEqual({});
    expect(body({ tools: [TOOL], tool_choice: 'required' }, { model: NEWEST })).toMatchObject({ thinking: { type: 'disabled' } });
    // One that cannot but think refuses in words of its own.
    expect(body({ tools: [TOOL], tool_choice: 'required' }, { model: 'claude-opus-5-5' })).not.toHaveProperty('thinking');
  });

  describe('of earlier turns', () => {
    const THOUGHT = { role: 'assistant', content: 'Yes.', reasoning_details: [{ type: 'reasoning.text', text: 'Hm.', signature: 's==', format: 'anthropic-claude-v1' }] };
    const BINDING = { block_binding: { prefix_mismatch_behavior: 'drop_block' } };
    const draftOf = (model: string, fields: object = {}, quirks = ANTHROPIC) => {
      const all = Object.entries({ messages: [...HELLO, THOUGHT, ...HELLO], ...fields }).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) }));
      const draft = draftMessages({ providerModelId: model, stream: false, maxOutputTokens: 64_000, temperatureMax: 1, fields: all }, quirks);
      const sent = draft.body(new Map()).toString();
      return { betas: draft.betas, thinking: (JSON.parse(sent) as JsonObject)['thinking'], isReplayed: sent.includes('"s=="') };
    };

    test.each([
      ['claude-fable-5-1', {}, { type: 'adaptive', ...BINDING }],
      ['claude-opus-5-5', { reasoning_effort: 'high' }, { type: 'adaptive', display: 'summarized', ...BINDING }],
      ['claude-something-new', {}, { type: 'adaptive', ...BINDING }],
    ])('%s, which binds it, is told to leave out what does not fit', (model, fields, thinking) => {
      expect(draftOf(model, fields)).toEqual({ betas: ['thinking-binding-controls-2026-08-01'], thinking, isReplayed: true });
    });

    test.each(['claude-sonnet-5-5', 'claude-haiku-5-5'])('stays out where %s is told not to think', (model) => {
      expect(draftOf(model, { reasoning_effort: 'none' })).toMatchObject({ betas: [], isReplayed: false });
    });

    test.each([
      ['claude-opus-5', ANTHROPIC, true],
      ['claude-sonnet-4-6', VERTEX, true],
      ['MiniMax-M2', MINIMAX, false],
    ])('goes to %s as it always did', (model, quirks, isReplayed) => {
      expect(draftOf(model, {}, quirks)).toEqual({ betas: [], thinking: undefined, isReplayed });
    });

    describe('in the turn that is going on', () => {
      const step = (id: string, more: object = {}): object[] => [{ role: 'assistant', tool_calls: [call(id, 'f', '{}')], ...more }, { role: 'tool', tool_call_id: id, content: '1' }];
      const { reasoning_details: details } = THOUGHT;
      const LOOP = [...HELLO, THOUGHT, ...HELLO, ...step('a', { reasoning_details: details }), ...step('b')];
      const types = (fields: object, model = BUDGET): unknown => (body({ messages: LOOP, tools: [TOOL], ...fields }, { model })['messages'] as { role: string; content: { type: string }[] }[]).map(({ role, content }) => [role, ...content.map(({ type }) => type)].join(' '));

      // Claude thinks at the beginning of a turn, not anew behind each result.
      test('calls behind the first results need none of their own', () => {
        expect(body({ messages: LOOP, tools: [TOOL], reasoning_effort: 'low' }, { model: BUDGET })).toMatchObject({ thinking: { type: 'enabled' } });
        expect(types({ reasoning_effort: 'low' })).toEqual(['user text', 'assistant thinking text', 'user text', 'assistant thinking tool_use', 'user tool_result', 'assistant tool_use', 'user tool_result']);
        expect(body({ messages: [...HELLO, ...step('a'), ...step('b', { reasoning_details: details })], tools: [TOOL], reasoning_effort: 'low' }, { model: BUDGET })).not.toHaveProperty('thinking');
      });

      test.each([
        ['nobody asks for thought', {}, BUDGET],
        ['a tool must be called', { reasoning_effort: 'low', tool_choice: 'required' }, BUDGET],
        ['a model thinks only where it is asked to', {}, ADAPTIVE],
      ])('there is none where %s: a last message with it would be refused', (_when, fields, model) => {
        expect(types(fields, model)).toEqual(['user text', 'assistant thinking text', 'user text', 'assistant tool_use', 'user tool_result', 'assistant tool_use', 'user tool_result']);
      });

      test('words that it is to go on with are not its last where it thinks first', () => {
        const messages = [...HELLO, { role: 'assistant', content: 'So ' }];
        expect(body({ messages, reasoning_effort: 'low' }, { model: BUDGET })).toMatchObject({ thinking: { type: 'enabled' }, messages: [{}, { role: 'assistant' }, { role: 'user', content: [{ text: 'Continue.' }] }] });
        expect(body({ messages }, { model: BUDGET })['messages']).toHaveLength(2);
        expect(body({ messages, reasoning_effort: 'low' }, { model: 'MiniMax-M2', quirks: MINIMAX })['messages']).toHaveLength(2);
      });

      test('a message of nothing but thought is left out', () => {
        expect(types({ messages: [...HELLO, { role: 'assistant', content: '', reasoning_details: details }, ...HELLO], reasoning_effort: 'low' })).toEqual(['user text text']);
      });
    });

    test('nothing is said where there is none', () => {
      expect(draftOf('claude-opus-5-5', { messages: HELLO })).toEqual({ betas: [], thinking: undefined, isReplayed: false });
    });
  });

  test('sampling is left to a model that thinks', () => {
    expect(body({ reasoning_effort: 'low', temperature: 0.5 }, { model: BUDGET })).not.toHaveProperty('temperature');
    expect(body({ reasoning_effort: 'low', temperature: 0.5 }, { model: 'MiniMax-M2', quirks: MINIMAX })).toMatchObject({ temperature: 0.5 });
  });

  test('MiniMax is told to stop thinking, or nothing', () => {
    expect(settings('MiniMax-M3', 'none', {}, { quirks: MINIMAX })).toEqual({ thinking: { type: 'disabled' } });
    for (const effort of ['minimal', 'low', 'high']) expect(settings('MiniMax-M3', effort, {}, { quirks: MINIMAX })).toEqual({});
  });

  test.each([
    ['claude-3-7-sonnet-20250219', 'budget'],
    ['claude-sonnet-4-20250514', 'budget'],
    ['claude-opus-4-1@20250805', 'budget'],
    ['claude-haiku-4-5@20251001', 'budget'],
    ['claude-sonnet-4-6@default', 'adaptive'],
    ['claude-opus-5-5', 'adaptive'],
    ['claude-mythos-preview', 'adaptive'],
    ['claude-3-haiku-20240307', 'none'],
  ])('%s thinks by %s', (model, thinking) => {
    expect(claudeTraits(model).thinking).toBe(thinking);
  });

  test('a deployment that is called anything has the traits of the model that it serves', () => {
    expect(claudeTraits('prod-opus', 'anthropic/claude-opus-4.1')).toEqual(claudeTraits('claude-opus-4-1'));
    expect(claudeTraits('claude-opus-4-6', 'acme/ours-5.5')).toEqual(claudeTraits('claude-opus-4-6'));
    expect(claudeTraits('prod', 'acme/ours')).toEqual(claudeTraits('claude-opus-9'));
  });
});
