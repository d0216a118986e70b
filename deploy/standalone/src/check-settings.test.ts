import { describe, expect, test } from '@jest/globals';
import { loadAccountsConfig } from '@signalbox/accounts/config';
import { loadBillingConfig } from '@signalbox/billing/config';
import { loadEdgeConfig } from '@signalbox/edge/config';
import { loadPluginsConfig } from '@signalbox/plugins/config';
import { loadQuotaConfig } from '@signalbox/quota/config';
import { loadRoutingConfig } from '@signalbox/routing/config';
import { ConfigError } from '@signalbox/runtime/config';
import { loadTracingConfig } from '@signalbox/runtime/tracing';
import { loadSandboxConfig } from '@signalbox/sandbox/config';
import { loadWorkerOllamaConfig } from '@signalbox/worker-ollama/config';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkSettings } from './check-settings.js';
import type { Environment } from './wanted-workers.js';

/** By section of docs/configuration.md, which is generated from the schemas. */
const LOADERS: Readonly<Record<string, (environment: Environment) => unknown>> = {
  Accounts: loadAccountsConfig,
  Billing: loadBillingConfig,
  Edge: loadEdgeConfig,
  Plugins: loadPluginsConfig,
  Quota: loadQuotaConfig,
  Routing: loadRoutingConfig,
  Sandbox: loadSandboxConfig,
  'Every worker': loadWorkerOllamaConfig,
  'Worker-ollama': loadWorkerOllamaConfig,
};
const NEEDED = { DATABASE_URL: 'postgres://x', REDIS_URL: 'redis://x', KEY_PEPPER: 'p'.repeat(16), SECRETS_KEY: 's'.repeat(16), ADMIN_TOKEN: 't', ACCOUNTS_ADDRS: 'a:1', ROUTING_ADDRS: 'a:1', QUOTA_ADDRS: 'a:1', BILLING_ADDRS: 'a:1', WORKERS: 'w=a:1' };
/** Settings that limit another setting, at their maximum. */
const WIDE = { PLUGINS_DEADLINE_MS: '120000' };
const EVERYWHERE: readonly (readonly [name: string, load: (environment: Environment) => unknown])[] = [
  ['GRPC_PORT', loadSandboxConfig],
  ['METRICS_PORT', loadSandboxConfig],
  ['OTEL_TRACES_SAMPLER_ARG', loadTracingConfig],
];
/** Settings of a single service's process, not used when all are started together. */
const OF_A_PROCESS = new Set(['GRPC_PORT', 'METRICS_PORT', 'EDGE_REPLICAS']);

interface NumberSetting {
  readonly name: string;
  readonly minimum: string;
  readonly maximum: string;
  readonly load: (environment: Environment) => unknown;
}

/** Every number setting with bounds. */
function numberSettings(): readonly NumberSetting[] {
  const text = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
  return text.split(/^## /m).slice(1).flatMap((part) => {
    const section = part.slice(0, part.indexOf('\n'));
    return [...part.matchAll(/^\| `([A-Z_]+)` \| (?:(port)|(\d+) to (\d+)) \|/gm)].flatMap(([, name = '', port, minimum = '0', maximum = '65535']) => {
      const load = section === 'Every service' ? EVERYWHERE.filter(([known]) => known === name).map(([, loader]) => loader) : [LOADERS[section]];
      const loaders = name === 'BILLING_PERIOD_SECONDS' ? [loadBillingConfig, loadQuotaConfig, loadEdgeConfig] : load;
      if (loaders.length === 0 || loaders.includes(undefined)) throw new Error(`No reader is known for ${name} of ${section}.`);
      return loaders.map((loader) => ({ name, ...(port === undefined ? { minimum, maximum } : { minimum: '0', maximum: '65535' }), load: loader as NumberSetting['load'] }));
    });
  });
}

const SETTINGS = numberSettings();

/** Several services may share a setting's name: a start of all services accepts only values that each of them accepts. */
const narrowestOf = (name: string): string => String(Math.max(...SETTINGS.filter((setting) => setting.name === name).map(({ minimum }) => Number(minimum))));

function problemOf(load: () => unknown): string {
  try {
    load();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

test('every kind of number is among the settings', () => {
  const names = SETTINGS.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['PORT', 'BILLING_PERIOD_SECONDS', 'QUALITY_CANARY_SHARE', 'OTEL_TRACES_SAMPLER_ARG', 'PDF_BYTES_MAX', 'OLLAMA_NUM_CTX', 'DRAIN_MS', 'GRPC_PORT']));
  expect(names.length).toBeGreaterThan(35);
});

