import { expect, test } from '@jest/globals';
import { calledToolBytes, overheadTokensMax, type PromptFacts } from './prompt-overheads.js';

const BARE: PromptFacts = { needs: {}, imageCount: 0, calledToolBytes: 0 };
const TOOLS: PromptFacts = { ...BARE, needs: { tools: true } };
const JSON_OBJECT: PromptFacts = { ...BARE, needs: { responseFormat: 'json_object' } };
const SCHEMA: PromptFacts = { ...BARE, needs: { responseFormat: 'json_schema' } };
const CALLED: PromptFacts = { ...BARE, calledToolBytes: 100 };

const at = (provider: string, wireProtocol = 'openai-chat', model = 'm') => ({ provider, wireProtocol, model });

test.each<[string, readonly string[], PromptFacts, number]>([
  ['nothing but text', ['openai'], BARE, 0],
  ['tools', ['anthropic', 'openai'], TOOLS, 600],
  ['images at one provider', ['anthropic'], { ...BARE, imageCount: 2 }, 10_000],
  ['an image at the provider that counts most', ['xai', 'anthropic'], { ...TOOLS, imageCount: 1 }, 5_600],
  ['an image at an unknown provider', ['anthropic', 'constructor'], { ...BARE, imageCount: 1 }, 50_000],
])('%s adds as many tokens to a prompt as its provider may count', (_name, providers, facts, tokens) => {
  expect(overheadTokensMax(providers.map((provider) => at(provider)), facts)).toBe(tokens);
});

// The largest image of OpenAI's guide: 2,048 by 768 pixels after scaling are 4 × 2 tiles; patches are at most 1,536.
test.each([
  ['openai', 'openai/gpt-4o', 85 + 8 * 170],
  ['azure', 'openai/gpt-4o', 85 + 8 * 170],
  ['openai', 'openai/gpt-5', 70 + 8 * 140],
  ['openai', 'openai/o3', 75 + 8 * 150],
  ['openai', 'openai/gpt-4.1', 1_536],
  ['openai', 'openai/gpt-4.1-mini', Math.ceil(1_536 * 1.62)],
  ['openai', 'openai/gpt-5-nano', Math.ceil(1_536 * 2.46)],
  ['openai', 'openai/o4-mini', Math.ceil(1_536 * 1.72)],
])('an image at %s and %s is held for with what it may count, and little more', (provider, model, tokens) => {
  const held = overheadTokensMax([at(provider, 'openai-chat', model)], { ...BARE, imageCount: 1 });
  expect(held).toBeGreaterThanOrEqual(tokens);
  expect(held).toBeLessThanOrEqual(2 * tokens);
});

test.each([['openai', 'openai/gpt-4o-mini'], ['openai', 'openai/gpt-5.6-sol'], ['openai', 'constructor'], ['openrouter', 'openai/gpt-4o']])('an image at %s and %s may count most', (provider, model) => {
  expect(overheadTokensMax([at('openai', 'openai-chat', 'openai/gpt-4o'), at(provider, 'openai-chat', model)], { ...BARE, imageCount: 1 })).toBe(50_000);
});

// Wires as the catalog names them. What is added for JSON requested as text or by a setting is covered by the bytes of `response_format`.
test.each<[string, { readonly schema: number; readonly called: number }]>([
  ['anthropic-messages', { schema: 600, called: 700 }],
  ['bedrock-converse', { schema: 600, called: 0 }],
  ['openai-chat', { schema: 0, called: 0 }],
  ['azure-openai', { schema: 0, called: 0 }],
  ['google-generate-content', { schema: 0, called: 0 }],
  ['cohere-v2', { schema: 0, called: 0 }],
  ['mistral', { schema: 0, called: 0 }],
  ['ollama', { schema: 0, called: 0 }],
])('%s adds the tokens of the tools that it defines by itself', (wireProtocol, { schema, called }) => {
  // A failover may lead to this wire from any other.
  for (const attempts of [[at('a', wireProtocol)], [at('b'), at('a', wireProtocol)]]) {
    expect(overheadTokensMax(attempts, BARE)).toBe(0);
    expect(overheadTokensMax(attempts, JSON_OBJECT)).toBe(0);
    expect(overheadTokensMax(attempts, SCHEMA)).toBe(schema);
    expect(overheadTokensMax(attempts, CALLED)).toBe(called);
    expect(overheadTokensMax(attempts, { ...SCHEMA, calledToolBytes: 100 })).toBe(Math.max(schema, called));
    // With tools of the client the wire adds none.
    expect(overheadTokensMax(attempts, { ...TOOLS, calledToolBytes: 100 })).toBe(600);
  }
});

test('a called tool counts with its definition, once for each name', () => {
  const bytes = (name: string): number => Buffer.byteLength(`${JSON.stringify({ name, input_schema: { type: 'object' } })},`);
  expect(calledToolBytes(undefined)).toBe(0);
  expect(calledToolBytes(new Set(['weather', 'é"']))).toBeGreaterThanOrEqual(bytes('weather') + bytes('é"'));
});
