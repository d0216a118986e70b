/** Checks all settings before anything starts, so that each mistake is reported once, however many services would refuse it. */
import { loadAccountsConfig } from '@signalbox/accounts/config';
import { loadBillingConfig } from '@signalbox/billing/config';
import { hostsOf } from '@signalbox/bus/nats-url';
import { loadEdgeConfig } from '@signalbox/edge/config';
import { loadPluginsConfig } from '@signalbox/plugins/config';
import { loadQuotaConfig } from '@signalbox/quota/config';
import { loadRoutingConfig } from '@signalbox/routing/config';
import { ConfigError } from '@signalbox/runtime/config';
import { makeFolder } from '@signalbox/runtime/folder';
import { loadTracingConfig } from '@signalbox/runtime/tracing';
import { loadSandboxConfig } from '@signalbox/sandbox/config';
import { loadWorkerAnthropicConfig } from '@signalbox/worker-anthropic/config';
import { loadWorkerAzureConfig } from '@signalbox/worker-azure/config';
import { loadWorkerBedrockConfig } from '@signalbox/worker-bedrock/config';
import { loadWorkerCohereConfig } from '@signalbox/worker-cohere/config';
import { loadWorkerGoogleConfig } from '@signalbox/worker-google/config';
import { loadWorkerOllamaConfig } from '@signalbox/worker-ollama/config';
import { loadWorkerOpenaiCompatibleConfig } from '@signalbox/worker-openai-compatible/config';
import { loadWorkerOpenaiConfig } from '@signalbox/worker-openai/config';
import { loadWorkerSimConfig } from '@signalbox/worker-sim/config';
import { serviceSettings } from './service-settings.js';
import { providerSettings, wantedWorkers, type Environment, type WantedWorker } from './wanted-workers.js';

const WORKERS: Readonly<Record<WantedWorker['service'], (environment: Environment) => unknown>> = {
  'worker-anthropic': loadWorkerAnthropicConfig,
  'worker-azure': loadWorkerAzureConfig,
  'worker-bedrock': loadWorkerBedrockConfig,
  'worker-cohere': loadWorkerCohereConfig,
  'worker-google': loadWorkerGoogleConfig,
  'worker-ollama': loadWorkerOllamaConfig,
  'worker-openai': loadWorkerOpenaiConfig,
  'worker-openai-compatible': loadWorkerOpenaiCompatibleConfig,
  'worker-sim': loadWorkerSimConfig,
};

/** Valid placeholders for settings that the start itself sets. */
const SET_BY_THE_START = { DATABASE_URL: 'postgres://start', REDIS_URL: 'redis://start', ACCOUNTS_ADDRS: 'start:1', ROUTING_ADDRS: 'start:1', QUOTA_ADDRS: 'start:1', BILLING_ADDRS: 'start:1', WORKERS: 'start=start:1' } as const;
const MADE_SECRET = 'made-where-it-is-not-given';

/** Throws ConfigError with one line for each setting that is wrong. `hasServices`: each service is a process of its own, so that REDIS_URL and NATS_URL are used. */
export function checkSettings(environment: Environment, { hasServices = false }: { readonly hasServices?: boolean } = {}): void {
  const problems = new Map<string, string>();
  const read = (load: () => unknown): void => {
    try {
      load();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const line of error.message.split('\n')) {
        const name = line.slice(0, line.indexOf(':'));
        if (!problems.has(name)) problems.set(name, line);
      }
    }
  };
  const given = (name: string): string => environment[name] || MADE_SECRET;
  const ofStore = (name: 'REDIS_URL' | 'NATS_URL'): string => (hasServices ? (environment[name] ?? '').trim() : '');
  const common = { ...SET_BY_THE_START, DATABASE_URL: environment['DATABASE_URL'] || SET_BY_THE_START.DATABASE_URL, LOG_LEVEL: environment['LOG_LEVEL'], BILLING_PERIOD_SECONDS: environment['BILLING_PERIOD_SECONDS'], KEY_PEPPER: given('KEY_PEPPER'), SECRETS_KEY: given('SECRETS_KEY') };
  read(() => loadTracingConfig(environment));
  if (ofStore('NATS_URL') !== '') read(() => hostsOf(ofStore('NATS_URL')));
  // Billing first: it has the narrowest bounds of settings that several services share.
  read(() => loadBillingConfig({ ...common, ...serviceSettings('billing', environment) }));
  read(() => loadAccountsConfig({ ...common, ...serviceSettings('accounts', environment) }));
  read(() => loadQuotaConfig({ ...common, REDIS_URL: ofStore('REDIS_URL') || SET_BY_THE_START.REDIS_URL, ...serviceSettings('quota', environment) }));
  read(() => loadRoutingConfig({ ...common, ...serviceSettings('routing', environment) }));
  read(() => loadSandboxConfig({ ...common, ...serviceSettings('sandbox', environment) }));
  read(() => loadPluginsConfig({ ...common, ...serviceSettings('plugins', environment) }));
  read(() => loadEdgeConfig({ ...common, ...serviceSettings('edge', environment), PORT: environment['PORT'], ADMIN_PORT: environment['ADMIN_PORT'], METRICS_PORT: hasServices ? undefined : environment['METRICS_PORT'], ADMIN_TOKEN: given('ADMIN_TOKEN') }));
  for (const { service, provider } of wantedWorkers(environment, environment['OLLAMA'] !== 'off')) {
    read(() => WORKERS[service]({ ...common, ...serviceSettings('worker', environment), ...providerSettings(provider, environment), PROVIDER: provider }));
  }
  const snapshots = environment['SNAPSHOT_DIR'] ?? '';
  if (snapshots.trim() !== '') read(() => makeFolder(snapshots, 'SNAPSHOT_DIR', 0o700));
  if (problems.size > 0) throw new ConfigError([...problems.values()].join('\n'));
}
