/** Composition root of edge. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import { observeBus } from '@signalbox/bus/metrics';
import type { HoldsFreed, HoldsFreed__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { createIdSource } from '@signalbox/kernel/ids';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { createRpcObserver } from '@signalbox/rpc/metrics';
import { ConfigError, doorError } from '@signalbox/runtime/config';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createMetrics } from '@signalbox/runtime/metrics';
import { existsSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAuthenticator } from './adapters/authenticator.js';
import { bodyRoomBytes } from './adapters/body.js';
import { createHeapWatch } from './adapters/heap-watch.js';
import { closeServer } from './adapters/close-server.js';
import { createPluginsClient } from './adapters/plugins-client.js';
import { createClaimsClient, createLedgerClient } from './adapters/claims-client.js';
import { createQuotaClient } from './adapters/quota-client.js';
import { createKeptPlans } from './adapters/kept-plans.js';
import { createRoutingClient } from './adapters/routing-client.js';
import { createSchemaChecker } from './adapters/schema-checker.js';
import { watchAccounts } from './adapters/watched-accounts.js';
import { createWorkerClients, type WorkerClients } from './adapters/worker-clients.js';
import { warningsOf, type EdgeConfig } from './config.js';
import { createAdvances, type Advances } from './domain/advances.js';
import { createBodyRoom } from './domain/body-room.js';
import { createFileLine } from './domain/file-line.js';
import { createFloodGuard } from './domain/flood.js';
import { createLocalAdmission } from './domain/local-admission.js';
import { createRequestPlaces } from './domain/request-places.js';
import { createRunningRequests } from './domain/running-requests.js';
import { createRepeats, type Repeats } from './domain/repeats.js';
import { createSessionNames } from './domain/session-name.js';
import { settleRequests } from './domain/stopping.js';
import { createMovedConversations } from './domain/moved-conversations.js';
import { createWaitingRoom } from './domain/waiting-room.js';
import { createRetryBudget } from './domain/retry-budget.js';
import { createEdgeMetrics, observeKeys, observePlaces } from './metrics.js';
import { createAdminApp } from './routes/admin/handler.js';
import { createAccessLog } from './routes/chat-completions/access-log.js';
import { createChatHandler } from './routes/chat-completions/handler.js';
import { withMessages } from './routes/chat-completions/with-messages.js';
import { createGate } from './routes/gate.js';
import { createRepeatGate } from './routes/repeat-gate.js';
import { createSite } from './routes/site.js';
import { createPublicServer } from './server.js';

const DEFAULT_DEADLINE_MS = 5_000;
/** Requests a minute of one account that admission refused after their plugins had run; beyond it plugins are not run before admission. */
const WASTED_RUNS_PER_MINUTE_MAX = 30;
/** Answers a minute of one account for which a second attempt is made because the first does not match the schema; beyond it they are delivered as they are. The operator pays for both attempts, and the client chooses the schema. */
const UNHEALED_ANSWERS_PER_MINUTE_MAX = 10;
/** Longest a single attempt may take, streams included. */
const ATTEMPT_DEADLINE_MS = 3_600_000;

/**
 * Builds edge from its configuration. Nothing listens and no neighbour is called before `start`, which rejects with a
 * ConfigError naming the variable when a port is taken or NATS_URL is missing. `stop` drains for at most `DRAIN_MS`; it may
 * be called twice. `bus`: one that the caller owns, and closes.
 */
