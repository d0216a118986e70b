/** Composition root of the routing service. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import { observeBus } from '@signalbox/bus/metrics';
import { createIdSource } from '@signalbox/kernel/ids';
import { createRpcServer } from '@signalbox/rpc/server';
import { ConfigError } from '@signalbox/runtime/config';
import { makeFolder } from '@signalbox/runtime/folder';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createMetrics } from '@signalbox/runtime/metrics';
import { repeat, type Repeating } from '@signalbox/runtime/repeating';
import { listenToAttempts } from './adapters/attempt-events.js';
import { createCatalogArchive } from './adapters/catalog/archive.js';
import { offersOf, SIMULATOR_PROVIDER } from './adapters/catalog/build.js';
import { createCatalogFiles } from './adapters/catalog/files.js';
import { refuseUnknownProviders } from './adapters/catalog/known-providers.js';
import { unlistedOffers } from './adapters/catalog/unlisted-offers.js';
import { announceControl, announceDecisions, listenToControl } from './adapters/decision-events.js';
import { createLateBus } from './adapters/late-bus.js';
import { createQualityFile } from './adapters/quality-file.js';
import type { RoutingConfig } from './config.js';
import { createCatalogHolder } from './domain/catalog-holder.js';
import { createConversations } from './domain/conversations.js';
import { createDecisions } from './domain/decisions.js';
import { createExplorationBudget } from './domain/exploration-budget.js';
import { createLiveStats } from './domain/live-stats.js';
import { createPeers, createSiblings } from './domain/peers.js';
import { createQualityHolder } from './domain/quality-holder.js';
import { createReplays } from './domain/replays.js';
import { createRoutingMetrics, observeCatalog, observeEndpoints } from './metrics.js';
import { createRoutingHandlers } from './server.js';

const STOP_GRACE_MS = 5_000;
const DAY_MS = 86_400_000;
/** Longest interval between checks of the date, so that a changed clock, or a host that slept, is noticed. */
const DAY_LOOK_MS_MAX = 3_600_000;
/** Most models of one server that a log line names. */
const NAMED_MAX = 20;

export interface RoutingNeighbours {
  /** Used instead of NATS_URL; stays open when the service stops. */
  readonly bus?: Bus;
}

