/** RPC handlers of the routing service: translate messages to domain calls and back. */
import type {
  CatalogCheckResponse, CatalogReloadRequest__Output, CatalogReloadResponse, CatalogShowResponse, DecideRequest__Output, DecideResponse, FindModelRequest__Output, FindModelResponse, PlanReuse, RecentDecisionRequest__Output, RecentDecisionResponse, ListModelsRequest__Output, ListModelsResponse, ProvidersResponse, QualityState as QualityStateMessage,
  ReplayRequest__Output, ReplayResponse, SettingNames, SettingNames__Output, WhatIfRequest__Output, WhatIfResponse,
} from '@signalbox/contracts/routing';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { IdSource } from '@signalbox/kernel/ids';
import { findModel } from '@signalbox/router-core/catalog';
import { decide } from '@signalbox/router-core/decide';
import { unknownInList } from '@signalbox/router-core/filters';
import { describe, mayKeep } from '@signalbox/router-core/record';
import { isAuto, type RouteRequest } from '@signalbox/router-core/request';
import { successorsOf } from '@signalbox/router-core/successors';
import type { Handlers } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import type { CatalogHolder } from './domain/catalog-holder.js';
import type { Conversations } from './domain/conversations.js';
import type { Decisions } from './domain/decisions.js';
import { explanationOf } from './domain/explanation.js';
import type { ExplorationBudget } from './domain/exploration-budget.js';
import type { LiveStats } from './domain/live-stats.js';
import { listModels, modelDetail, retiredModel } from './domain/model-list.js';
import type { LoadedCatalog } from './domain/ports.js';
import type { QualityHolder, QualityState } from './domain/quality-holder.js';
import { readRecord, type Replays } from './domain/replays.js';
import { nearestModel } from './domain/nearest-model.js';
import { unknownModels } from './domain/unknown-models.js';
import { unknownProviders } from './domain/unknown-providers.js';
import { untakenParams } from './domain/untaken-params.js';
import { similarModels } from './domain/similar-models.js';
import { unmetWishes, unsetProviders } from './domain/unset-providers.js';
import type { RoutingMetrics } from './metrics.js';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';
import { changesOf, decideResponse, planReuse, sideMessage, toListQuery, toRouteRequest } from './wire.js';

/** Most records in one comparison. */
const COMPARED_MAX = 1_000;

/** An operator's command that reaches one replica and is carried out by all. */
export type ControlAction = 'reload' | 'reload_with_prices' | 'quality_rollback';

export interface RoutingDoors {
  readonly holder: CatalogHolder;
  readonly quality: QualityHolder;
  readonly conversations: Conversations;
  readonly live: LiveStats;
  readonly decisions: Decisions;
  /** Undefined = `auto` never explores. */
  readonly exploration: ExplorationBudget | undefined;
  readonly replays: Replays;
  /** Passes an operator's command on to the other replicas. */
  readonly tellOthers: (action: ControlAction) => void;
  readonly clock: Clock;
  readonly makeId: IdSource;
  readonly log: Log;
  readonly metrics: RoutingMetrics;
  readonly location: string;
}

function qualityMessage({ artefactId = '', canaryId = '', canaryShare, previousId = '' }: QualityState): QualityStateMessage {
  return { artefactId, canaryId, canaryShare, previousId };
}

/** True if nothing is known about what an unknown model name means. */
const isUnlike = ({ unsetProviders = [], nearestModel = '' }: DecideResponse | ListModelsResponse): boolean => unsetProviders.length === 0 && nearestModel === '';

const NOTHING_TO_ROLL_BACK = 'There is nothing to roll back: no artefact is on trial, and none was in force before this one.';