export function composeEdge(config: EdgeConfig, { clock, randomBytes, log, withProcessMetrics, doors, tracer, tls }: Surroundings, { bus: givenBus }: { readonly bus?: Bus } = {}): Service {
  const metrics = createMetrics({ service: 'edge', withProcessMetrics });
  const observer = createRpcObserver(metrics);
  const makeId = createIdSource(clock, randomBytes);
  const client = (area: 'accounts' | 'routing' | 'quota' | 'billing' | 'plugins' | 'worker', addresses: readonly string[], peer: string = area) => createRpcClient({ area, addresses, door: 'link', clock, randomBytes, defaultDeadlineMs: DEFAULT_DEADLINE_MS, doors, tracer, tls, observer, peer });
  const accounts = client('accounts', config.ACCOUNTS_ADDRS);
  const routing = client('routing', config.ROUTING_ADDRS);
  const quota = client('quota', config.QUOTA_ADDRS);
  const billing = client('billing', config.BILLING_ADDRS);
  const plugins = config.PLUGINS_ADDRS === undefined ? undefined : client('plugins', config.PLUGINS_ADDRS);
  const workers = new Map([...config.WORKERS].map(([provider, addresses]) => [provider, client('worker', addresses, `worker-${provider}`)])); // kept: by provider.
  const neighbours: readonly RpcClient[] = [accounts, routing, quota, billing, ...(plugins === undefined ? [] : [plugins]), ...workers.values()];
  const edgeMetrics = createEdgeMetrics(metrics, new Set(config.WORKERS.keys()));
  const places = createRequestPlaces(config.IN_FLIGHT_MAX);
  observePlaces(metrics, places);
  const heapWatch = createHeapWatch(clock);
  const schemas = createSchemaChecker({ clock });

  let bus = givenBus;
  observeBus(metrics, () => bus);
  let isOpen = false;
  let publicServer: Server | undefined;
  let adminServer: Server | undefined;
  let metricsPort = 0;
  const freedCodec = messageCodec<HoldsFreed, HoldsFreed__Output>('signalbox.events.v1.HoldsFreed');
  let freedHolds: Subscription | undefined;
  let stopAuthenticator: (() => Promise<void>) | undefined;
  let workerClients: WorkerClients | undefined;
  let claims: Repeats | undefined;
  let advances: Advances | undefined;
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics, ready: () => isOpen });

  const running = createRunningRequests();

  const start = async (): Promise<void> => {
    if (bus === undefined) {
      if (config.NATS_URL === undefined) throw new ConfigError('NATS_URL: is needed by edge.');
      bus = await connectNatsBus({ url: config.NATS_URL, clock, log, name: 'edge' });
    }
    // Connects now, so that the first request need not wait for it.
    for (const neighbour of neighbours) neighbour.isConnected();
    const cutKey = (keyId: string): void => log.warn('A key was declared compromised: its requests were cut.', { key_id: keyId, requests: running.cut(keyId) });
    const authenticator = createAuthenticator({ accounts, bus, clock, pepper: config.KEY_PEPPER, variant: config.CONTRACT_VARIANT, onCompromised: cutKey, isServing: () => !running.isEmpty(), isRunning: (keyId) => running.has(keyId) });
    observeKeys(metrics, authenticator);
    stopAuthenticator = () => authenticator.stop();
    await authenticator.start();
    const waitingRoom = createWaitingRoom(clock);
    freedHolds = await bus.listen('holds.v1.freed', ({ payload }) => {
      try {
        waitingRoom.freed(freedCodec.decode(payload).accountId);
      } catch {
        log.warn('A notice of freed holds could not be read.');
      }
    });
    const local = createLocalAdmission({ clock, replicas: config.EDGE_REPLICAS, periodSeconds: config.BILLING_PERIOD_SECONDS, onDecided: (isAdmitted) => edgeMetrics.decidedLocally(isAdmitted) });
    const quotaPort = createQuotaClient(quota, clock, config.QUOTA_DEADLINE_MS, local);
    advances = createAdvances(quotaPort, { clock, periodSeconds: config.BILLING_PERIOD_SECONDS, makeId: () => makeId('advance'), onServed: () => edgeMetrics.servedFromAdvance() });
    const gate = createGate({ authenticator, quota: quotaPort, clock, variant: config.CONTRACT_VARIANT, pepper: config.KEY_PEPPER, makeId, onError: (_route, error) => edgeMetrics.error(error.code ?? 'none'), onUnread: (why) => edgeMetrics.unread(why) });
    const pluginsPort = plugins === undefined ? undefined : createPluginsClient(plugins, clock, config.PLUGINS_DEADLINE_MS);
    claims = createRepeats({
      claims: createClaimsClient(accounts),
      ledger: createLedgerClient(billing),
      clock,
      onTakenOver: (accountId, lost, by) => {
        edgeMetrics.claimTakenOver();
        log.warn('A request that left no trace in the ledger is run again.', { account_id: accountId, request_id: lost, by_request_id: by });
      },
    });
    const repeats = createRepeatGate({ repeats: claims, gate, clock, pepper: config.KEY_PEPPER });
    workerClients = createWorkerClients(workers, clock, ATTEMPT_DEADLINE_MS);
    const chat = createChatHandler({
      running,
      repeats,
      sessionNames: createSessionNames(config.KEY_PEPPER.unwrap()),
      gate,
      neighbours: {
        routing: createKeptPlans(createRoutingClient(routing, clock), { clock, makeId, onReused: () => edgeMetrics.planReused() }),
        quota: advances,
        workers: workerClients,
        waitingRoom,
        clock,
        presentCaller: (caller) => authenticator.present(caller),
        heartbeatMs: config.HEARTBEAT_MS,
        checkSchema: schemas.check,
        retries: createRetryBudget(clock),
        plugins: pluginsPort,
        withMessages,
        wastedRuns: createFloodGuard(clock, WASTED_RUNS_PER_MINUTE_MAX, 60_000),
        fileLine: createFileLine(clock),
        unhealedAnswers: createFloodGuard(clock, UNHEALED_ANSWERS_PER_MINUTE_MAX, 60_000),
        moved: createMovedConversations(clock),
      },
      makeId,
      clock,
      bodyBytesMax: config.BODY_BYTES_MAX,
      bodies: createBodyRoom(bodyRoomBytes(config.BODY_BYTES_MAX)),
      places,
      metrics: edgeMetrics,
      tracer,
      accessLog: createAccessLog(log, config.ACCESS_LOG_PER_MILLE),
    });
    for (const warning of warningsOf(config)) log.warn(warning);
    if (config.DASHBOARD_DIR !== undefined && !existsSync(join(config.DASHBOARD_DIR, 'index.html'))) log.warn('DASHBOARD_DIR has no index.html: no dashboard is served.', { directory: config.DASHBOARD_DIR });
    const watched = watchAccounts(accounts, authenticator);
    const site = createSite({ gate, repeats, accounts: watched, routing, billing, plugins, providers: new Set(config.WORKERS.keys()), quota, authenticator, pepper: config.KEY_PEPPER, clock, periodSeconds: config.BILLING_PERIOD_SECONDS, randomBytes, dashboardDir: config.DASHBOARD_DIR, makeId });
    publicServer = createPublicServer({ chat, site, gate, makeId, clock, isFull: places.isFull, isOpen: () => isOpen, isHealthy: () => heapWatch.isHealthy() });
    const { createServer } = await import('node:http');
    adminServer = createServer(createAdminApp({ accounts: watched, quota, billing, routing, plugins, adminToken: config.ADMIN_TOKEN, clock, periodSeconds: config.BILLING_PERIOD_SECONDS, variant: config.CONTRACT_VARIANT, isServed: (provider) => config.WORKERS.has(provider) }));
    metricsPort = await health.start();
    await Promise.all([listen(publicServer, config.HOST, config.PORT, 'PORT'), listen(adminServer, '127.0.0.1', config.ADMIN_PORT, 'ADMIN_PORT')]);
    isOpen = true;
  };

  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    isOpen = false;
    const endMs = clock.monotonicMs() + config.DRAIN_MS;
    if (publicServer !== undefined) await closeServer(publicServer, config.DRAIN_MS, clock, () => running.stop());
    if (adminServer !== undefined) await closeServer(adminServer, 0, clock);
    let unended = 0;
    const settle = async (limitMs: number): Promise<number> => {
      const [outcomes = 0, ends = 0] = await Promise.all([workerClients?.settle(limitMs), claims?.settle(limitMs)]);
      unended = ends;
      return outcomes;
    };
    const untold = await settleRequests({ inFlight: () => edgeMetrics.inFlight(), settle, clock, endMs });
    if (untold > 0) log.warn('Outcomes of attempts could not be sent to their workers, which will conclude by themselves.', { outcomes: untold });
    if (unended > 0) log.warn('The ends of requests with an Idempotency-Key could not be stored: their repeats wait for the ledger, and their answers are not kept.', { requests: unended });
    advances?.close();
    await freedHolds?.stop();
    await schemas.stop();
    await stopAuthenticator?.();
    await Promise.all(neighbours.map((each) => each.close()));
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
    server.once('error', (error) => reject(doorError(error, { host, port, variable })));
    server.listen(port, host, resolve);
  });
}

function portOf(server: Server | undefined): number {
  const address = server?.address();
  return typeof address === 'object' && address !== null ? (address as AddressInfo).port : 0;
}
