/** All services in one process, with embedded Postgres, and counters and bus in memory. */
import type { Bus } from '@signalbox/bus/bus';
import { createMemoryBus } from '@signalbox/bus/memory';
import { composeAccounts } from '@signalbox/accounts/compose';
import { loadAccountsConfig } from '@signalbox/accounts/config';
import { composeBilling } from '@signalbox/billing/compose';
import { loadBillingConfig } from '@signalbox/billing/config';
import { composeEdge } from '@signalbox/edge/compose';
import { loadEdgeConfig } from '@signalbox/edge/config';
import { composePlugins } from '@signalbox/plugins/compose';
import { loadPluginsConfig } from '@signalbox/plugins/config';
import { composeSandbox } from '@signalbox/sandbox/compose';
import { loadSandboxConfig } from '@signalbox/sandbox/config';
import { composeQuota } from '@signalbox/quota/compose';
import { loadQuotaConfig } from '@signalbox/quota/config';
import { composeRouting } from '@signalbox/routing/compose';
import { loadRoutingConfig } from '@signalbox/routing/config';
import { systemClock } from '@signalbox/runtime/clock';
import { hostInUrl, loadConfig, logLevelOf, optionalPortField } from '@signalbox/runtime/config';
import { quietPort } from '@signalbox/local-stores/ports';
import type { ProcessDoors, Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createLog } from '@signalbox/runtime/log';
import { loadTracingConfig, openTracing } from '@signalbox/runtime/tracing';
import { randomBytes } from '@signalbox/runtime/random';
import type { SessionLock } from '@signalbox/sql/session-lock';
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
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { checkSettings } from './check-settings.js';
import { claimDatabase } from './claim-database.js';
import { openDataDir } from './data-dir.js';
import { claimLogs } from './earlier-start.js';
import type { EmbeddedStore } from './embedded-store.js';
import { findOllama, offeredModels, type FoundOllama } from './find-ollama.js';
import { findVllmModels, offeredByVllm } from './find-vllm.js';
import { makeFirstKey } from './first-key.js';
import { openMetricsDoor, type MetricsDoor } from './metrics-door.js';
import { checkProviderSettings, tellUnusedStores } from './provider-settings.js';
import { recoverLeftDirectories } from './recover.js';
import { serviceSettings } from './service-settings.js';
import { tellOperator } from './tell-operator.js';
import { beginLateWorkers } from './late-workers.js';
import { adviceOn, possibleWorkers, providerSettings, wantedWorkers, type Environment, type WantedWorker } from './wanted-workers.js';

/** Build output of the dashboard. */
const DASHBOARD_DIR = fileURLToPath(new URL('../../../services/dashboard/dist/site', import.meta.url));

export interface Standalone {
  readonly baseUrl: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  /** Undefined if there is no dashboard, for example because it was not built. */
  readonly dashboardUrl: string | undefined;
  /** Set if METRICS_PORT is. */
  readonly metricsUrl: string | undefined;
  /** Set only at the first start. */
  readonly firstKey: string | undefined;
  readonly services: readonly Service[];
  /** Drains every service, then stops the store. Safe to call twice. */
  stop(): Promise<void>;
}

/** Port of the metrics of all services; not opened unless set. */
const metricsDoorSchema = z.object({ METRICS_PORT: optionalPortField() });

interface Started {
  readonly service: Service;
  readonly address: string;
}

/**
 * Starts all services on the store that is being opened. If one fails to start, stops everything again.
 * If `signal` is aborted, the call rejects, unless clients may have been answered already.
 */
