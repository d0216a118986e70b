/** The processes of the split system and their environments, with the same names as in other deployments. */
import { connectJetStreamBus } from '@signalbox/bus/jetstream';
import { findStores, type FoundStores } from '@signalbox/local-stores/find';
import { quietPort } from '@signalbox/local-stores/ports';
import { systemClock } from '@signalbox/runtime/clock';
import { hostInUrl, logLevelOf } from '@signalbox/runtime/config';
import { createLog } from '@signalbox/runtime/log';
import { checkSettings } from '@signalbox/standalone/check-settings';
import { claimDatabase } from '@signalbox/standalone/claim-database';
import { claimDataDir, openDataDir, type KeptSecrets } from '@signalbox/standalone/data-dir';
import { claimLogs, waitForEarlierStart } from '@signalbox/standalone/earlier-start';
import { findOllama, offeredModels } from '@signalbox/standalone/find-ollama';
import { findVllmModels, offeredByVllm } from '@signalbox/standalone/find-vllm';
import { makeFirstKey } from '@signalbox/standalone/first-key';
import { checkProviderSettings } from '@signalbox/standalone/provider-settings';
import { recoverLeftDirectories } from '@signalbox/standalone/recover';
import { tellOperator } from '@signalbox/standalone/tell-operator';
import { beginLateWorkers } from '@signalbox/standalone/late-workers';
import { adviceOn, possibleWorkers, wantedWorkers, type Environment, type WantedWorker } from '@signalbox/standalone/wanted-workers';
import type { SessionLock } from '@signalbox/sql/session-lock';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { environmentOf, workerEnvironmentOf, type Given } from './environments.js';
import { keepProcess, type ProcessKeeper, type ProcessState } from './process-keeper.js';

/** Build output of the dashboard. */
const DASHBOARD_DIR = fileURLToPath(new URL('../../../services/dashboard/dist/site', import.meta.url));

export interface Split {
  readonly baseUrl: string;
  readonly adminUrl: string;
  readonly firstKey: string | undefined;
  processes(): readonly ProcessState[];
  stop(): Promise<void>;
}

export interface SplitOptions {
  readonly replicas: ReadonlyMap<string, number>;
  /** Run services from their bundles. */
  readonly isBundled: boolean;
  /** Called with all processes whenever one has a new pid. */
  readonly onProcesses: (processes: readonly ProcessState[]) => void;
  /** Called once with a function that kills all processes immediately. */
  readonly onEnd?: (end: () => void) => void;
  /** If aborted, everything that was started is stopped, and the call rejects. */
  readonly signal?: AbortSignal;
}

/** Order of stopping: edge, then workers and routing, then quota, then accounts and billing. */
function layerOf(role: string): number {
  if (role === 'edge') return 0;
  if (role === 'quota') return 2;
  return role === 'accounts' || role === 'billing' ? 3 : 1;
}

const SERVICES_DIR = fileURLToPath(new URL('../../../services', import.meta.url));
/** Time to end, besides the wait for running streams. */
const STOP_SPARE_MS = 5_000;
const DRAIN_MS = 30_000;
/** Additional time for a worker: it waits for the usage of clients that left (as long again, at most a minute), and then ends. */
const leftBehindMs = (drainMs: number): number => Math.min(drainMs, 60_000) + 15_000;

/** Port 0 means any free port, which stays the same when edge restarts. */
const edgePort = async (wanted: string): Promise<string> => (wanted === '0' ? String(await quietPort()) : wanted);

const walDirOf = (environment: Environment, dataDir: string): string => environment['WAL_DIR'] || join(dataDir, 'split-wal');

const ROLES = ['accounts', 'billing', 'quota', 'routing', 'sandbox', 'plugins', 'edge'];

/** Throws an Error for a person if `--replicas` names a role that does not run here. */
function refuseUnknownRoles(replicas: ReadonlyMap<string, number>, environment: Environment): void {
  // Whether Ollama is running is not known yet, so accept its role.
  const wanted = wantedWorkers(environment, true);
  const known = [...ROLES, ...[...wanted, ...possibleWorkers(environment, wanted)].map(({ provider }) => `worker-${provider}`)];
  const unknown = [...replicas.keys()].filter((role) => !known.includes(role));
  if (unknown.length > 0) throw new Error(`--replicas: there is no ${unknown.join(', ')} here. Roles: ${[...ROLES, 'worker-<provider>'].join(', ')}.`);
}

