import { expect, test } from '@jest/globals';
import { adviceOn, possibleWorkers, providerSettings, wantedWorkers } from './wanted-workers.js';

const providersOf = (environment: Readonly<Record<string, string>>): readonly string[] => wantedWorkers(environment).map(({ service, provider }) => `${service}/${provider}`);

test.each([
  ['nothing', {}, ['worker-sim/simulator']],
  ['nothing, and no simulator', { SIMULATOR: 'off' }, []],
  ['an empty key', { OPENAI_API_KEY: '' }, ['worker-sim/simulator']],
  ['services of their own', { OPENAI_API_KEY: 'a', CO_API_KEY: 'b' }, ['worker-cohere/cohere', 'worker-openai/openai']],
  ['both of Google', { GOOGLE_API_KEY: 'a', VERTEX_ACCESS_TOKEN: 'b', GOOGLE_VERTEX_PROJECT: 'p' }, ['worker-google/google-ai-studio', 'worker-google/google-vertex']],
  ['a preset, and the simulator beside it', { GROQ_API_KEY: 'a', SIMULATOR: 'on' }, ['worker-openai-compatible/groq', 'worker-sim/simulator']],
])('%s', (_what, environment, expected) => {
  expect(providersOf(environment)).toEqual(expected);
});

test.each([
  ['one that was come upon leaves the simulator', {}, ['worker-ollama/ollama', 'worker-sim/simulator']],
  ['one that the operator named takes its place', { OLLAMA_BASE_URL: 'http://x' }, ['worker-ollama/ollama']],
])('Ollama: %s', (_what, environment, expected) => {
  expect(wantedWorkers(environment, true).map(({ service, provider }) => `${service}/${provider}`)).toEqual(expected);
});

test.each<[string, Readonly<Record<string, string>>, boolean, string | undefined]>([
  ['nothing was set', {}, false, 'a simulator answers'],
  ['nothing was set, and Ollama was come upon', {}, true, undefined],
  ['the simulator was asked for', { SIMULATOR: 'on' }, false, undefined],
  ['the simulator was refused', { SIMULATOR: 'off' }, false, 'no provider is enabled'],
  ['a credential was set', { OPENAI_API_KEY: 'a' }, false, undefined],
])('where %s, the operator is told how real models come, or nothing', (_what, environment, hasOllama, told) => {
  const advice = adviceOn(wantedWorkers(environment, hasOllama), environment);
  expect(advice === undefined ? undefined : told !== undefined && advice.includes(told) && advice.includes('OPENAI_API_KEY')).toBe(told === undefined ? undefined : true);
});

test('own credentials may call for any provider that the operator does not have, never for the operator’s own machines', () => {
  const environment = { OPENAI_API_KEY: 'a' };
  const providers = possibleWorkers(environment, wantedWorkers(environment)).map(({ provider }) => provider);
  expect(providers).toEqual(expect.arrayContaining(['anthropic', 'groq', 'amazon-bedrock', 'google-ai-studio']));
  for (const never of ['openai', 'vllm', 'ollama', 'simulator', 'meta', 'azure-openai', 'google-vertex']) expect(providers).not.toContain(never);
});

test('the operator may name them, or none', () => {
  const possible = (list: string): readonly string[] => possibleWorkers({ BYOK_PROVIDERS: list }, []).map(({ provider }) => provider);
  expect(possible('groq, cohere, vllm')).toEqual(['cohere', 'groq']);
  expect(possible('off')).toEqual([]);
});

test("a worker gets what is its provider's, and nothing else of the environment", () => {
  const environment = {
    GEMINI_API_KEY: 'a', GEMINI_BASE_URL: 'http://x', VERTEX_ACCESS_TOKEN: 'b', GOOGLE_APPLICATION_CREDENTIALS: '/k', GOOGLE_VERTEX_PROJECT: 'p', GROQ_API_KEY: 'g', DEEPINFRA_TOKEN: 'd', COHERE_API_KEY: '', CO_API_KEY: 'c',
    ADMIN_TOKEN: 'secret', KEY_PEPPER: 'secret', DATABASE_URL: 'secret', NPM_TOKEN: 'secret', SOME_API_KEY: 'secret',
  };
  expect(providerSettings('google-ai-studio', environment)).toEqual({ GEMINI_API_KEY: 'a', GEMINI_BASE_URL: 'http://x' });
  expect(providerSettings('google-vertex', environment)).toEqual({ VERTEX_ACCESS_TOKEN: 'b', GOOGLE_APPLICATION_CREDENTIALS: '/k', GOOGLE_VERTEX_PROJECT: 'p' });
  expect(providerSettings('groq', environment)).toEqual({ GROQ_API_KEY: 'g' });
  expect(providerSettings('deepinfra', environment)).toEqual({ DEEPINFRA_TOKEN: 'd' });
  expect(providerSettings('cohere', environment)).toEqual({ CO_API_KEY: 'c' });
  expect(providerSettings('simulator', environment)).toEqual({});
});
