/** The doors of the routing service: message in, domain call, message out. */
import type { CatalogCheckResponse, CatalogReloadResponse, CatalogShowResponse, DecideRequest__Output, DecideResponse, ListModelsRequest__Output, ListModelsResponse, ProvidersResponse } from '@signalbox/contracts/routing';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { IdSource } from '@signalbox/kernel/ids';
import { decide } from '@signalbox/router-core/decide';
import type { Handlers } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import type { CatalogHolder } from './domain/catalog-holder.js';
import type { Conversations } from './domain/conversations.js';
import type { LiveStats } from './domain/live-stats.js';
import { listModels, modelDetail } from './domain/model-list.js';
import type { LoadedCatalog } from './domain/ports.js';
import type { QualityHolder } from './domain/quality-holder.js';
import type { RoutingMetrics } from './metrics.js';
import { decideResponse, toRouteRequest } from './wire.js';

export interface RoutingDoors {
  readonly holder: CatalogHolder;
  readonly quality: QualityHolder;
  readonly conversations: Conversations;
  readonly live: LiveStats;
  readonly clock: Clock;
  readonly makeId: IdSource;
  readonly log: Log;
  readonly metrics: RoutingMetrics;
  readonly location: string;
}

/** Handlers of RoutingService. A service without a catalog answers a Fault `routing_unavailable`. */
export function createRoutingHandlers({ holder, quality, conversations, live, clock, makeId, log, metrics, location }: RoutingDoors): Handlers {
  const loaded = (): LoadedCatalog => {
    const current = holder.current();
    if (current === undefined) throw new Fault('routing_unavailable', 'No catalog is loaded.');
    return current;
  };

  const decideOne = (message: DecideRequest__Output): DecideResponse => {
    const startedMs = clock.monotonicMs();
    const { catalog } = loaded();
    const request = toRouteRequest(message);
    // Of requests whose data must not be kept nothing is remembered, not even where they went.
    const isRemembered = !request.zdr && !request.denyDataCollection && request.promptText !== '';
    const held = isRemembered ? conversations.find(message.accountId, request.session) : undefined;
    const result = decide(held === undefined ? request : { ...request, held }, { catalog, live: live.view(), quality: quality.for(catalog) }, message.seed);
    if (result.kind === 'plan') {
      const view = live.view();
      for (const { endpoint } of result.attempts) if (view.get(endpoint.id)?.breaker === 'half-open') live.noteProbe(endpoint.id);
      const [first] = result.attempts;
      if (isRemembered && first !== undefined) conversations.note(message.accountId, request.session, first.endpoint.id, request.promptTokens);
    }
    metrics.decided(result.kind, (clock.monotonicMs() - startedMs) / 1_000);
    return decideResponse(result, { decisionId: makeId('decision'), snapshotId: catalog.id });
  };

  const list = (message: ListModelsRequest__Output): ListModelsResponse => {
    const { catalog } = loaded();
    return {
      snapshotId: catalog.id,
      models: listModels(catalog, message).map((model) => ({
        id: model.id,
        ownedBy: model.ownedBy,
        deprecationDate: model.deprecationDate ?? '',
        ...(message.detail ? { detailJson: Buffer.from(JSON.stringify(modelDetail(model, message.byokProviders))) } : {}),
      })),
    };
  };

  const show = (): CatalogShowResponse => {
    const { catalog, schemaVersion } = loaded();
    const available = catalog.endpoints.filter((endpoint) => endpoint.isServable && endpoint.hasManagedCredential);
    return {
      snapshotId: catalog.id,
      schemaVersion,
      models: catalog.models.length,
      endpoints: catalog.endpoints.length,
      availableEndpoints: available.length,
      availableProviders: [...new Set(available.map((endpoint) => endpoint.provider))].sort(),
      loadedFrom: location,
    };
  };

  const reload = async (): Promise<CatalogReloadResponse> => {
    const { problems: catalogProblems, warnings } = await holder.reload();
    const problems = [...catalogProblems, ...(await quality.reload())];
    const isLoaded = problems.length === 0;
    metrics.reloaded(isLoaded ? 'loaded' : 'refused');
    if (isLoaded) log.info('The catalog was loaded.', { snapshot_id: holder.current()?.catalog.id });
    else log.warn('The catalog or the quality artefact was refused; the last good one stays.', { problems });
    if (warnings.length > 0) log.warn('Prices moved by more than a factor of two.', { warnings });
    return { loaded: isLoaded, snapshotId: holder.current()?.catalog.id ?? '', problems: [...problems] };
  };

  const check = async (): Promise<CatalogCheckResponse> => {
    const { problems, warnings } = await holder.check();
    return { problems: [...problems, ...(await quality.check())], warnings: [...warnings] };
  };

  const providers = (): ProvidersResponse => {
    const view = live.view();
    const byProvider = new Map<string, { available: boolean; endpoints: NonNullable<NonNullable<ProvidersResponse['providers']>[number]['endpoints']> }>();
    for (const endpoint of loaded().catalog.endpoints) {
      const entry = byProvider.get(endpoint.provider) ?? { available: false, endpoints: [] };
      byProvider.set(endpoint.provider, entry);
      if (!endpoint.isServable || !(endpoint.hasManagedCredential || endpoint.takesByok)) continue;
      entry.available = true;
      const stats = view.get(endpoint.id);
      entry.endpoints.push({
        endpointId: endpoint.id,
        breaker: stats?.breaker ?? 'closed',
        samples: stats?.samples ?? 0,
        ...(stats?.latencyMsP75 === undefined ? {} : { latencyMsP75: stats.latencyMsP75 }),
        ...(stats?.throughputTpsP50 === undefined ? {} : { throughputTpsP50: stats.throughputTpsP50 }),
      });
    }
    return { providers: [...byProvider].map(([provider, entry]) => ({ provider, ...entry })) };
  };

  return { unary: { Decide: decideOne, ListModels: list, CatalogShow: show, CatalogReload: reload, CatalogCheck: check, Providers: providers } };
}