/** Composes the service without starting it. Without a bus there are no live statistics, and decisions use the catalog's priors. */
export function composeRouting(config: RoutingConfig, { clock, randomBytes, log, withProcessMetrics, doors, tracer, tls }: Surroundings, neighbours: RoutingNeighbours = {}): Service {
  const withSimulator = config.SIMULATOR === 'on' || config.PROVIDERS.includes(SIMULATOR_PROVIDER) || (config.SIMULATOR === 'auto' && config.PROVIDERS.length === 0);
  const offers = offersOf(config.OFFERED_MODELS);
  const source = createCatalogFiles({
    directory: config.CATALOG_DIR,
    withSimulator,
    archive: config.SNAPSHOT_DIR === '' ? undefined : createCatalogArchive(config.SNAPSHOT_DIR, (code) => log.warn('The catalog in force could not be stored in SNAPSHOT_DIR: its decisions cannot be replayed after a restart.', { directory: config.SNAPSHOT_DIR, code })),
    terms: {
      managedProviders: new Set(withSimulator ? [...config.PROVIDERS, SIMULATOR_PROVIDER] : config.PROVIDERS),
      byokProviders: new Set(config.BYOK_PROVIDERS),
      zdrAgreements: new Set(config.ZDR_AGREEMENTS),
      offeredModels: offers,
    },
  });
  const holder = createCatalogHolder(source, clock);
  const quality = createQualityHolder(createQualityFile(config.QUALITY_FILE, 'QUALITY_FILE'), config.QUALITY_CANARY_FILE === '' ? undefined : { source: createQualityFile(config.QUALITY_CANARY_FILE, 'QUALITY_CANARY_FILE'), share: config.QUALITY_CANARY_SHARE });
  const live = createLiveStats(clock, createPeers(holder), createSiblings(holder));
  const exploration = config.EXPLORATION === 'on' ? createExplorationBudget() : undefined;
  const metrics = createMetrics({ service: 'routing', withProcessMetrics });
  const routingMetrics = createRoutingMetrics(metrics);
  const makeId = createIdSource(clock, randomBytes);
  const origin = makeId('call');
  const listeners = [
    (to: Bus) => listenToAttempts(to, { live, exploration }, log),
    (to: Bus) => listenToControl(to, origin, (action) => handlers.obey(action), log),
  ];
  const ownBus = createLateBus({
    connect: () => connectNatsBus({ url: config.NATS_URL, clock, log, name: 'routing' }),
    listeners,
    clock,
    onFailure: (error) => log.warn('The event bus does not answer, or refuses a subscription; there are no live statistics until it accepts.', { reason: error instanceof Error ? error.message : 'unknown' }),
  });
  const busNow = (): Bus | undefined => neighbours.bus ?? ownBus.current();
  const decisions = createDecisions({
    clock,
    perSecondMax: config.DECISIONS_PER_SECOND_MAX,
    handOn: (records) => {
      const bus = busNow();
      if (bus !== undefined) announceDecisions(bus, records);
    },
    onSkipped: () => routingMetrics.unrecorded(),
  });
  const handlers = createRoutingHandlers({
    holder, quality, conversations: createConversations(clock), live, decisions, exploration, replays: createReplays(holder),
    tellOthers: (action) => {
      const bus = busNow();
      if (bus !== undefined) announceControl(bus, { origin, action });
    },
    clock, makeId, log, metrics: routingMetrics, location: source.location,
  });
  const server = createRpcServer({ area: 'routing', handlers, host: config.HOST, port: config.GRPC_PORT, clock, log, doors, tracer, tls });
  observeBus(metrics, busNow);
  observeCatalog(metrics, () => ({ models: holder.current()?.catalog.models.length ?? 0, endpoints: holder.current()?.catalog.endpoints.length ?? 0 }));
  observeEndpoints(metrics, () => {
    const view = live.view();
    return (holder.current()?.catalog.endpoints ?? []).flatMap(({ id, provider }) => {
      const stats = view.get(id);
      return stats === undefined ? [] : [{ provider, breaker: stats.breaker, ejectedFor: stats.ejectedFor, latencyMsP75: stats.latencyMsP75 }];
    });
  });
  let isStarted = false;
  const isReady = (): boolean => isStarted && holder.current() !== undefined;
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics, ready: isReady });

  let ports: Readonly<Record<string, number>> = {};
  const subscriptions: Subscription[] = [];
  let lookingAtDay: Repeating | undefined;
  let isStopped = false;

  /** Day for which a mismatch with the files was logged, so that it is logged once. */
  let toldDay = 0;
  const renew = async (): Promise<void> => {
    const renewal = await holder.renew();
    if (renewal === 'renewed') log.info('A new day began: the catalog is in force as of today.', { snapshot_id: holder.current()?.catalog.id });
    const day = Math.floor(clock.nowMs() / DAY_MS);
    if (renewal !== 'changed' || toldDay === day) return;
    toldDay = day;
    log.warn('A new day began, but the files of the catalog differ from the catalog in force: what shuts down as of today is not known until the files are reloaded.');
  };
  const untilNextLookMs = (): number => Math.min(DAY_MS - (clock.nowMs() % DAY_MS), DAY_LOOK_MS_MAX);

  return {
    name: 'routing',
    start: async () => {
      if (config.SNAPSHOT_DIR !== '') makeFolder(config.SNAPSHOT_DIR, 'SNAPSHOT_DIR', 0o700);
      const { problems } = await holder.reload();
      if (problems.length > 0) throw new ConfigError(`${config.CATALOG_DIR === '' ? 'The shipped catalog' : `CATALOG_DIR: the catalog in ${config.CATALOG_DIR}`} has mistakes:\n${problems.join('\n')}`);
      await refuseUnknownProviders(config);
      const loaded = holder.current();
      const unlisted = loaded === undefined ? [] : unlistedOffers(loaded.catalog, offers);
      if (unlisted.length > 0) log.warn('Models that a server offers are not served: the catalog has no line for them. How to give them one: docs/add-a-model.md.', { models: unlisted.slice(0, NAMED_MAX), more: Math.max(0, unlisted.length - NAMED_MAX) });
      const refused = await quality.reload();
      if (refused.length > 0) throw new ConfigError(refused.join('\n'));
      if (neighbours.bus !== undefined) for (const listen of listeners) subscriptions.push(await listen(neighbours.bus));
      else if (config.NATS_URL !== '') ownBus.start();
      lookingAtDay = repeat({ clock, delayMs: untilNextLookMs, work: renew, onFailure: (error) => log.error('The catalog could not be read for a new day.', {}, error) });
      const grpc = await server.start();
      isStarted = true;
      ports = { grpc, metrics: await health.start() };
    },
    stop: async () => {
      if (isStopped) return;
      isStopped = true;
      isStarted = false;
      lookingAtDay?.stop();
      await server.stop(STOP_GRACE_MS);
      decisions.flush();
      for (const subscription of subscriptions) await subscription.stop();
      await ownBus.stop();
      await health.stop();
    },
    ready: isReady,
    ports: () => ports,
  };
}
