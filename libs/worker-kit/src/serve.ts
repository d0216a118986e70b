/** A worker as a service: listeners, journal, dispatch, and the order in which they open and close. */
import { join } from 'node:path';
import type { Bus } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import { observeBus } from '@signalbox/bus/metrics';
import type { DispatchEvent, DispatchRequest__Output, GenerateImagesRequest__Output, StopRequest__Output, TendRequest__Output } from '@signalbox/contracts/worker';
import { createIdSource } from '@signalbox/kernel/ids';
import type { CallInfo, Emitter } from '@signalbox/rpc/call';
import { createDialer } from '@signalbox/net-guard/dialer';
import { createRpcClient } from '@signalbox/rpc/client';
import { createRpcObserver } from '@signalbox/rpc/metrics';
import { createRpcServer } from '@signalbox/rpc/server';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createMetrics } from '@signalbox/runtime/metrics';
import type { WorkerConfig } from './config.js';
import { createCredentialPool, markOf, poolMarkOf } from './credentials.js';
import { createDispatcher, type Dispatcher } from './dispatch.js';
import { extendingAt } from './extend-hold.js';
import type { ExtendHold } from './hold-growth.js';
import { createEndpointBreakers } from './endpoint-breakers.js';
import { createImageMaker } from './images.js';
import type { Journal } from './journal.js';
import { createWorkerMetrics, observeBreakers, observeCredentials, observeJournal } from './metrics.js';
import { createObservations, listenToObservations } from './observations.js';
import { createOwnCredentials } from './own-credentials.js';
import type { ProviderAdapter } from './provider.js';
import { createUpstream } from './upstream.js';
import { outcomeHandlers } from './outcome-handlers.js';
import { openJournal } from './wal.js';

const NEIGHBOUR_DEADLINE_MS = 2_000;
/** Longest wait for the usage of clients that left; by then their attempts have ended by themselves. */
const LEFT_BEHIND_MS_MAX = 60_000;
/** 5 s: the last records are in the ledger within two, and a supervisor's grace period leaves more than this after both drains. */
const END_WAIT_MS = 5_000;

export interface WorkerOptions {
  /** Name of the service, such as `worker-openai`. */
  readonly name: string;
  readonly config: WorkerConfig;
  readonly surroundings: Surroundings;
  readonly adapter: ProviderAdapter;
  /** The provider may be called without a credential, as a local host: when none is configured, it is. */
  readonly isCredentialOptional?: boolean;
  /** Shared bus, if all services run in one process; the worker does not close it. Absent: it connects to NATS_URL. */
  readonly bus?: Bus;
  /** For tests. Absent: the write-ahead log in WAL_DIR/<provider>. */
  readonly journal?: Journal;
  /** The same provider at an account's own address; without it, credentials with such an address are not served. */
  readonly adapterAt?: (baseUrl: string) => ProviderAdapter;
}

interface Running {
  readonly dispatcher: Dispatcher;
  readonly close: () => Promise<void>;
  readonly ports: Readonly<Record<string, number>>;
  readonly stopDoors: () => Promise<void>;
  readonly isReady: () => boolean;
}

