import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { misspeltSettings as misspeltAmong, settingsReadBy, SHOWN_PREFIX } from './misspelt-settings.js';
import { SETTING_NAMES } from './setting-names.js';

const ALL = Object.values(SETTING_NAMES).flat();
const misspeltSettings = (environment: Readonly<Record<string, string>>) => misspeltAmong(environment, ALL);

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

test('a service tells only of what is near to a setting of its own', () => {
  const shared = { PLUGIN_OFF: 'web-search', SECRET_KEYS_OLD: 'x', OPENAI_API_BASE: 'https://llm.example/v1' };
  expect(misspeltAmong(shared, settingsReadBy('plugins'))).toEqual([['PLUGIN_OFF', 'PLUGINS_OFF']]);
  expect(misspeltAmong(shared, settingsReadBy('accounts'))).toEqual([['SECRET_KEYS_OLD', 'SECRETS_KEYS_OLD']]);
  expect(misspeltAmong(shared, settingsReadBy('worker-openai'))).toEqual([['OPENAI_API_BASE', 'OPENAI_BASE_URL']]);
  expect(misspeltAmong(shared, settingsReadBy('quota'))).toEqual([]);
});

test('no service takes a setting of another for a slip of its own, as in a file that all read', () => {
  for (const service of Object.keys(SETTING_NAMES)) for (const name of ALL) expect({ service, told: misspeltAmong({ [name]: 'x' }, settingsReadBy(service)) }).toEqual({ service, told: [] });
});

test('what Kubernetes and Docker set for neighbours is no slip, however they are named', () => {
  const links = {
    METRIC_PORT: 'tcp://10.0.0.7:9090', METRIC_PORT_9090_TCP: 'tcp://10.0.0.7:9090', METRIC_PORT_9090_TCP_ADDR: '10.0.0.7', METRIC_SERVICE_HOST: '10.0.0.7', METRIC_SERVICE_PORT: '9090',
    KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT_HTTPS: '443', KUBERNETES_PORT: 'tcp://10.0.0.1:443', ADMINS_PORT: 'tcp://10.0.0.8:80', EDGE_PORT: 'tcp://10.0.0.9:80',
  };
  expect(misspeltSettings(links)).toEqual([]);
  // A value that a person wrote is no address of a neighbour.
  expect(misspeltSettings({ METRIC_PORT: '9464' })).toEqual([['METRIC_PORT', 'METRICS_PORT']]);
});

test('a line of a settings file that a container is only shown is told by its own name', () => {
  const shown = Object.fromEntries(Object.entries({ PLUGINS_OFF: '', PLUGIN_OFF: 'web-search', PDF_TIMEOUT_MS: '8000', LOG_LEVEL: 'info' }).map(([name, value]) => [`${SHOWN_PREFIX}${name}`, value]));
  expect(misspeltAmong({ ...shown, PLUGINS_OFF: '' }, settingsReadBy('plugins'))).toEqual([['PLUGIN_OFF', 'PLUGINS_OFF']]);
  expect(misspeltAmong({ ...shown, PLUGINS_OFF: 'memory' }, settingsReadBy('plugins'))).toEqual([]);
});