/** Handlers of RoutingService, and of commands from other replicas. Without a catalog they answer a Fault `routing_unavailable`. */
export function createRoutingHandlers({ holder, quality, conversations, live, decisions, exploration, replays, tellOthers, clock, makeId, log, metrics, location }: RoutingDoors): Handlers & { readonly obey: (action: string) => Promise<void> } {
  const loaded = (): LoadedCatalog => {
    const current = holder.current();
    if (current === undefined) throw new Fault('routing_unavailable', 'No catalog is loaded.');
    return current;
  };

  const decideOne = (message: DecideRequest__Output): DecideResponse => {
    const startedMs = clock.monotonicMs();
    const { catalog, providers } = loaded();
    const request = toRouteRequest(message);
    // If a request's data must not be kept, not even the endpoint that served it is remembered.
    const isRemembered = !request.zdr && !request.denyDataCollection && request.promptText !== '';
    const planned = isRemembered ? conversations.find(message.accountId, request.session) : undefined;
    const held = planned === undefined || message.homeEndpointId === '' ? planned : { ...planned, endpointId: message.homeEndpointId };
    const viaAuto = isAuto(request.model) || request.models.some(isAuto);
    // Behind a model that the client named, `auto` hardly ever gets to choose: trying another model there teaches nothing.
    const beginsWithAuto = isAuto(request.model === '' ? (request.models[0] ?? '') : request.model);
    const room = beginsWithAuto && !request.zdr && !request.denyDataCollection ? exploration?.roomOf(message.accountId) : undefined;
    const asked: RouteRequest = held === undefined && room === undefined ? request : { ...request, held, explorationRoomNanoUsd: room };
    const view = live.view();
    const snapshot = { catalog, live: view, quality: quality.for(catalog, message.session === '' ? message.requestId : `${message.accountId}|${message.session}`) };
    const result = decide(asked, snapshot, message.seed);
    const first = result.kind === 'plan' ? result.attempts[0] : undefined;
    // True if the request was already sent by a kept plan, and edge only reports it. It is then recorded only if this decision has the same first endpoint: any other record would show something that did not happen.
    const isBeside = message.decisionId !== '';
    const isTold = !isBeside || first?.endpoint.id === message.endpointId;
    const decisionId = isBeside ? message.decisionId : makeId('decision');
    if (viaAuto) exploration?.note(decisionId, message.accountId, result);
    // Noted without the prompt: the result has what was predicted from it.
    const isNoted = message.accountId !== '' && isTold && decisions.takes(asked, viaAuto);
    if (isNoted) decisions.note({ id: decisionId, requestId: message.requestId, accountId: message.accountId, atMs: clock.nowMs(), viaAuto, request: asked.promptText === '' ? asked : { ...asked, promptText: '' }, snapshot, seed: message.seed, result });
    let reuse: PlanReuse | undefined;
    if (result.kind === 'plan') {
      const breaker = first === undefined || first.byok ? undefined : view.get(first.endpoint.id)?.breaker;
      // A plan that probes a half-open endpoint must serve one call only, so it is not reused. Nor is the plan of a request whose data must not be kept: its restrictions are checked against the catalog in force each time.
      if (mayKeep(asked) && !message.explain && breaker !== 'half-open') reuse = planReuse(result, isNoted && decisions.hasRoom());
      // Only the first endpoint counts as a probe: the fallbacks are probably not called, and if one is, its worker lets one call through anyway. A call with an account's own credential is not a probe, since its outcome is not counted for the endpoint.
      if (first !== undefined && !isBeside && breaker === 'half-open') live.noteProbe(first.endpoint.id);
      if (isRemembered && first !== undefined) conversations.note(message.accountId, request.session, first.endpoint.id, request.promptTokens);
    }
    metrics.decided(result.kind, (clock.monotonicMs() - startedMs) / 1_000);
    const isUnknown = result.kind === 'model-not-found';
    const answer = decideResponse(result, decisionId, isUnknown ? unsetProviders(catalog, request) : [], isUnknown ? nearestModel(catalog, providers, request) : undefined, catalog.models);
    if (isUnknown && isUnlike(answer)) answer.similarModels = similarModels(catalog, request);
    if (result.kind === 'no-eligible-provider' && result.excludedBy.includes('parameters')) answer.untakenParams = untakenParams(catalog, request);
    if (result.kind === 'no-eligible-provider' && result.excludedBy.includes('provider_preferences')) {
      const { unset, absent } = unmetWishes(catalog, request, providers);
      Object.assign(answer, { unsetProviders: unset, absentProviders: absent });
    }
    answer.ignoredParams = [...unknownProviders(message.provider, providers), ...unknownModels(catalog, request)];
    if (reuse !== undefined) answer.reuse = reuse;
    if (message.explain) answer.explanationJson = Buffer.from(JSON.stringify(explanationOf(describe(asked, snapshot, message.seed, result))));
    return answer;
  };

  const list = (message: ListModelsRequest__Output): ListModelsResponse => {
    const { catalog, providers } = loaded();
    const view = live.view();
    const query = toListQuery(message);
    const models = listModels(catalog, query);
    const isUnknown = query.model !== '' && models.length === 0;
    const nearest = isUnknown ? nearestModel(catalog, providers, query) : undefined;
    const retired = isUnknown ? retiredModel(catalog, query) : undefined;
    const missing: ListModelsResponse = isUnknown ? { unsetProviders: unsetProviders(catalog, query), nearestModel: nearest?.model ?? '', nearestProvider: nearest?.provider ?? '' } : {};
    if (isUnknown && retired === undefined && isUnlike(missing)) missing.similarModels = similarModels(catalog, query);
    return {
      ...(retired === undefined ? {} : { retired: true, fallbackModels: successorsOf(retired, catalog, query) }),
      ...missing,
      models: models.map((model) => ({
        id: model.id,
        ownedBy: model.ownedBy,
        deprecationDate: model.deprecationDate ?? '',
        ...(message.detail ? { detailJson: Buffer.from(JSON.stringify(modelDetail(model, query, view))) } : {}),
      })),
    };
  };

  const unknownNames = ({ allowModels, denyModels, allowProviders, denyProviders, models }: SettingNames__Output): SettingNames => {
    const { catalog, providers: known } = loaded();
    return {
      allowModels: unknownInList(catalog, allowModels, 'allow'),
      denyModels: unknownInList(catalog, denyModels, 'deny'),
      allowProviders: allowProviders.filter((name) => !providersNamed([name]).some((id) => known.has(id))),
      denyProviders: denyProviders.filter((name) => !providersForbidden([name]).some((id) => known.has(id))),
      models: models.filter((name) => findModel(catalog, name) === undefined),
    };
  };

  const find = ({ name }: FindModelRequest__Output): FindModelResponse => ({ id: findModel(loaded().catalog, name)?.id ?? '' });

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

  /** Takes both catalog and artefact, or neither. Prices that changed by more than a factor of two are taken only if the operator confirms them. */
  const reloadHere = async (takesPrices: boolean): Promise<CatalogReloadResponse> => {
    const found = await holder.check();
    const problems = [...found.problems, ...(await quality.check())];
    const isWaiting = found.warnings.length > 0 && !takesPrices;
    const isLoaded = problems.length === 0 && !isWaiting;
    if (isLoaded) {
      found.take();
      await quality.reload();
    }
    metrics.reloaded(isLoaded ? 'loaded' : 'refused');
    if (isLoaded) log.info('The catalog was loaded.', { snapshot_id: holder.current()?.catalog.id });
    else if (problems.length > 0) log.warn('The catalog or the quality artefact was refused; the last good ones stay.', { problems });
    else log.warn('The new catalog needs an operator\'s confirmation, since prices moved by more than a factor of two; the last good one stays in force.', { warnings: found.warnings });
    if (isLoaded && found.warnings.length > 0) log.warn('Prices moved by more than a factor of two.', { warnings: found.warnings });
    return { loaded: isLoaded, snapshotId: holder.current()?.catalog.id ?? '', problems, warnings: [...found.warnings] };
  };

  const reload = async ({ takesPrices }: CatalogReloadRequest__Output): Promise<CatalogReloadResponse> => {
    const answer = await reloadHere(takesPrices);
    tellOthers(takesPrices ? 'reload_with_prices' : 'reload');
    return answer;
  };

  const check = async (): Promise<CatalogCheckResponse> => {
    const { problems, warnings, loaded: found } = await holder.check();
    return { problems: [...problems, ...(await quality.check())], warnings: [...warnings], notices: [...(found?.notices ?? [])] };
  };

  /** Undefined if there is nothing to restore. */
  const rollbackHere = (): QualityState | undefined => {
    const { canaryId, previousId } = quality.state();
    if (canaryId === undefined && previousId === undefined) return undefined;
    const state = quality.rollback();
    log.info('The quality artefact was rolled back.', { artefact_id: state.artefactId, canary_id: state.canaryId });
    return state;
  };
  const rollback = (): QualityStateMessage => {
    const state = rollbackHere();
    // Another replica may have an artefact that this one never had.
    tellOthers('quality_rollback');
    return state === undefined ? { ...qualityMessage(quality.state()), problems: [NOTHING_TO_ROLL_BACK] } : qualityMessage(state);
  };

  const recentDecision = ({ accountId, id, requestId }: RecentDecisionRequest__Output): RecentDecisionResponse => {
    const found = accountId === '' ? undefined : decisions.find({ accountId, id, requestId });
    return found === undefined ? { found: false } : { found: true, id: found.id, requestId: found.requestId, atMs: String(found.atMs), recordJson: found.record, viaAuto: found.viaAuto };
  };

  const replayOne = async ({ recordJson }: ReplayRequest__Output): Promise<ReplayResponse> => {
    const record = readRecord(recordJson);
    if (record === undefined) return { problem: 'The record cannot be read.' };
    const replayed = await replays.one(record);
    if (replayed === undefined) throw new Fault('routing_unavailable', 'No catalog is loaded.');
    return { sameSnapshot: replayed.isSameSnapshot, samePlan: replayed.isSamePlan, attempts: [...replayed.attempts] };
  };

  const compare = async (message: WhatIfRequest__Output): Promise<WhatIfResponse> => {
    if (message.recordsJson.length > COMPARED_MAX) throw new Fault('bad_message', 'Too many records.');
    const changes = changesOf(message);
    const onDisk = message.catalog === 'file' ? await holder.check() : undefined;
    if (onDisk !== undefined && onDisk.loaded === undefined) return { problems: [...onDisk.problems] };
    const records = message.recordsJson.flatMap((text) => readRecord(text) ?? []);
    const found = await replays.compare(records, changes, onDisk?.loaded?.catalog);
    if (found === undefined) throw new Fault('routing_unavailable', 'No catalog is loaded.');
    const { compared, moved, refused, skipped, recorded, changed } = found;
    return { compared, moved, refused, skipped: skipped + message.recordsJson.length - records.length, recorded: sideMessage(recorded), changed: sideMessage(changed) };
  };

  const providers = (): ProvidersResponse => {
    const view = live.view();
    const byProvider = new Map<string, { available: boolean; endpoints: NonNullable<NonNullable<ProvidersResponse['providers']>[number]['endpoints']> }>();
    for (const endpoint of loaded().catalog.endpoints) {
      const entry = byProvider.get(endpoint.provider) ?? { available: false, endpoints: [] };
      byProvider.set(endpoint.provider, entry);
      if (!endpoint.isServable || !(endpoint.hasManagedCredential || endpoint.takesByok)) continue;
      entry.available ||= endpoint.hasManagedCredential;
      const stats = view.get(endpoint.id);
      // Endpoints that only accounts' own credentials reach are shown once they have been used.
      if (!endpoint.hasManagedCredential && stats === undefined) continue;
      entry.endpoints.push({
        endpointId: endpoint.id,
        breaker: stats?.breaker ?? 'closed',
        samples: stats?.samples ?? 0,
        ejectedFor: stats?.ejectedFor ?? '',
        ...(stats?.latencyMsP75 === undefined ? {} : { latencyMsP75: stats.latencyMsP75 }),
        ...(stats?.throughputTpsP50 === undefined ? {} : { throughputTpsP50: stats.throughputTpsP50 }),
      });
    }
    return { providers: [...byProvider].map(([provider, entry]) => ({ provider, ...entry })) };
  };

  return {
    unary: {
      Decide: decideOne, ListModels: list, CatalogShow: show, CatalogReload: reload, CatalogCheck: check, Providers: providers, UnknownNames: unknownNames, FindModel: find, RecentDecision: recentDecision, Replay: replayOne, WhatIf: compare,
      QualityShow: () => qualityMessage(quality.state()), QualityRollback: rollback,
    },
    obey: async (action) => {
      if (action === 'reload' || action === 'reload_with_prices') await reloadHere(action === 'reload_with_prices');
      else if (action === 'quality_rollback') rollbackHere();
    },
  };
}
