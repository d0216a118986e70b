import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';

const catalog = JSON.parse(readFileSync(new URL('../catalog/providers.json', import.meta.url), 'utf8')) as { readonly providers: readonly { readonly id: string }[] };
const ids = catalog.providers.map(({ id }) => id);

test('names of the catalog mean themselves, however they are capitalised', () => {
  expect(providersNamed(ids)).toEqual(ids);
  expect(providersForbidden(ids)).toEqual(ids);
  expect(providersNamed(['OpenAI', 'DeepInfra'])).toEqual(['openai', 'deepinfra']);
});

test('names that OpenRouter has for providers of the catalog mean those', () => {
  const elsewhere = providersNamed(['azure', 'moonshotai', 'z-ai', 'Azure']);
  expect(elsewhere).toEqual(['azure-openai', 'moonshot', 'zai', 'azure-openai']);
  expect(ids).toEqual(expect.arrayContaining([...elsewhere]));
});

test('a part of a provider is forbidden with all of it, and never asked for by the name of the whole', () => {
  expect(providersForbidden(['deepinfra/turbo', 'azure/eu'])).toEqual(['deepinfra', 'azure-openai']);
  expect(providersNamed(['deepinfra/turbo'])).toEqual(['deepinfra/turbo']);
});
