import { describe, expect, test } from '@jest/globals';
import { possibleWorkers, wantedWorkers, type WantedWorker } from '@signalbox/standalone/wanted-workers';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { environmentOf, workerEnvironmentOf, type Given } from './environments.js';

const GIVEN: Given = { DATABASE_URL: 'postgres://x', REDIS_URL: 'redis://x', NATS_URL: 'nats://x', KEY_PEPPER: 'pepper', SECRETS_KEY: 'sealing', ADMIN_TOKEN: 'admin' };
const SERVICES = ['accounts', 'billing', 'quota', 'routing', 'sandbox', 'plugins', 'edge'] as const;

interface Compose {
  readonly services: Readonly<Record<string, { readonly environment?: Readonly<Record<string, string>> }>>;
}
const composed = (parse(readFileSync(new URL('../../../docker-compose.yml', import.meta.url), 'utf8')) as Compose).services;

/** All variables that any worker may read, and others that an operator's shell may have. */
const credentials = Object.entries(composed).flatMap(([name, { environment = {} }]) => (name.startsWith('worker-') ? Object.keys(environment).filter((variable) => /_(KEY|TOKEN|TOKEN_BEDROCK|KEY_ID|BASE_URL|CREDENTIALS|REGION|VERSION|DEPLOYMENTS|NAME|PROJECT|LOCATION|NUM_CTX|ALIVE)$/.test(variable)) : []));
const PROCESS = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_OPTIONS', 'MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'LOG_LEVEL'];
const CALLER = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_TRACES_SAMPLER_ARG'];
const STRANGERS = ['GITHUB_TOKEN', 'NPM_TOKEN', 'SOME_API_KEY', 'SSH_AUTH_SOCK', 'PGPASSWORD'];
const shell = Object.fromEntries([...credentials, ...PROCESS, ...CALLER, ...STRANGERS, ...Object.keys(GIVEN), 'BILLING_PERIOD_SECONDS', 'SECRETS_KEYS_OLD', 'WEB_SEARCH_KEY', 'HOST', 'DATA_DIR'].map((name) => [name, 'given']));

const namesOf = (environment: Readonly<Record<string, string>>): readonly string[] => Object.keys(environment).sort();
const sorted = (...lists: (readonly string[])[]): readonly string[] => lists.flat().sort();

test.each<[(typeof SERVICES)[number] | 'worker', readonly string[]]>([
  ['accounts', ['DATABASE_URL', 'KEY_PEPPER', 'SECRETS_KEY', 'SECRETS_KEYS_OLD', 'NATS_URL', ...CALLER]],
  ['billing', ['DATABASE_URL', 'NATS_URL', 'BILLING_PERIOD_SECONDS', ...CALLER]],
  ['quota', ['REDIS_URL', 'NATS_URL', 'BILLING_PERIOD_SECONDS', ...CALLER]],
  ['routing', ['NATS_URL', ...CALLER]],
  ['sandbox', []],
  ['plugins', ['DATABASE_URL', 'WEB_SEARCH_KEY', ...CALLER]],
  ['worker', ['NATS_URL', ...CALLER]],
  ['edge', ['KEY_PEPPER', 'ADMIN_TOKEN', 'NATS_URL', 'BILLING_PERIOD_SECONDS', ...CALLER]],
])('%s has in its environment what it works with, and nothing else', (service, own) => {
  expect(namesOf(environmentOf(service, shell, GIVEN))).toEqual(sorted(PROCESS, ['HOST'], own));
});

test('what the operator did not set is not there, and what the stores are is what was found', () => {
  expect(environmentOf('billing', { PATH: '/bin', LANG: '', DATABASE_URL: 'postgres://other' }, GIVEN)).toEqual({ MALLOC_ARENA_MAX: '3', MALLOC_MMAP_THRESHOLD_: '131072', PATH: '/bin', HOST: '127.0.0.1', DATABASE_URL: 'postgres://x', NATS_URL: 'nats://x' });
});

test.each(SERVICES)('%s is given the stores and secrets that its container has', (service) => {
  const ofStores = (environment: Readonly<Record<string, string>>): readonly string[] => Object.keys(environment).filter((name) => name in GIVEN).sort();
  expect(ofStores(environmentOf(service, {}, GIVEN))).toEqual(ofStores(composed[service]?.environment ?? {}));
});

describe('a worker', () => {
  /** By provider, as in edge's WORKERS. */
  const containers = new Map((composed['edge']?.environment?.['WORKERS'] ?? '').split(',').map((pair): [string, string] => [pair.split('=')[0] ?? '', (pair.split('=')[1] ?? '').split(':')[0] ?? '']));
  const wanted = wantedWorkers({ ...shell, SIMULATOR: 'on' }, true);
  const workers: readonly WantedWorker[] = [...wanted, ...possibleWorkers({}, wanted)];

  test('of every provider that has a container can be started here', () => {
    expect(workers.map(({ provider }) => provider).sort()).toEqual([...containers.keys()].sort());
  });

  test.each(workers.map((worker): [string, WantedWorker] => [worker.provider, worker]))('of %s has what its container has of credentials, and of no other provider any', (provider, worker) => {
    const container = Object.keys(composed[containers.get(provider) ?? '']?.environment ?? {}).filter((name) => credentials.includes(name));
    const more = provider === 'amazon-bedrock' ? ['AWS_DEFAULT_REGION'] : [];
    const environment = workerEnvironmentOf(worker, { ...shell, AWS_DEFAULT_REGION: 'given' }, GIVEN);
    expect(namesOf(environment)).toEqual(sorted(PROCESS, CALLER, ['HOST', 'NATS_URL'], container, more, provider === 'simulator' ? [] : ['PROVIDER']));
  });
});
