/** Composition root of plugins: adapters, the plugins themselves, listeners. */
import { createDialer } from '@signalbox/net-guard/dialer';
import { createFetchFile } from '@signalbox/net-guard/fetcher';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { createRpcServer, type RpcServer } from '@signalbox/rpc/server';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createMetrics } from '@signalbox/runtime/metrics';
import { openDatabase } from '@signalbox/sql/database';
import { readySchema } from '@signalbox/sql/schema-job';
import { putBuiltInBooks } from './adapters/built-in-books.js';
import { createGutendex } from './adapters/gutendex.js';
import { readImageModels } from './adapters/image-catalog.js';
import { createImageWorkers } from './adapters/image-workers.js';
import { SCHEMA } from './adapters/migrations.js';
import { createFetchPdf, createPdfCache } from './adapters/pdf-files.js';
import { createPdfProcess } from './adapters/pdf-process.js';
import { createPostgresFacts } from './adapters/postgres-facts.js';
import { createPostgresIndex, type PluginsSchema } from './adapters/postgres-index.js';
import { createSandboxClient } from './adapters/sandbox-client.js';
import { createRemoteBackend } from './adapters/search-backends.js';
import type { PluginsConfig } from './config.js';
import { createFairLine } from './domain/fair-line.js';
import { createRegistry } from './domain/registry.js';
import { createRunner } from './domain/run.js';
import { createPluginsMetrics } from './metrics.js';
import { installedPlugins, withoutThoseOff } from './plugins/installed.js';
import { createLocalBackend } from './plugins/web-search/local-backend.js';
import { createHandlers } from './server.js';

const STOP_GRACE_MS = 5_000;
/** Includes a program's run time and its wait in the queue. */
const SANDBOX_DEADLINE_MS = 30_000;
/** For calls without a deadline of their own. */
const WORKER_DEADLINE_MS = 5_000;
/** Most PDFs by URL that are fetched or wait to be read, each at most PDF_BYTES_MAX; below, most of one account that may wait for their turn. */
const PDF_FETCHES_MAX = 6;
const PDF_FETCHES_WAITING_MAX = 20;

export interface PluginsOptions {
  /** Addresses of workers with the operator's credential, by provider. Replaces WORKERS and PROVIDERS if all services share one process, where addresses are only known later. */
  readonly workers?: Promise<ReadonlyMap<string, readonly string[]>>;
}

/** `start` rejects with a ConfigError or Fault. */
export function composePlugins(config: PluginsConfig, { clock, randomBytes, log, withProcessMetrics, doors, tracer, tls }: Surroundings, options: PluginsOptions = {}): Service {
  const metrics = createMetrics({ service: 'plugins', withProcessMetrics });
  const database = openDatabase<PluginsSchema>({ url: config.DATABASE_URL, poolMax: config.DATABASE_POOL_MAX, log, statementTimeoutMs: config.STATEMENT_TIMEOUT_MS });
  const sandbox = config.SANDBOX_ADDRS.length === 0 ? undefined : createRpcClient({ area: 'sandbox', addresses: config.SANDBOX_ADDRS, door: 'link', clock, randomBytes, defaultDeadlineMs: SANDBOX_DEADLINE_MS, doors, tracer, tls });
  const imageModels = readImageModels(config.IMAGE_MODELS_FILE, config.ZDR_AGREEMENTS);
  const workers = new Map<string, RpcClient>();
  /** Connects only to workers of providers with an image model. */
  const connectWorkers = async (): Promise<void> => {
    const known = (await options.workers) ?? new Map([...config.WORKERS].filter(([provider]) => config.PROVIDERS.includes(provider)));
    for (const [provider, addresses] of known) {
      if (imageModels.some((model) => model.provider === provider)) workers.set(provider, createRpcClient({ area: 'worker', addresses, door: 'link', clock, randomBytes, defaultDeadlineMs: WORKER_DEADLINE_MS, doors, tracer, tls, peer: `worker-${provider}` }));
    }
  };
  let isReady = false;
  let server: RpcServer | undefined;
  let stopping: Promise<void> | undefined;
  const ports: Record<string, number> = {};
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics, ready: () => isReady });

  return {
    name: 'plugins',
    start: async () => {
      await readySchema(database.db, config.DATABASE_URL, SCHEMA, config.MIGRATE_ON_START);
      const index = createPostgresIndex(database.db);
      const facts = createPostgresFacts(database.db);
      await putBuiltInBooks(index);
      const fetchFile = createFetchFile({ dialer: createDialer({ allow: config.FETCH_ALLOW, clock }), clock });
      await connectWorkers();
      const isLocal = config.WEB_SEARCH_BACKEND === 'local';
      const all = installedPlugins({
        search: config.WEB_SEARCH_BACKEND === 'local' ? createLocalBackend(index) : createRemoteBackend({ name: config.WEB_SEARCH_BACKEND, url: config.WEB_SEARCH_URL, key: config.WEB_SEARCH_KEY }),
        searchGuarantee: isLocal ? 'zdr' : config.WEB_SEARCH_GUARANTEE,
        index,
        catalog: config.GUTENDEX_URL === undefined ? undefined : createGutendex({ url: config.GUTENDEX_URL, fetchFile }),
        memory: { facts, clock, isZdr: config.MEMORY_ZDR === 'on', keepMax: config.MEMORY_FACTS_MAX },
        pdf: {
          read: createPdfProcess({ clock, timeoutMs: config.PDF_TIMEOUT_MS, memoryMib: config.PDF_MEMORY_MIB, processesMax: config.PDF_PROCESSES_MAX }),
          fetch: createFetchPdf(fetchFile, config.PDF_BYTES_MAX),
          fetches: createFairLine({ placesMax: PDF_FETCHES_MAX, waitingOfAccountMax: PDF_FETCHES_WAITING_MAX }),
          cache: createPdfCache(),
          bytesMax: config.PDF_BYTES_MAX,
          timeoutMs: config.PDF_TIMEOUT_MS,
        },
        sandbox: sandbox === undefined ? undefined : createSandboxClient(sandbox),
        images: { models: imageModels.filter(({ provider }) => workers.has(provider)), maker: createImageWorkers(workers) },
      });
      const plugins = withoutThoseOff(all, config);
      const registry = createRegistry(plugins, config.PLUGIN_FEES);
      const { stage } = createPluginsMetrics(metrics);
      const runner = createRunner({ registry, clock, onStage: stage });
      server = createRpcServer({ area: 'plugins', handlers: createHandlers({ registry, runner, index, facts }), host: config.HOST, port: config.GRPC_PORT, clock, log, doors, tracer, tls });
      ports['grpc'] = await server.start();
      ports['metrics'] = await health.start();
      isReady = true;
    },
    stop: () => {
      stopping ??= (async () => {
        isReady = false;
        await server?.stop(STOP_GRACE_MS);
        await Promise.all([...(sandbox === undefined ? [] : [sandbox]), ...workers.values()].map((neighbour) => neighbour.close()));
        await database.close();
        await health.stop();
      })();
      return stopping;
    },
    ready: () => isReady,
    ports: () => ports,
  };
}
