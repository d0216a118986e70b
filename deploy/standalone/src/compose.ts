/** Every service in one process: real rpc on loopback, embedded Postgres, counters and bus in memory. */
import type { Bus } from '@signalbox/bus/bus';
import { createMemoryBus } from '@signalbox/bus/memory';
import { composeAccounts } from '@signalbox/accounts/compose';
import { loadAccountsConfig } from '@signalbox/accounts/config';
import { composeBilling } from '@signalbox/billing/compose';
import { loadBillingConfig } from '@signalbox/billing/config';
import { composeEdge } from '@signalbox/edge/compose';
import { loadEdgeConfig } from '@signalbox/edge/config';
import { composeQuota } from '@signalbox/quota/compose';
import { loadQuotaConfig } from '@signalbox/quota/config';
import { composeRouting } from '@signalbox/routing/compose';
import { loadRoutingConfig } from '@signalbox/routing/config';
import { systemClock } from '@signalbox/runtime/clock';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeWorkerAnthropic } from '@signalbox/worker-anthropic/compose';
import { loadWorkerAnthropicConfig } from '@signalbox/worker-anthropic/config';
import { composeWorkerAzure } from '@signalbox/worker-azure/compose';
import { loadWorkerAzureConfig } from '@signalbox/worker-azure/config';
import { composeWorkerBedrock } from '@signalbox/worker-bedrock/compose';
import { loadWorkerBedrockConfig } from '@signalbox/worker-bedrock/config';
import { composeWorkerCohere } from '@signalbox/worker-cohere/compose';
import { loadWorkerCohereConfig } from '@signalbox/worker-cohere/config';
import { composeWorkerGoogle } from '@signalbox/worker-google/compose';
import { loadWorkerGoogleConfig } from '@signalbox/worker-google/config';
import { composeWorkerOllama } from '@signalbox/worker-ollama/compose';
import { loadWorkerOllamaConfig } from '@signalbox/worker-ollama/config';
import { composeWorkerOpenaiCompatible } from '@signalbox/worker-openai-compatible/compose';
import { loadWorkerOpenaiCompatibleConfig } from '@signalbox/worker-openai-compatible/config';
import { composeWorkerOpenai } from '@signalbox/worker-openai/compose';
import { loadWorkerOpenaiConfig } from '@signalbox/worker-openai/config';
import { composeWorkerSim } from '@signalbox/worker-sim/compose';
import { loadWorkerSimConfig } from '@signalbox/worker-sim/config';
import { resolve } from 'node:path';
import { openDataDir } from './data-dir.js';
import type { EmbeddedStore } from './embedded-store.js';
import { findOllama, offeredModels, type FoundOllama } from './find-ollama.js';
import { makeFirstKey } from './first-key.js';
import { recoverLeftDirectories } from './recover.js';
import { providerSettings, wantedWorkers, type Environment, type WantedWorker } from './wanted-workers.js';

export interface Standalone {
  readonly baseUrl: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  /** Set at the first start only. */
  readonly firstKey: string | undefined;
  readonly services: readonly Service[];
  /** Drains every service, then stops the store. Safe to call twice. */
  stop(): Promise<void>;
}

interface Started {
  readonly service: Service;
  readonly address: string;
}

