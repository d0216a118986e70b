import { expect, test } from '@jest/globals';
import { checkProviderSettings, tellUnusedStores } from './provider-settings.js';
import { wantedWorkers } from './wanted-workers.js';

function told(environment: Readonly<Record<string, string>>): readonly string[] {
  const lines: string[] = [];
  checkProviderSettings(environment, (line) => void lines.push(line));
  return lines;
}

test.each([
  ['amazon-bedrock', { AWS_ACCESS_KEY_ID: 'a' }, 'AWS_ACCESS_KEY_ID is set without AWS_SECRET_ACCESS_KEY'],
  ['amazon-bedrock', { AWS_SECRET_ACCESS_KEY: 'a', AWS_REGION: 'eu-central-1' }, 'AWS_SECRET_ACCESS_KEY is set without AWS_ACCESS_KEY_ID'],
  ['amazon-bedrock', { AWS_SESSION_TOKEN: 'a' }, 'AWS_SESSION_TOKEN is set without AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'],
  ['azure-openai', { AZURE_API_KEY: 'a' }, 'AZURE_API_KEY is set without AZURE_RESOURCE_NAME or AZURE_BASE_URL'],
  ['azure-openai', { AZURE_RESOURCE_NAME: 'a', AZURE_API_KEY: '' }, 'AZURE_RESOURCE_NAME is set without AZURE_API_KEY'],
  ['google-vertex', { VERTEX_ACCESS_TOKEN: 'a' }, 'VERTEX_ACCESS_TOKEN is set without GOOGLE_VERTEX_PROJECT or VERTEX_BASE_URL'],
  ['google-vertex', { GOOGLE_VERTEX_PROJECT: 'a' }, 'GOOGLE_VERTEX_PROJECT is set without VERTEX_ACCESS_TOKEN or GOOGLE_APPLICATION_CREDENTIALS'],
  ['google-ai-studio', { GEMINI_BASE_URL: 'http://x' }, 'GEMINI_BASE_URL is set without GEMINI_API_KEY or GOOGLE_API_KEY'],
  ['meta', { META_API_KEY: 'a' }, 'META_API_KEY is set without META_BASE_URL'],
  ['meta', { META_BASE_URL: 'http://x' }, 'META_BASE_URL is set without META_API_KEY'],
  ['openai', { OPENAI_BASE_URL: 'http://x' }, 'OPENAI_BASE_URL is set without OPENAI_API_KEY'],
  // As a template writes it whose variables are both empty.
  ['groq', { GROQ_API_KEY: ',' }, 'GROQ_API_KEY is set without a credential in it'],
  ['openai', { OPENAI_API_KEY: ' , ', OPENAI_BASE_URL: 'http://x' }, 'OPENAI_API_KEY is set without a credential in it'],
  ['google-ai-studio', { GOOGLE_API_KEY: ',' }, 'GOOGLE_API_KEY is set without a credential in it'],
  ['google-vertex', { VERTEX_ACCESS_TOKEN: ',', VERTEX_BASE_URL: 'http://x' }, 'VERTEX_ACCESS_TOKEN is set without a credential in it'],
  ['azure-openai', { AZURE_API_KEY: ',', AZURE_BASE_URL: 'http://x' }, 'AZURE_API_KEY is set without a credential in it'],
  ['amazon-bedrock', { AWS_BEARER_TOKEN_BEDROCK: ',' }, 'AWS_BEARER_TOKEN_BEDROCK is set without a credential in it'],
  ['vllm', { VLLM_API_KEY: ',' }, 'VLLM_API_KEY is set without a credential in it'],
  ['deepinfra', { DEEPINFRA_BASE_URL: 'http://x' }, 'DEEPINFRA_BASE_URL is set without DEEPINFRA_API_KEY or DEEPINFRA_TOKEN'],
])('%s stays off with %j, and one line says what is missing', (provider, environment, what) => {
  expect(told(environment)).toEqual([`signalbox: ${provider} stays off: ${what}`]);
  expect(wantedWorkers(environment).map((worker) => worker.provider)).toEqual(['simulator']);
});

test('nothing is said of what is complete, of what has a default, and of what other tools have put there', () => {
  expect(
    told({
      OPENAI_API_KEY: 'a', OPENAI_BASE_URL: 'http://x', AWS_BEARER_TOKEN_BEDROCK: 'a', AWS_ACCESS_KEY_ID: 'half', AWS_REGION: 'eu-central-1', AZURE_API_KEY: 'a', AZURE_BASE_URL: 'http://x',
      GOOGLE_APPLICATION_CREDENTIALS: '/k', VLLM_BASE_URL: 'http://x', OLLAMA_BASE_URL: 'http://x', GROQ_API_KEY: 'a', META_API_KEY: 'a', META_BASE_URL: 'http://x',
    }),
  ).toEqual([]);
  expect(told({ AWS_REGION: 'eu-central-1', AWS_DEFAULT_REGION: 'x' })).toEqual([]);
});

test('a variable that is nearly a setting is told, without its value', () => {
  expect(told({ DATABASE_URI: 'postgres://u:secret@x/y' })).toEqual(['signalbox: DATABASE_URI is set and not used: did you mean DATABASE_URL?']);
});

test('a store that is set and has nothing to keep here is told', () => {
  const lines: string[] = [];
  tellUnusedStores({ REDIS_URL: 'redis://127.0.0.1:1', NATS_URL: 'nats://127.0.0.1:1', DATABASE_URL: 'postgres://x' }, (line) => void lines.push(line));
  expect(lines).toEqual([
    'signalbox: REDIS_URL is set and not used: npm start counts in its own memory; npm run start:split uses it',
    'signalbox: NATS_URL is set and not used: npm start counts in its own memory; npm run start:split uses it',
  ]);
});

test.each(['opnai', 'groq, opnai', 'azure-openai', 'groq,off'])('BYOK_PROVIDERS=%s is refused by its name', (list) => {
  expect(() => told({ BYOK_PROVIDERS: list })).toThrow(/^BYOK_PROVIDERS: accounts cannot bring credentials for [a-z-]+ here; expected off, or ids of alibaba, amazon-bedrock, /);
});

test('BYOK_PROVIDERS takes ids, also of what the operator has a credential for, and off; OLLAMA takes on and off', () => {
  for (const list of ['', 'off', ' groq , cohere,', 'openai']) expect(told({ BYOK_PROVIDERS: list, OPENAI_API_KEY: 'a', OLLAMA: 'off' })).toEqual([]);
  expect(() => told({ OLLAMA: 'false' })).toThrow('OLLAMA: expected on (it is looked for, the default) or off');
});
