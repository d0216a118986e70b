import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { misspeltSettings } from './misspelt-settings.js';

test.each([
  ['LOG_LEVLE', 'LOG_LEVEL'],
  ['OPENAI_APIKEY', 'OPENAI_API_KEY'],
  ['openai_api_key', 'OPENAI_API_KEY'],
  ['OPENAI_API_KEYS', 'OPENAI_API_KEY'],
  ['DATABASE_URI', 'DATABASE_URL'],
  // Restrictions that would hold nobody back.
  ['PLUGIN_OFF', 'PLUGINS_OFF'],
  ['ZDR_AGREEMENT', 'ZDR_AGREEMENTS'],
  ['SANDBOX_NETWORK_FENSE', 'SANDBOX_NETWORK_FENCE'],
  // LiteLLM's: prompts that were to go to an own address would go to the provider.
  ['OPENAI_API_BASE', 'OPENAI_BASE_URL'],
  ['AZURE_API_BASE', 'AZURE_BASE_URL'],
  ['HOSTED_VLLM_API_BASE', 'VLLM_BASE_URL'],
  ['TOGETHERAI_API_KEY', 'TOGETHER_API_KEY'],
  ['VERTEXAI_PROJECT', 'GOOGLE_VERTEX_PROJECT'],
])('%s is told to be %s, without its value', (given, meant) => {
  expect(misspeltSettings({ [given]: 'sk-secret' })).toEqual([[given, meant]]);
  // Platforms give both; and an empty variable is none.
  expect(misspeltSettings({ [given]: 'sk-secret', [meant]: 'x' })).toEqual([]);
  expect(misspeltSettings({ [given]: ' ' })).toEqual([]);
});

test('no setting that a page names is taken for another, nor is what others put into an environment', () => {
  const pages = ['configuration', 'operate', 'plugins', 'add-a-provider'].map((name) => readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8')).join('\n');
  const named = [...pages.matchAll(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g)].map(([name]) => name);
  expect(named.length).toBeGreaterThan(100);
  expect(misspeltSettings(Object.fromEntries(named.map((name) => [name, 'x'])))).toEqual([]);
  for (const name of new Set(named)) expect(misspeltSettings({ [name]: 'x' })).toEqual([]);
  const others = ['HOME', 'SHELL', 'PWD', 'HOSTNAME', 'EXA_API_KEY', 'XDG_DATA_DIRS', 'AWS_PROFILE', 'OPENAI_ORG_ID', 'HF_TOKEN', 'npm_config_registry', 'OLLAMA_HOST', 'PGDATABASE', 'NODE_ENV', 'SSH_AUTH_SOCK', 'PORTS', 'LOG_FORMAT'];
  expect(misspeltSettings(Object.fromEntries(others.map((name) => [name, 'x'])))).toEqual([]);
});