/** Starts everything on the store that is being opened; whatever was started is stopped again when a part of it cannot start. */
export async function startStandalone(environment: Environment, opening: Promise<EmbeddedStore>): Promise<Standalone> {
  const dataDir = resolve(environment['DATA_DIR'] || '.data');
  const level = environment['LOG_LEVEL'] || 'warn';
  const secrets = openDataDir(dataDir, environment);
  const bus = createMemoryBus({ clock: systemClock });
  const running: Service[] = [];
  let store: EmbeddedStore | undefined;
  let stopped: Promise<void> | undefined;

  const stopAll = async (): Promise<void> => {
    for (const service of [...running].reverse()) await service.stop();
    await bus.close();
    await store?.stop();
  };
  const stop = (): Promise<void> => (stopped ??= stopAll());

  const surroundings = (service: string): Surroundings => ({ clock: systemClock, randomBytes, log: createLog({ service, level }), withProcessMetrics: service === 'edge' });
  const common = { HOST: '127.0.0.1', LOG_LEVEL: level, BILLING_PERIOD_SECONDS: environment['BILLING_PERIOD_SECONDS'], KEY_PEPPER: secrets.keyPepper, SECRETS_KEY: secrets.secretsKey };
  const start = async (service: Service): Promise<Started> => {
    running.push(service);
    await service.start();
    return { service, address: `127.0.0.1:${service.ports()['grpc'] ?? 0}` };
  };

  // Asked while the store opens.
  const findingOllama = findOllama(environment);
  try {
    store = await opening;
    const stores = { ...common, DATABASE_URL: store.databaseUrl };
    const walDir = environment['WAL_DIR'] || `${dataDir}/wal`;

    const [accounts, billing] = await Promise.all([
      start(composeAccounts(loadAccountsConfig(stores), surroundings('accounts'), { bus })),
      start(composeBilling(loadBillingConfig(stores), surroundings('billing'), { bus })),
    ]);
    const quota = await start(composeQuota(loadQuotaConfig({ ...common, QUOTA_STORE: 'memory', BILLING_ADDRS: billing.address }), surroundings('quota'), { bus }));

    const ollama = await findingOllama;
    const workers = await startWorkers(environment, ollama, { ...common, WAL_DIR: walDir, QUOTA_ADDRS: quota.address, BILLING_ADDRS: billing.address }, surroundings, start, bus);
    await recoverLeftDirectories({ walDir, quotaAddress: quota.address, billingAddress: billing.address, bus, log: createLog({ service: 'recovery', level }) });

    const providers = workers.map(([provider]) => provider).join(',');
    const routing = await start(composeRouting(loadRoutingConfig({ ...common, PROVIDERS: providers, SIMULATOR: environment['SIMULATOR'], CATALOG_DIR: environment['CATALOG_DIR'], OFFERED_MODELS: offeredModels(ollama) }), surroundings('routing'), { bus }));

    const edgeConfig = loadEdgeConfig({
      ...common,
      ...Object.fromEntries(['PORT', 'HOST', 'ADMIN_PORT', 'CONTRACT_VARIANT', 'BODY_BYTES_MAX', 'ACCESS_LOG_PER_MILLE', 'QUOTA_DEADLINE_MS'].filter((name) => environment[name] !== undefined).map((name) => [name, environment[name]])),
      ADMIN_TOKEN: secrets.adminToken,
      ACCOUNTS_ADDRS: accounts.address,
      ROUTING_ADDRS: routing.address,
      QUOTA_ADDRS: quota.address,
      BILLING_ADDRS: billing.address,
      WORKERS: workers.map(([provider, { address }]) => `${provider}=${address}`).join(','),
    });
    const edge = await start(composeEdge(edgeConfig, surroundings('edge'), { bus }));
    const firstKey = await makeFirstKey(accounts.address);
    const { http = 0, admin = 0 } = edge.service.ports();
    return { baseUrl: `http://${hostInUrl(edgeConfig.HOST)}:${http}`, adminUrl: `http://127.0.0.1:${admin}`, adminToken: secrets.adminToken, firstKey, services: running, stop };
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}

function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** One worker for each provider that the environment asks for. */
function startWorkers(
  environment: Environment,
  ollama: FoundOllama | undefined,
  settings: Environment,
  surroundings: (service: string) => Surroundings,
  start: (service: Service) => Promise<Started>,
  bus: Bus,
): Promise<readonly (readonly [string, Started])[]> {
  const own = { ...settings, ...providerSettings(environment), ...(ollama === undefined ? {} : { OLLAMA_BASE_URL: ollama.baseUrl }) };
  const compose = ({ service, provider }: WantedWorker): Service => {
    switch (service) {
      case 'worker-anthropic':
        return composeWorkerAnthropic(loadWorkerAnthropicConfig({ ...own, PROVIDER: provider }), surroundings(`worker-${provider}`), { bus });
      case 'worker-azure':
        return composeWorkerAzure(loadWorkerAzureConfig(own), surroundings(service), { bus });
      case 'worker-bedrock':
        return composeWorkerBedrock(loadWorkerBedrockConfig(own), surroundings(service), { bus });
      case 'worker-cohere':
        return composeWorkerCohere(loadWorkerCohereConfig(own), surroundings(service), { bus });
      case 'worker-google':
        return composeWorkerGoogle(loadWorkerGoogleConfig({ ...own, PROVIDER: provider }), surroundings(`worker-${provider}`), { bus });
      case 'worker-ollama':
        return composeWorkerOllama(loadWorkerOllamaConfig(own), surroundings(service), { bus });
      case 'worker-openai':
        return composeWorkerOpenai(loadWorkerOpenaiConfig(own), surroundings(service), { bus });
      case 'worker-openai-compatible':
        return composeWorkerOpenaiCompatible(loadWorkerOpenaiCompatibleConfig({ ...own, PROVIDER: provider }), surroundings(`worker-${provider}`), { bus });
      case 'worker-sim':
        return composeWorkerSim(loadWorkerSimConfig(settings), surroundings(service), { bus });
    }
  };
  return Promise.all(wantedWorkers(environment, ollama !== undefined).map(async (wanted) => [wanted.provider, await start(compose(wanted))] as const));
}