describe.each(SETTINGS)('$name from $minimum to $maximum', ({ name, minimum, maximum, load }) => {
  const isShare = maximum === '1';
  const wrong = ['NaN', 'Infinity', '-Infinity', '1e99', '-1', '0x10', '0b1', '1_000', '1,5', '1 2', '٣', '1\n2', 'sk-a-secret-in-the-wrong-place', '9'.repeat(400), String(Number(maximum) + 1), ...(isShare ? ['1.01'] : ['1.5', '1e2', '+1'])];

  test.each(wrong)('%j is refused in one line that says so', (text) => {
    const found = /^[-+]?(?:\d[\w.+-]{0,11}|Infinity|NaN)$/.test(text) ? text : `a text of ${String(text.length)} characters`;
    const lineFrom = (least: string): RegExp => new RegExp(`^${name}: must be a (port|whole number|number) from ${least} to ${maximum}, found ${found.replaceAll('+', '\\+').replaceAll('.', '\\.')}$`);
    expect(problemOf(() => load({ ...NEEDED, [name]: text }))).toMatch(lineFrom(minimum));
    if (!OF_A_PROCESS.has(name)) expect(problemOf(() => checkSettings({ [name]: text }))).toMatch(lineFrom(narrowestOf(name)));
  });

  test('both bounds are taken, and nothing where there is nothing', () => {
    for (const text of [minimum, ` ${maximum} `, '', ' \t']) expect(problemOf(() => load({ ...NEEDED, ...WIDE, [name]: text }))).toBe('');
  });
});

test('all that is wrong is told at once, a line each', () => {
  expect(problemOf(() => checkSettings({ BILLING_PERIOD_SECONDS: '1e99', PORT: 'x', SIMULATOR: 'on', DRAIN_MS: '-1', CONTRACT_VARIANT: 'C' })).split('\n').map((line) => line.split(':')[0]).sort()).toEqual(['BILLING_PERIOD_SECONDS', 'CONTRACT_VARIANT', 'DRAIN_MS', 'PORT']);
  expect(problemOf(() => checkSettings({}))).toBe('');
  expect(problemOf(() => checkSettings({ LOG_LEVEL: 'loud', PORT: 'abc' })).split('\n').map((line) => line.split(':')[0]).sort()).toEqual(['LOG_LEVEL', 'PORT']);
});

test('two doors of ours are not on one port, and what is no address of Postgres is told as such, without it', () => {
  expect(problemOf(() => checkSettings({ PORT: '18680', ADMIN_PORT: '18680' }))).toBe('ADMIN_PORT: must be another port than PORT has');
  expect(problemOf(() => checkSettings({ PORT: '8081' }))).toBe('ADMIN_PORT: must be another port than PORT has');
  expect(problemOf(() => checkSettings({ PORT: '0', ADMIN_PORT: '0' }))).toBe('');
  for (const taken of [{ PORT: '18680' }, { ADMIN_PORT: '18680' }]) expect(problemOf(() => checkSettings({ ...taken, METRICS_PORT: '18680' }))).toBe('METRICS_PORT: must be another port than PORT and ADMIN_PORT have');
  expect(problemOf(() => checkSettings({ METRICS_PORT: '8080' }, { hasServices: true }))).toBe('');
  expect(problemOf(() => checkSettings({ REDIS_URL: 'http://u:secret@x', NATS_URL: 'secret' }, { hasServices: true })).split('\n').sort()).toEqual(['NATS_URL: must be nats://host:port, several with commas', 'REDIS_URL: must be redis://host:port, or rediss://host:port']);
  for (const given of [{}, { REDIS_URL: ' ', NATS_URL: ' ' }, { REDIS_URL: 'rediss://u:p@x:1', NATS_URL: 'nats://x:1,tls://y' }]) expect(problemOf(() => checkSettings(given, { hasServices: true }))).toBe('');
  // They are not used there.
  expect(problemOf(() => checkSettings({ REDIS_URL: 'http://x', NATS_URL: 'x' }))).toBe('');
  expect(problemOf(() => checkSettings({ DATABASE_URL: 'mysql://u:secret@x/y' }))).toBe('DATABASE_URL: must begin with postgres:// (or postgresql://)');
  for (const secret of ['a/b', 'a#b', 'a?b']) expect(problemOf(() => checkSettings({ DATABASE_URL: `postgres://u:${secret}@x/y` }))).toBe('DATABASE_URL: cannot be read as a URL; a user and a password write / as %2F, # as %23, ? as %3F, @ as %40 and % as %25');
  for (const url of ['postgres://x', 'postgres://u:p@/y?host=/run', 'postgres://u:p%2F@x/my db', 'postgresql://u:p@x:1/y?host=/run', '/run/postgresql signalbox', 'socket:/run?db=x']) expect(problemOf(() => checkSettings({ DATABASE_URL: url }))).toBe('');
});

test('settings of a provider that is served are read, and of one that is off they are not', () => {
  expect(problemOf(() => checkSettings({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'nonsense' }))).toBe('OPENAI_BASE_URL: must be an http or https URL');
  expect(problemOf(() => checkSettings({ OLLAMA: 'off', OLLAMA_NUM_CTX: '1' }))).toBe('');
});

test('SNAPSHOT_DIR is a folder that can be written, or the start ends with its line', () => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-snapshots-'));
  writeFileSync(join(root, 'file'), '');
  expect(problemOf(() => checkSettings({ SNAPSHOT_DIR: join(root, 'file') }))).toBe(`SNAPSHOT_DIR: ${root}/file is not a folder that can be written (ENOTDIR).`);
  expect(problemOf(() => checkSettings({ SNAPSHOT_DIR: join(root, 'kept') }))).toBe('');
  rmSync(root, { recursive: true, force: true });
});