export async function openSplit(environment: Environment, { replicas, isBundled, onProcesses, onEnd = () => undefined, signal }: SplitOptions): Promise<Split> {
  const dataDir = resolve(environment['DATA_DIR'] || '.data');
  refuseUnknownRoles(replicas, environment);
  checkSettings(environment, { hasServices: true });
  checkProviderSettings(environment, tellOperator);
  const walDir = walDirOf(environment, dataDir);
  const drainMs = Math.max(DRAIN_MS, Number(environment['DRAIN_MS'] ?? 0) || 0);
  const claims = [claimDataDir(dataDir)];
  const releaseClaims = (): void => claims.splice(0).forEach((release) => release());
  let secrets: KeptSecrets;
  let stores: FoundStores;
  try {
    secrets = openDataDir(dataDir, environment);
    claims.push(claimLogs(walDir));
    // Before the stores start: services of an earlier start that still finish use its Postgres.
    await waitForEarlierStart({ walDir, clock: systemClock, limitMs: drainMs + leftBehindMs(drainMs), tell: tellOperator, signal });
    stores = await findStores({ databaseUrl: environment['DATABASE_URL'], redisUrl: environment['REDIS_URL'], natsUrl: environment['NATS_URL'], dataDir: join(dataDir, 'split'), log: createLog({ service: 'stores', level: logLevelOf(environment, 'warn') }) });
  } catch (error) {
    releaseClaims();
    throw error;
  }
  const keepers: ProcessKeeper[] = [];
  const closers: (() => Promise<void>)[] = [];
  let database: SessionLock | undefined;
  const stopGraceMs = drainMs + STOP_SPARE_MS;
  const stopAll = async (): Promise<void> => {
    for (const close of closers) await close();
    // Client-facing services first, then the neighbours that they need while they drain.
    for (const role of [...new Set(keepers.map((keeper) => layerOf(keeper.state().role)))].sort()) {
      await Promise.all(keepers.filter((keeper) => layerOf(keeper.state().role) === role).map((keeper) => keeper.stop(stopGraceMs)));
    }
    await database?.release();
    await stores.stop();
    releaseClaims();
  };
  onEnd(() => {
    for (const keeper of keepers) keeper.kill();
    void stores.stop();
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= stopAll());
  signal?.addEventListener('abort', () => void stop());
  try {
    signal?.throwIfAborted();
    const counters = stores.stores.redis?.origin === 'given' ? 'redis' : 'own-redis';
    database = await claimDatabase({ url: stores.databaseUrl, counters, clock: systemClock, log: createLog({ service: 'database', level: logLevelOf(environment, 'warn') }), tell: tellOperator, signal });
    return await startAll(environment, dataDir, secrets, stores, { replicas, isBundled, onProcesses }, keepers, stop, (closer) => void closers.unshift(closer), signal);
  } catch (error) {
    await stop();
    if (signal?.aborted === true) throw new Error('stopped while it was starting.', { cause: error });
    throw error;
  }
}

async function startAll(
  environment: Environment,
  dataDir: string,
  secrets: KeptSecrets,
  stores: FoundStores,
  { replicas, isBundled, onProcesses }: SplitOptions,
  keepers: ProcessKeeper[],
  stop: () => Promise<void>,
  onStop: (closer: () => Promise<void>) => void,
  signal: AbortSignal | undefined,
): Promise<Split> {
  const processes = (): readonly ProcessState[] => keepers.map((keeper) => keeper.state());
  const given: Given = { DATABASE_URL: stores.databaseUrl, REDIS_URL: stores.redisUrl, NATS_URL: stores.natsUrl, KEY_PEPPER: secrets.keyPepper, SECRETS_KEY: secrets.secretsKey, ADMIN_TOKEN: secrets.adminToken };

  const portsOf = (role: string): Promise<readonly number[]> => Promise.all(Array.from({ length: replicas.get(role) ?? 1 }, () => quietPort()));
  /** Starts every replica of a role, on `grpcPorts` if given; returns their RPC addresses. */
  const start = async (role: string, service: string, own: Readonly<Record<string, string>>, perReplica?: (replica: number) => Promise<Record<string, string>> | Record<string, string>, grpcPorts?: readonly number[]): Promise<string> => {
    const count = replicas.get(role) ?? 1;
    const started = await Promise.all(
      Array.from({ length: count }, async (_, replica) => {
        const [grpcPort, metricsPort] = [grpcPorts?.[replica] ?? (await quietPort()), await quietPort()];
        const keeper = keepProcess({
          role,
          replica,
          main: join(SERVICES_DIR, service, isBundled ? 'dist/program.js' : 'dist/main.js'),
          environment: { ...own, GRPC_PORT: String(grpcPort), METRICS_PORT: String(metricsPort), ...(await perReplica?.(replica)) },
          onRestarted: () => onProcesses(processes()),
          tell: tellOperator,
        });
        signal?.throwIfAborted();
        keepers.push(keeper);
        await keeper.start();
        return `127.0.0.1:${grpcPort}`;
      }),
    );
    return started.join(',');
  };

  // Billing calls accounts only when it makes a bill, not at its start.
  const accounts = await start('accounts', 'accounts', environmentOf('accounts', environment, given));
  const billing = await start('billing', 'billing', { ...environmentOf('billing', environment, given), ACCOUNTS_ADDRS: accounts });
  const quota = await start('quota', 'quota', { ...environmentOf('quota', environment, given), QUOTA_STORE: 'redis', BILLING_ADDRS: billing });

  const walDir = walDirOf(environment, dataDir);
  const neighbours = { ACCOUNTS_ADDRS: accounts, QUOTA_ADDRS: quota, BILLING_ADDRS: billing };
  const workers: string[] = [];
  const [ollama, vllm] = await Promise.all([findOllama(environment), findVllmModels(environment)]);
  const startWorker = (worker: WantedWorker, grpcPorts?: readonly number[]): Promise<string> => {
    const { provider, service } = worker;
    const address = provider !== 'ollama' || ollama === undefined ? {} : { OLLAMA_BASE_URL: ollama.baseUrl };
    return start(`worker-${provider}`, service, { ...workerEnvironmentOf(worker, environment, given), ...address, ...neighbours }, (replica) => ({ WAL_DIR: join(walDir, String(replica)) }), grpcPorts);
  };
  const wanted = wantedWorkers(environment, ollama !== undefined);
  const advice = adviceOn(wanted, environment);
  if (advice !== undefined) tellOperator(`signalbox: ${advice}`);
  await Promise.all(
    wanted.map(async (worker) => {
      const addresses = await startWorker(worker);
      for (const address of addresses.split(',')) workers.push(`${worker.provider}=${address}`);
    }),
  );
  const late = new Map<string, { readonly worker: WantedWorker; readonly grpcPorts: readonly number[] }>(await Promise.all(possibleWorkers(environment, wanted).map(async (worker) => [worker.provider, { worker, grpcPorts: await portsOf(`worker-${worker.provider}`) }] as const)));

  await recover(walDir, quota, billing, stores.natsUrl, logLevelOf(environment, 'warn'));

  const providers = [...new Set(workers.map((worker) => worker.split('=')[0] ?? ''))].join(',');
  const offered = [offeredModels(ollama), offeredByVllm(vllm)].filter((list) => list !== '').join(',');
  const routing = await start('routing', 'routing', { ...environmentOf('routing', environment, given), PROVIDERS: providers, BYOK_PROVIDERS: [...late.keys()].join(','), OFFERED_MODELS: offered });
  const sandbox = await start('sandbox', 'sandbox', environmentOf('sandbox', environment, given));
  const plugins = await start('plugins', 'plugins', { ...environmentOf('plugins', environment, given), SANDBOX_ADDRS: sandbox, PROVIDERS: providers, WORKERS: workers.join(',') });
  const host = environment['HOST'] || '127.0.0.1';
  await start(
    'edge',
    'edge',
    {
      ...environmentOf('edge', environment, given),
      DASHBOARD_DIR: environment['DASHBOARD_DIR'] || DASHBOARD_DIR,
      EDGE_REPLICAS: String(replicas.get('edge') ?? 1),
      HOST: host,
      ACCOUNTS_ADDRS: accounts,
      ROUTING_ADDRS: routing,
      QUOTA_ADDRS: quota,
      BILLING_ADDRS: billing,
      PLUGINS_ADDRS: plugins,
      WORKERS: [...workers, ...[...late].flatMap(([provider, { grpcPorts }]) => grpcPorts.map((port) => `${provider}=127.0.0.1:${port}`))].join(','),
    },
    async (replica) => ({
      PORT: replica === 0 ? await edgePort(environment['PORT'] || '8080') : String(await quietPort()),
      ADMIN_PORT: replica === 0 ? await edgePort(environment['ADMIN_PORT'] || '8081') : String(await quietPort()),
    }),
  );
  const log = createLog({ service: 'late-workers', level: logLevelOf(environment, 'warn') });
  const bus = await connectJetStreamBus({ url: stores.natsUrl, clock: systemClock, log, name: 'late-workers' });
  onStop(() => bus.close());
  onStop(
    await beginLateWorkers(accounts, bus, log, new Set(late.keys()), async (provider) => {
      const found = late.get(provider);
      if (found === undefined) return;
      await startWorker(found.worker, found.grpcPorts);
      onProcesses(processes());
    }),
  );
  const firstEdge = processes().find(({ role, replica }) => role === 'edge' && replica === 0);
  const firstKey = await makeFirstKey(accounts.split(',')[0] ?? '');
  return {
    baseUrl: `http://${hostInUrl(host)}:${firstEdge?.ports['http'] ?? 0}`,
    // The admin API listens on loopback only.
    adminUrl: `http://127.0.0.1:${firstEdge?.ports['admin'] ?? 0}`,
    firstKey,
    processes,
    stop,
  };
}

/** Books the logs of providers that are no longer configured, and of replicas that no longer exist, before anything is ready: their charges are money too. */
async function recover(walDir: string, quota: string, billing: string, natsUrl: string, level: string): Promise<void> {
  const log = createLog({ service: 'recovery', level });
  const bus = await connectJetStreamBus({ url: natsUrl, clock: systemClock, log, name: 'recovery' });
  try {
    await recoverLeftDirectories({ walDir, quotaAddress: quota.split(',')[0] ?? '', billingAddress: billing.split(',')[0] ?? '', bus, log });
  } finally {
    await bus.close();
  }
}
