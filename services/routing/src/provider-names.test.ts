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

test('the words that OpenRouter calls providers by mean those too, and are forbidden when they are ignored', () => {
  const words = ['Amazon Bedrock', 'Google AI Studio', 'Moonshot AI', 'Z.AI', 'BaseTen', 'Minimax', 'xAI'];
  const meant = ['amazon-bedrock', 'google-ai-studio', 'moonshot', 'zai', 'baseten', 'minimax', 'xai'];
  expect(providersNamed(words)).toEqual(meant);
  expect(providersForbidden(words)).toEqual(meant);
  expect(providersForbidden(['Amazon Bedrock/eu-west-1'])).toEqual(['amazon-bedrock']);
  expect(ids).toEqual(expect.arrayContaining(meant));
});

test('Google is asked for as Vertex, as at OpenRouter, and forbidden at both of its addresses', () => {
  expect(providersNamed(['Google', 'google'])).toEqual(['google-vertex', 'google-vertex']);
  expect(providersForbidden(['Google', 'google/global'])).toEqual(['google-vertex', 'google-ai-studio', 'google-vertex', 'google-ai-studio']);
  expect(ids).toEqual(expect.arrayContaining(['google-vertex', 'google-ai-studio']));
});

test('what LiteLLM writes before a model means its provider, and is forbidden when it is ignored', () => {
  const words = ['bedrock', 'bedrock_converse', 'vertex_ai', 'vertex_ai_beta', 'gemini', 'azure', 'azure_ai', 'together_ai', 'fireworks_ai', 'dashscope', 'cohere_chat', 'ollama_chat', 'hosted_vllm', 'meta_llama', 'codestral', 'xiaomi_mimo', 'groq'];
  const meant = ['amazon-bedrock', 'amazon-bedrock', 'google-vertex', 'google-vertex', 'google-ai-studio', 'azure-openai', 'azure-openai', 'together', 'fireworks', 'alibaba', 'cohere', 'ollama', 'vllm', 'meta', 'mistral', 'xiaomi', 'groq'];
  expect(providersNamed(words)).toEqual(meant);
  expect(providersForbidden(words)).toEqual(meant);
  expect(ids).toEqual(expect.arrayContaining(meant));
});

test('a maker means the provider that it is, and an id with an underscore stays as it is', () => {
  expect(providersNamed(['x-ai', 'mistralai', 'my_host'])).toEqual(['xai', 'mistral', 'my_host']);
});