export function serveWorker(options: WorkerOptions): Service {
  const { config, surroundings, adapter, name } = options;
  const { clock, randomBytes, log, doors, tracer, tls } = surroundings;
  let running: Running | undefined;
  let isStopping = false;
  let stopped: Promise<void> | undefined;

  const start = async (): Promise<Running> => {
    const closers: (() => Promise<void>)[] = [];
    const close = async (): Promise<void> => {
      for (const closer of closers.splice(0).reverse()) await closer();
    };
    try {
      const bus = options.bus ?? (await connectNatsBus({ url: config.NATS_URL, clock, log, name }));
      if (options.bus === undefined) closers.push(() => bus.close());
      const metrics = createMetrics({ service: name, withProcessMetrics: surroundings.withProcessMetrics });
      const observer = createRpcObserver(metrics);
      observeBus(metrics, () => bus);
      let journal = options.journal;
      let extendHold: ExtendHold | undefined;
      let isJournalReady = (): boolean => true;
      if (journal === undefined) {
        const client = { door: 'link', clock, randomBytes, defaultDeadlineMs: NEIGHBOUR_DEADLINE_MS, doors, observer, tracer, tls } as const;
        const quota = createRpcClient({ ...client, area: 'quota', addresses: config.QUOTA_ADDRS });
        closers.push(() => quota.close());
        const billing = createRpcClient({ ...client, area: 'billing', addresses: config.BILLING_ADDRS });
        closers.push(() => billing.close());
        const opened = await openJournal({ directory: join(config.WAL_DIR, adapter.provider), provider: adapter.provider, clock, randomBytes, log, bus, quota, billing });
        closers.push(() => opened.close(END_WAIT_MS));
        observeJournal(metrics, opened);
        isJournalReady = () => opened.isRegistered();
        journal = opened;
        extendHold = extendingAt(quota, opened.state().writer);
      }
      const book = journal;
      const secrets = config.API_KEYS.length === 0 && options.isCredentialOptional === true ? [undefined] : config.API_KEYS;
      const marks = secrets.map((secret) => markOf(adapter.provider, secret));
      const pool = poolMarkOf(marks);
      const credentials = createCredentialPool(secrets, clock, ({ position, model, forMs }) => observations.observeCredential({ mark: marks[position] ?? 0, model, forMs }));
      observeCredentials(metrics, () => credentials.counts());
      const accounts = createRpcClient({ area: 'accounts', addresses: config.ACCOUNTS_ADDRS, door: 'link', clock, randomBytes, defaultDeadlineMs: NEIGHBOUR_DEADLINE_MS, doors, observer, tracer, tls });
      closers.push(() => accounts.close());
      const ownCredentials = createOwnCredentials({ accounts, bus, clock, adapter, adapterAt: options.adapterAt });
      await ownCredentials.start();
      closers.push(() => ownCredentials.stop());
      const upstream = createUpstream(adapter.origin, createDialer({ allow: config.FETCH_ALLOW }));
      closers.push(() => upstream.close());
      const origin = createIdSource(clock, randomBytes)('call');
      const observations = createObservations({ bus, provider: adapter.provider, origin, clock, pool, hasCredential: () => secrets.length > 0 && credentials.benchedMs() === 0 });
      closers.push(() => Promise.resolve(observations.stop()));
      const breakers = createEndpointBreakers({ clock, origin, pool, onProbe: (endpointId, step) => observations.observeProbe(endpointId, step) });
      const replicas = await listenToObservations(bus, adapter.provider, origin, log, (news) => {
        breakers.hear(news);
        for (const { mark, model, forMs } of news.credentials) credentials.hear({ position: marks.indexOf(mark), model, forMs });
      });
      closers.push(() => replicas.stop());
      observations.start();
      observeBreakers(metrics, breakers);
      const workerMetrics = createWorkerMetrics(metrics);
      const makeImages = createImageMaker({ adapter, upstream, credentials, ownCredentials, metrics: workerMetrics, clock, log });
      const dispatcher = createDispatcher({
        adapter,
        upstream,
        credentials,
        journal: book,
        observations,
        breakers,
        metrics: workerMetrics,
        clock,
        log,
        ...(extendHold === undefined ? {} : { extendHold }),
        ownCredentials,
      });
      const server = createRpcServer({
        area: 'worker',
        host: config.HOST,
        port: config.GRPC_PORT,
        clock,
        log,
        doors,
        tracer,
        tls,
        // Attempts belong to the process that has their log: outcomes must not reach another.
        instance: book.state().writer,
        handlers: {
          unary: {
            ...outcomeHandlers(book),
            GenerateImages: (request: GenerateImagesRequest__Output, { signal }: CallInfo) => makeImages(request, signal),
            Tend: ({ requestId, attempt }: TendRequest__Output) => {
              book.tend(requestId, attempt);
              return {};
            },
            Stop: ({ requestId, attempt }: StopRequest__Output) => {
              dispatcher.stop(requestId, attempt);
              return {};
            },
          },
          stream: {
            Dispatch: (request: DispatchRequest__Output, call: CallInfo, emit: Emitter<DispatchEvent>) => dispatcher.dispatch(request, call, emit),
          },
        },
      });
      const isReady = (): boolean => !isStopping && isJournalReady();
      const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics, ready: isReady });
      const metricsPort = await health.start();
      closers.push(() => health.stop());
      const grpc = await server.start();
      return { dispatcher, close, ports: { grpc, metrics: metricsPort }, stopDoors: () => server.stop(config.DRAIN_MS), isReady };
    } catch (error) {
      await close();
      throw error;
    }
  };

  const stop = async (): Promise<void> => {
    isStopping = true;
    if (running === undefined) return;
    await running.stopDoors();
    // Attempts whose clients left go on after the listeners closed, but not for ever.
    const { dispatcher } = running;
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(Math.min(config.DRAIN_MS, LEFT_BEHIND_MS_MAX), resolve, { unref: true });
      void dispatcher.idle().then(() => {
        timer.cancel();
        resolve();
      });
    });
    await running.close();
  };

  return {
    name,
    start: async () => {
      running = await start();
    },
    stop: () => (stopped ??= stop()),
    ready: () => running?.isReady() ?? false,
    ports: () => running?.ports ?? {},
  };
}