export async function startStandalone(environment: Environment, opening: Promise<EmbeddedStore>, signal?: AbortSignal): Promise<Standalone> {
  const dataDir = resolve(environment['DATA_DIR'] || '.data');
  checkSettings(environment);
  const level = logLevelOf(environment, 'warn');
  const { METRICS_PORT: metricsPort } = loadConfig(metricsDoorSchema, environment);
  checkProviderSettings(environment, tellOperator);
  tellUnusedStores(environment, tellOperator);
  const secrets = openDataDir(dataDir, environment);
  const tracing = await openTracing(loadTracingConfig(environment), { clock: systemClock, log: createLog({ service: 'tracing', level }) });
  const bus = createMemoryBus({ clock: systemClock });
  const running: Service[] = [];
  let store: EmbeddedStore | undefined;
  let stopped: Promise<void> | undefined;
  let stopLate: (() => Promise<void>) | undefined;
  let metricsDoor: MetricsDoor | undefined;
  let releaseLogs: (() => void) | undefined;
  let database: SessionLock | undefined;

  const stopAll = async (): Promise<void> => {
    await stopLate?.();
    await metricsDoor?.stop();
    for (const service of [...running].reverse()) await service.stop();
    await bus.close();
    await database?.release();
    await store?.stop();
    releaseLogs?.();
    await tracing?.stop();
  };
  const stop = (): Promise<void> => (stopped ??= stopAll());

  const doors: ProcessDoors = new Map();
  const surroundings = (service: string): Surroundings => ({ clock: systemClock, randomBytes, log: createLog({ service, level }), withProcessMetrics: service === 'edge', doors, tracer: tracing?.tracer(service) });
  const common = { HOST: '127.0.0.1', LOG_LEVEL: level, BILLING_PERIOD_SECONDS: environment['BILLING_PERIOD_SECONDS'], KEY_PEPPER: secrets.keyPepper, SECRETS_KEY: secrets.secretsKey };
  /** Services stop in reverse order: one that starts late is inserted before those that need it while they drain. */
  const start = (service: Service, before?: Service): Promise<Started> => {
    running.splice(before === undefined ? running.length : running.indexOf(before), 0, service);
    const started = service.start().then(() => ({ service, address: `127.0.0.1:${service.ports()['grpc'] ?? 0}` }));
    // It may reject after another failure has ended the start, when nothing awaits it any more.
    started.catch(() => undefined);
    return started;
  };

  // Stopping the store makes all starting services fail at once.
  const giveUp = (): void => void opening.then((opened) => opened.stop()).catch(() => undefined);
  signal?.addEventListener('abort', giveUp);
  // In parallel with the opening of the store.
  const findingOllama = findOllama(environment);
  const findingVllm = findVllmModels(environment);
  try {
    store = await opening;
    signal?.throwIfAborted();
    // Before anything counts or writes.
    database = await claimDatabase({ url: store.databaseUrl, counters: 'memory', clock: systemClock, log: createLog({ service: 'database', level }), tell: tellOperator, signal });
    if (metricsPort !== undefined) metricsDoor = await openMetricsDoor({ host: '127.0.0.1', port: metricsPort, services: running });
    const stores = { ...common, DATABASE_URL: store.databaseUrl };
    const walDir = environment['WAL_DIR'] || `${dataDir}/wal`;
    releaseLogs = claimLogs(walDir);

    let tellWorkers: (workers: ReadonlyMap<string, readonly string[]>) => void = () => undefined;
    const workersKnown = new Promise<ReadonlyMap<string, readonly string[]>>((known) => {
      tellWorkers = known;
    });
    const startingAccounts = start(composeAccounts(loadAccountsConfig({ ...stores, ...serviceSettings('accounts', environment) }), surroundings('accounts'), { bus }));
    const startingPlugins = start(composeSandbox(loadSandboxConfig({ ...common, ...serviceSettings('sandbox', environment) }), surroundings('sandbox'))).then(({ address }) =>
      start(composePlugins(loadPluginsConfig({ ...stores, ...serviceSettings('plugins', environment), SANDBOX_ADDRS: address }), surroundings('plugins'), { workers: workersKnown })),
    );
    startingPlugins.catch(() => undefined);
    const accountsAddress = startingAccounts.then(({ address }) => address);
    accountsAddress.catch(() => undefined);
    const [accounts, billing] = await Promise.all([
      startingAccounts,
      start(composeBilling(loadBillingConfig({ ...stores, ...serviceSettings('billing', environment) }), surroundings('billing'), { bus, accountsAddress })),
    ]);
    const quota = await start(composeQuota(loadQuotaConfig({ ...common, ...serviceSettings('quota', environment), QUOTA_STORE: 'memory', BILLING_ADDRS: billing.address }), surroundings('quota'), { bus, isAlone: true }));

    // Before any worker starts: books what an earlier process left open, so that the ledger's totals for the empty counters are complete.
    await recoverLeftDirectories({ walDir, quotaAddress: quota.address, billingAddress: billing.address, bus, log: createLog({ service: 'recovery', level }) });
    const ollama = await findingOllama;
    const settings = { ...common, ...serviceSettings('worker', environment), WAL_DIR: walDir, ACCOUNTS_ADDRS: accounts.address, QUOTA_ADDRS: quota.address, BILLING_ADDRS: billing.address };
    const compose = workerComposer(environment, ollama, settings, surroundings, bus);
    const wanted = wantedWorkers(environment, ollama !== undefined);
    const advice = adviceOn(wanted, environment);
    if (advice !== undefined) tellOperator(`signalbox: ${advice}`);
    const workers = await Promise.all(wanted.map(async (worker) => [worker.provider, await start(compose(worker))] as const));
    tellWorkers(new Map(workers.map(([provider, { address }]) => [provider, [address]])));
    const late = new Map<string, { readonly worker: WantedWorker; readonly port: number }>(await Promise.all(possibleWorkers(environment, wanted).map(async (worker) => [worker.provider, { worker, port: await quietPort() }] as const)));
    const providers = workers.map(([provider]) => provider).join(',');
    const offered = [offeredModels(ollama), offeredByVllm(await findingVllm)].filter((list) => list !== '').join(',');
    const routing = await start(composeRouting(loadRoutingConfig({ ...common, PROVIDERS: providers, BYOK_PROVIDERS: [...late.keys()].join(','), OFFERED_MODELS: offered, SNAPSHOT_DIR: `${dataDir}/catalogs`, ...serviceSettings('routing', environment) }), surroundings('routing'), { bus }));

    const plugins = await startingPlugins;

    const edgeConfig = loadEdgeConfig({
      ...common,
      ...present(environment, ['PORT', 'HOST', 'ADMIN_PORT']),
      ...serviceSettings('edge', environment),
      DASHBOARD_DIR: environment['DASHBOARD_DIR'] || DASHBOARD_DIR,
      ADMIN_TOKEN: secrets.adminToken,
      ACCOUNTS_ADDRS: accounts.address,
      ROUTING_ADDRS: routing.address,
      QUOTA_ADDRS: quota.address,
      BILLING_ADDRS: billing.address,
      PLUGINS_ADDRS: plugins.address,
      WORKERS: [...workers.map(([provider, { address }]) => `${provider}=${address}`), ...[...late].map(([provider, { port }]) => `${provider}=127.0.0.1:${port}`)].join(','),
    });
    stopLate = await beginLateWorkers(accounts.address, bus, createLog({ service: 'late-workers', level }), new Set(late.keys()), async (provider) => {
      const found = late.get(provider);
      if (found !== undefined) await start(compose(found.worker, found.port), routing.service);
    }, doors);
    signal?.throwIfAborted();
    signal?.removeEventListener('abort', giveUp);
    const edge = await start(composeEdge(edgeConfig, surroundings('edge'), { bus }));
    const firstKey = await makeFirstKey(accounts.address, doors);
    const { http = 0, admin = 0 } = edge.service.ports();
    const baseUrl = `http://${hostInUrl(edgeConfig.HOST)}:${http}`;
    return { baseUrl, dashboardUrl: dashboardUrlOf(baseUrl, edgeConfig.DASHBOARD_DIR), adminUrl: `http://127.0.0.1:${admin}`, adminToken: secrets.adminToken, metricsUrl: metricsDoor === undefined ? undefined : `http://127.0.0.1:${metricsDoor.port}/metrics`, firstKey, services: running, stop };
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}

function dashboardUrlOf(baseUrl: string, folder: string | undefined): string | undefined {
  return folder !== undefined && existsSync(join(folder, 'index.html')) ? `${baseUrl}/dashboard` : undefined;
}

/** The variables that are set. */
function present(environment: Environment, names: readonly string[]): Environment {
  return Object.fromEntries(names.filter((name) => environment[name] !== undefined).map((name) => [name, environment[name]]));
}

/** Composes a worker without starting it; `port` for RPC, any free port if absent. */
function workerComposer(
  environment: Environment,
  ollama: FoundOllama | undefined,
  settings: Environment,
  surroundings: (service: string) => Surroundings,
  bus: Bus,
): (worker: WantedWorker, port?: number) => Service {
  return ({ service, provider }, port = 0) => {
    const own = { ...settings, ...providerSettings(provider, environment), ...(provider !== 'ollama' || ollama === undefined ? {} : { OLLAMA_BASE_URL: ollama.baseUrl }), GRPC_PORT: String(port) };
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
}
