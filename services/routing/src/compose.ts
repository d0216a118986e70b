/** Composition root of the routing service. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import type { Timer } from '@signalbox/kernel/clock';
import { createIdSource } from '@signalbox/kernel/ids';
import { createRpcServer } from '@signalbox/rpc/server';
import { ConfigError } from '@signalbox/runtime/config';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createMetrics } from '@signalbox/runtime/metrics';
import { listenToAttempts } from './adapters/attempt-events.js';
import { offersOf, SIMULATOR_PROVIDER } from './adapters/catalog/build.js';
import { createCatalogFiles } from './adapters/catalog/files.js';
import { createQualityFile } from './adapters/quality-file.js';
import type { RoutingConfig } from './config.js';
import { createCatalogHolder } from './domain/catalog-holder.js';
import { createConversations } from './domain/conversations.js';
import { createLiveStats } from './domain/live-stats.js';
import { createQualityHolder } from './domain/quality-holder.js';
import { createRoutingMetrics } from './metrics.js';
import { createRoutingHandlers } from './server.js';

const STOP_GRACE_MS = 5_000;
const BUS_RETRY_MS = 2_000;

export interface RoutingNeighbours {
  /** Taken instead of NATS_URL; stays open when the service stops. */
  readonly bus?: Bus;
}

/** The service, not yet started. Without a bus there are no live statistics, and decisions rest on the catalog's priors. */
export function composeRouting(config: RoutingConfig, { clock, randomBytes, log, withProcessMetrics }: Surroundings, neighbours: RoutingNeighbours = {}): Service {
  const withSimulator = config.SIMULATOR === 'on' || config.PROVIDERS.includes(SIMULATOR_PROVIDER) || (config.SIMULATOR === 'auto' && config.PROVIDERS.length === 0);
  const source = createCatalogFiles({
    directory: config.CATALOG_DIR,
    withSimulator,
    terms: {
      managedProviders: new Set(withSimulator ? [...config.PROVIDERS, SIMULATOR_PROVIDER] : config.PROVIDERS),
      byokProviders: new Set(config.BYOK_PROVIDERS),
      zdrAgreements: new Set(config.ZDR_AGREEMENTS),
      offeredModels: offersOf(config.OFFERED_MODELS),
    },
  });
  const holder = createCatalogHolder(source, clock);
  const quality = createQualityHolder(createQualityFile(config.QUALITY_FILE));
  const live = createLiveStats(clock, (endpointId) => holder.current()?.catalog.endpoints.some((endpoint) => endpoint.id === endpointId) === true);
  const metrics = createMetrics({ service: 'routing', withProcessMetrics });
  const handlers = createRoutingHandlers({ holder, quality, conversations: createConversations(clock), live, clock, makeId: createIdSource(clock, randomBytes), log, metrics: createRoutingMetrics(metrics), location: source.location });
  const server = createRpcServer({ area: 'routing', handlers, host: config.HOST, port: config.GRPC_PORT, clock, log });
  let isStarted = false;
  const isReady = (): boolean => isStarted && holder.current() !== undefined;
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics, ready: isReady });

  let ports: Readonly<Record<string, number>> = {};
  let subscription: Subscription | undefined;
  let ownBus: Bus | undefined;
  let retry: Timer | undefined;
  let isStopped = false;

  const connectBus = async (): Promise<void> => {
    try {
      const bus = await connectNatsBus({ url: config.NATS_URL, clock, log, name: 'routing' });
      if (isStopped) return await bus.close();
      ownBus = bus;
      subscription = await listenToAttempts(bus, live, log);
    } catch (error) {
      log.warn('The event bus does not answer; statistics wait.', { error: error instanceof Error ? error.name : 'unknown' });
      if (!isStopped) retry = clock.setTimer(BUS_RETRY_MS, () => void connectBus(), { unref: true });
    }
  };

  return {
    name: 'routing',
    start: async () => {
      const { problems } = await holder.reload();
      if (problems.length > 0) throw new ConfigError(`The catalog has mistakes:\n${problems.join('\n')}`);
      const refused = await quality.reload();
      if (refused.length > 0) throw new ConfigError(refused.join('\n'));
      if (neighbours.bus !== undefined) subscription = await listenToAttempts(neighbours.bus, live, log);
      else if (config.NATS_URL !== '') void connectBus();
      const grpc = await server.start();
      isStarted = true;
      ports = { grpc, metrics: await health.start() };
    },
    stop: async () => {
      if (isStopped) return;
      isStopped = true;
      isStarted = false;
      retry?.cancel();
      await server.stop(STOP_GRACE_MS);
      await subscription?.stop();
      await ownBus?.close();
      await health.stop();
    },
    ready: isReady,
    ports: () => ports,
  };
}
