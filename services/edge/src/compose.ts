/** Composition root of edge. */
import type { Bus } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import type { Timer } from '@signalbox/kernel/clock';
import { createIdSource } from '@signalbox/kernel/ids';
import { createRpcClient } from '@signalbox/rpc/client';
import { ConfigError } from '@signalbox/runtime/config';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createMetrics } from '@signalbox/runtime/metrics';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAuthenticator } from './adapters/authenticator.js';
import { createHeapWatch } from './adapters/heap-watch.js';
import { createQuotaClient } from './adapters/quota-client.js';
import { createRoutingClient } from './adapters/routing-client.js';
import { createWorkerClients } from './adapters/worker-clients.js';
import type { EdgeConfig } from './config.js';
import { createEdgeMetrics } from './metrics.js';
import { createAdminApp } from './routes/admin/handler.js';
import { createChatHandler } from './routes/chat-completions/handler.js';
import { createGate } from './routes/gate.js';
import { createSite } from './routes/site.js';
import { createPublicServer } from './server.js';

const DEFAULT_DEADLINE_MS = 5_000;
const CLOSE_IDLE_MS = 100;
/** Longest a single attempt may take, streams included. */
const ATTEMPT_DEADLINE_MS = 3_600_000;

export function composeEdge(config: EdgeConfig, { clock, randomBytes, log, withProcessMetrics }: Surroundings, { bus: givenBus }: { readonly bus?: Bus } = {}): Service {
  const metrics = createMetrics({ service: 'edge', withProcessMetrics });
  const makeId = createIdSource(clock, randomBytes);
  const client = (area: 'accounts' | 'routing' | 'quota' | 'billing' | 'worker', addresses: readonly string[]) => createRpcClient({ area, addresses, door: 'link', clock, randomBytes, defaultDeadlineMs: DEFAULT_DEADLINE_MS });
  const accounts = client('accounts', config.ACCOUNTS_ADDRS);
  const routing = client('routing', config.ROUTING_ADDRS);
  const quota = client('quota', config.QUOTA_ADDRS);
  const billing = client('billing', config.BILLING_ADDRS);
  const workers = new Map([...config.WORKERS].map(([provider, addresses]) => [provider, client('worker', addresses)]));
  const edgeMetrics = createEdgeMetrics(metrics, new Set(config.WORKERS.keys()));
  const heapWatch = createHeapWatch(clock);

  let bus = givenBus;
  let isOpen = false;
  let publicServer: Server | undefined;
  let adminServer: Server | undefined;
  let metricsPort = 0;
  let stopAuthenticator: (() => Promise<void>) | undefined;
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics, ready: () => isOpen });

  const start = async (): Promise<void> => {
    if (bus === undefined) {
      if (config.NATS_URL === undefined) throw new ConfigError('NATS_URL: is needed by edge.');
      bus = await connectNatsBus({ url: config.NATS_URL, clock, log, name: 'edge' });
    }
    const authenticator = createAuthenticator({ accounts, bus, clock, pepper: config.KEY_PEPPER, variant: config.CONTRACT_VARIANT });
    stopAuthenticator = () => authenticator.stop();
    await authenticator.start();
    const quotaPort = createQuotaClient(quota, config.QUOTA_DEADLINE_MS);
    const gate = createGate({ authenticator, quota: quotaPort, clock, variant: config.CONTRACT_VARIANT, makeId, onError: (_route, error) => edgeMetrics.error(error.code ?? 'none') });
    const chat = createChatHandler({
      gate,
      neighbours: { routing: createRoutingClient(routing), quota: quotaPort, workers: createWorkerClients(workers, clock, ATTEMPT_DEADLINE_MS), clock, heartbeatMs: config.HEARTBEAT_MS },
      makeId,
      clock,
      bodyBytesMax: config.BODY_BYTES_MAX,
      metrics: edgeMetrics,
    });
    const site = createSite({ gate, accounts, routing, makeId });
    publicServer = createPublicServer({ chat, site, gate, makeId, inFlight: () => edgeMetrics.inFlight(), inFlightMax: config.IN_FLIGHT_MAX, isOpen: () => isOpen, isHealthy: () => heapWatch.isHealthy() });
    const { createServer } = await import('node:http');
    adminServer = createServer(createAdminApp({ accounts, quota, billing, routing, adminToken: config.ADMIN_TOKEN }));
    metricsPort = await health.start();
    await Promise.all([listen(publicServer, config.HOST, config.PORT, 'PORT'), listen(adminServer, '127.0.0.1', config.ADMIN_PORT, 'ADMIN_PORT')]);
    heapWatch.start();
    isOpen = true;
  };

  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    isOpen = false;
    if (publicServer !== undefined) await closeServer(publicServer, config.DRAIN_MS, clock);
    if (adminServer !== undefined) await closeServer(adminServer, 0, clock);
    heapWatch.stop();
    await stopAuthenticator?.();
    await Promise.all([accounts, routing, quota, billing, ...workers.values()].map((each) => each.close()));
    if (givenBus === undefined) await bus?.close();
    await health.stop();
  };

  return {
    name: 'edge',
    start,
    stop: () => (stopped ??= stop()),
    ready: () => isOpen,
    ports: () => ({ http: portOf(publicServer), admin: portOf(adminServer), metrics: metricsPort }),
  };
}

function listen(server: Server, host: string, port: number, variable: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(new ConfigError(error.code === 'EADDRINUSE' ? `${variable}: port ${port} on ${host} is taken by another process.` : `${variable}: cannot listen on ${host}:${port} (${error.code ?? 'unknown'}).`)));
    server.listen(port, host, resolve);
  });
}

/** Stops accepting, lets running answers finish, then cuts what is left. */
function closeServer(server: Server, graceMs: number, clock: Surroundings['clock']): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) {
      resolve();
      return;
    }
    const cut = clock.setTimer(graceMs, () => server.closeAllConnections());
    // A connection whose last answer was begun before the drain stays open for reuse, and would hold us up till the cut.
    const closeIdle = (): void => {
      server.closeIdleConnections();
      idle = clock.setTimer(CLOSE_IDLE_MS, closeIdle);
    };
    let idle: Timer | undefined;
    server.close(() => {
      cut.cancel();
      idle?.cancel();
      resolve();
    });
    closeIdle();
  });
}

function portOf(server: Server | undefined): number {
  const address = server?.address();
  return typeof address === 'object' && address !== null ? (address as AddressInfo).port : 0;
}
