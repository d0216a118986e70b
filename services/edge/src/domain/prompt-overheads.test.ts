import { expect, test } from '@jest/globals';
import { overheadTokensMax } from './prompt-overheads.js';

test.each([
  ['nothing but text', ['openai'], false, 0, 0],
  ['tools', ['anthropic', 'openai'], true, 0, 600],
  ['images at one provider', ['anthropic'], false, 2, 10_000],
  ['an image at the provider that counts most', ['xai', 'anthropic'], true, 1, 5_600],
  ['an image at a provider that nobody knows', ['anthropic', 'constructor'], false, 1, 50_000],
])('%s adds to a prompt what its provider may count', (_name, providers, hasTools, imageCount, tokens) => {
  expect(overheadTokensMax(providers.map((provider) => ({ provider })), hasTools, imageCount)).toBe(tokens);
});
