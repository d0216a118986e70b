/** `decide(request, snapshot, seed)`: pure; the same inputs give the same plan (ROUTING). */
import type { PriceCard } from '@signalbox/kernel/tokens';
import { cardFor, findModel, type Endpoint, type Model, type Snapshot } from './catalog.js';
import { CONTEXT_LENGTH_BIT, createEndpointFilter, isReachable, modelListFilter, reasonNames, type EndpointFilter, type Reason } from './filters.js';
import { expectedCost, hashText, orderCandidates, scoreEndpoint, type Candidate } from './rank.js';
import { isAuto, type RouteRequest } from './request.js';

/** Attempts of one plan at most. */
export const ATTEMPTS_MAX = 3;
/** How far below the best ability `auto` may go, by the account's policy. */
const ABILITY_MARGIN = { quality: 0.01, balanced: 0.03, economy: 0.1, '': 0.03 } as const;
const FALLBACK_MODELS_MAX = 3;
/** A whole answer takes longer to begin than the first token of a stream. */
const WHOLE_ANSWER_EXTRA_MS = 120_000;

export interface Attempt {
  readonly endpoint: Endpoint;
  readonly card: PriceCard;
  /** Tuning fields of the request that this endpoint does not take. */
  readonly dropParams: readonly string[];
  readonly firstByteTimeoutMs: number;
}

export interface Plan {
  readonly kind: 'plan';
  /** 1 to ATTEMPTS_MAX, in order. */
  readonly attempts: readonly Attempt[];
  /** What savings are measured against; undefined = nothing to compare with. */
  readonly reference: { readonly model: string; readonly card: PriceCard } | undefined;
}

export type Refusal =
  | { readonly kind: 'model-not-found' }
  | { readonly kind: 'model-deprecated'; readonly fallbackModels: readonly string[] }
  | { readonly kind: 'no-eligible-provider'; readonly excludedBy: readonly Reason[] }
  /** `contextLimit` in tokens; 0 = unknown. */
  | { readonly kind: 'context-length-exceeded'; readonly contextLimit: number; readonly excludedBy: readonly Reason[] }
  | { readonly kind: 'all-unhealthy' };

/** What the filters left of one or all models. */
interface Pool {
  readonly eligible: readonly Endpoint[];
  readonly reachable: number;
  readonly unhealthy: number;
  readonly mask: number;
  /** Largest window among endpoints that only the length excludes; undefined = there is none. */
  readonly contextLimit: number | undefined;
}

/** Answers a plan or the reason there is none. `seed` settles every draw. */
export function decide(request: RouteRequest, snapshot: Snapshot, seed: number): Plan | Refusal {
  const filter = createEndpointFilter(request);
  const names = request.model === '' ? request.models : [request.model, ...request.models];
  const pools: Pool[] = [];
  const lists: Candidate[][] = [];
  const asked = new Set<string>();
  let reference: Plan['reference'];
  let retired: Model | undefined;
  for (const name of names) {
    const viaAuto = isAuto(name);
    const model = viaAuto ? undefined : findModel(snapshot.catalog, name);
    const identity = viaAuto ? 'auto' : (model?.id ?? name);
    if (asked.has(identity) || (!viaAuto && model === undefined)) continue;
    asked.add(identity);
    if (model?.isRetired === true) {
      retired ??= model;
      continue;
    }
    const isAllowed = modelListFilter(snapshot.catalog, request, viaAuto);
    const pool = gather(model === undefined ? snapshot.catalog.models : [model], request, snapshot, filter, isAllowed);
    pools.push(pool);
    if (pool.eligible.length === 0) continue;
    const eligible = viaAuto ? withoutSimulated(pool.eligible, snapshot) : pool.eligible;
    reference ??= model === undefined ? autoReference(eligible, request, snapshot) : listPrice(model, request);
    lists.push(viaAuto ? rankForAuto(eligible, request, snapshot, seed) : rankPinned(eligible, request, snapshot, seed));
  }
  if (lists.length === 0) return refusalOf(pools, retired, snapshot);
  const attempts: Attempt[] = [];
  for (const candidate of pickAttempts(lists, request)) {
    const attempt = attemptOf(candidate.endpoint, request);
    if (attempt !== undefined) attempts.push(attempt);
  }
  return { kind: 'plan', attempts, reference };
}

function gather(models: readonly Model[], request: RouteRequest, snapshot: Snapshot, filter: EndpointFilter, isAllowed: (model: Model) => boolean): Pool {
  const eligible: Endpoint[] = [];
  let reachable = 0;
  let unhealthy = 0;
  let union = 0;
  let contextLimit: number | undefined;
  for (const model of models) {
    if (model.isRetired) continue;
    const isModelAllowed = isAllowed(model);
    for (const endpoint of model.endpoints) {
      if (!isReachable(endpoint, request.byokProviders)) continue;
      reachable += 1;
      const mask = filter(endpoint, isModelAllowed);
      if (mask !== 0) {
        union |= mask;
        if (mask === CONTEXT_LENGTH_BIT) contextLimit = Math.max(contextLimit ?? 0, endpoint.contextWindow ?? 0);
      } else if (snapshot.live.get(endpoint.id)?.breaker === 'open') unhealthy += 1;
      else eligible.push(endpoint);
    }
  }
  return { eligible, reachable, unhealthy, mask: union, contextLimit };
}

function refusalOf(pools: readonly Pool[], retired: Model | undefined, snapshot: Snapshot): Refusal {
  const reachable = pools.filter((pool) => pool.reachable > 0);
  if (reachable.length === 0) return retired === undefined ? { kind: 'model-not-found' } : { kind: 'model-deprecated', fallbackModels: successorsOf(retired, snapshot) };
  if (reachable.some((pool) => pool.unhealthy > 0)) return { kind: 'all-unhealthy' };
  const excludedBy = reasonNames(reachable.reduce((mask, pool) => mask | pool.mask, 0));
  const limits = reachable.flatMap((pool) => (pool.contextLimit === undefined ? [] : [pool.contextLimit]));
  if (limits.length > 0) return { kind: 'context-length-exceeded', contextLimit: Math.max(...limits), excludedBy };
  return { kind: 'no-eligible-provider', excludedBy };
}

/** Models of the same maker that are served, nearest in ability first. */
function successorsOf(retired: Model, snapshot: Snapshot): string[] {
  return snapshot.catalog.models
    .filter((model) => model.ownedBy === retired.ownedBy && !model.isRetired && model.endpoints.some((endpoint) => isReachable(endpoint, [])))
    .sort((left, right) => Math.abs(left.ability - retired.ability) - Math.abs(right.ability - retired.ability) || left.index - right.index)
    .slice(0, FALLBACK_MODELS_MAX)
    .map((model) => model.id);
}

function rankPinned(eligible: readonly Endpoint[], request: RouteRequest, snapshot: Snapshot, seed: number): Candidate[] {
  return orderCandidates(eligible.map((endpoint) => scoreEndpoint(endpoint, request, snapshot, seed)), request);
}

/** Simulated models count only where nothing real is left. */
function withoutSimulated(eligible: readonly Endpoint[], snapshot: Snapshot): readonly Endpoint[] {
  const real = eligible.filter((endpoint) => snapshot.catalog.models[endpoint.modelIndex]?.isSimulated !== true);
  return real.length > 0 ? real : eligible;
}

interface ModelGroup {
  readonly model: Model;
  readonly candidates: Candidate[];
  orderPosition: number;
  tier: number;
  cost: number;
}

/** All eligible endpoints: models within the margin of the best ability, cheapest first; then the rest by ability. */
function rankForAuto(eligible: readonly Endpoint[], request: RouteRequest, snapshot: Snapshot, seed: number): Candidate[] {
  const models = snapshot.catalog.models;
  const groups = new Map<number, ModelGroup>();
  for (const endpoint of eligible) {
    const model = models[endpoint.modelIndex];
    if (model === undefined) continue;
    let group = groups.get(endpoint.modelIndex);
    if (group === undefined) {
      group = { model, candidates: [], orderPosition: Infinity, tier: Infinity, cost: Infinity };
      groups.set(endpoint.modelIndex, group);
    }
    const candidate = scoreEndpoint(endpoint, request, snapshot, seed);
    group.candidates.push(candidate);
    const listed = request.provider.order.indexOf(endpoint.provider);
    const position = listed < 0 ? request.provider.order.length : listed;
    if (position < group.orderPosition || (position === group.orderPosition && (candidate.tier < group.tier || (candidate.tier === group.tier && candidate.effectiveCost < group.cost)))) {
      group.orderPosition = position;
      group.tier = candidate.tier;
      group.cost = candidate.effectiveCost;
    }
  }
  const best = Math.max(...[...groups.values()].map((group) => group.model.ability));
  const floor = best - ABILITY_MARGIN[request.mode];
  const ranked = [...groups.values()].sort((left, right) => {
    const leftIn = left.model.ability >= floor;
    if (leftIn !== right.model.ability >= floor) return leftIn ? -1 : 1;
    if (!leftIn) return right.model.ability - left.model.ability || left.model.index - right.model.index;
    return left.orderPosition - right.orderPosition || left.tier - right.tier || left.cost - right.cost || hashText(left.model.id, seed) - hashText(right.model.id, seed);
  });
  const ordered: Candidate[] = [];
  const providers = new Set<string>();
  for (const group of ranked) {
    // Only the head of the list can be picked: a full plan and a second provider are enough.
    if (ordered.length >= ATTEMPTS_MAX && providers.size > 1) break;
    for (const candidate of orderCandidates(group.candidates, request)) {
      ordered.push(candidate);
      providers.add(candidate.endpoint.provider);
    }
  }
  return spanTwoProviders(ordered);
}

/** Puts the first endpoint of another provider in the last place of the plan when the plan has but one provider. */
function spanTwoProviders(ordered: Candidate[]): Candidate[] {
  const first = ordered[0];
  if (first === undefined) return ordered;
  const other = ordered.findIndex((candidate) => candidate.endpoint.provider !== first.endpoint.provider);
  if (other < ATTEMPTS_MAX) return ordered;
  const [moved] = ordered.splice(other, 1);
  if (moved !== undefined) ordered.splice(ATTEMPTS_MAX - 1, 0, moved);
  return ordered;
}

/** At most ATTEMPTS_MAX; each further model the client lists keeps a place while there is one. */
function pickAttempts(lists: readonly Candidate[][], request: RouteRequest): Candidate[] {
  const limit = request.provider.allowFallbacks || request.provider.order.length > 0 ? ATTEMPTS_MAX : 1;
  const picked: Candidate[] = [];
  const taken = new Set<string>();
  lists.forEach((list, index) => {
    const reserved = Math.min(lists.length - index - 1, ATTEMPTS_MAX - 1);
    const room = Math.max(limit - reserved, picked.length + 1);
    for (const candidate of list) {
      if (picked.length >= Math.min(room, limit)) break;
      if (taken.has(candidate.endpoint.id)) continue;
      taken.add(candidate.endpoint.id);
      picked.push(candidate);
    }
  });
  return picked;
}

function attemptOf(endpoint: Endpoint, request: RouteRequest): Attempt | undefined {
  const card = cardFor(endpoint.prices, request.promptTokens);
  if (card === undefined) return undefined;
  return {
    endpoint,
    card,
    dropParams: request.needs.params.filter((name) => endpoint.unsupportedParams.has(name)),
    firstByteTimeoutMs: endpoint.firstByteTimeoutMs + (request.needs.streaming ? 0 : WHOLE_ANSWER_EXTRA_MS),
  };
}

function listPrice(model: Model, request: RouteRequest): Plan['reference'] {
  const card = cardFor(model.listPrices, request.promptTokens);
  return card === undefined ? undefined : { model: model.id, card };
}

/** The account's baseline, else the ablest of the models that passed this request's filters at its cheapest endpoint. */
function autoReference(eligible: readonly Endpoint[], request: RouteRequest, snapshot: Snapshot): Plan['reference'] {
  if (request.baselineModel !== '') {
    const baseline = findModel(snapshot.catalog, request.baselineModel);
    const declared = baseline === undefined ? undefined : listPrice(baseline, request);
    if (declared !== undefined) return declared;
  }
  let best: { readonly model: Model; readonly endpoint: Endpoint; readonly cost: number } | undefined;
  for (const endpoint of eligible) {
    const model = snapshot.catalog.models[endpoint.modelIndex];
    if (model === undefined) continue;
    const cost = expectedCost(endpoint, request);
    if (best === undefined || model.ability > best.model.ability || (model.ability === best.model.ability && cost < best.cost)) best = { model, endpoint, cost };
  }
  if (best === undefined) return undefined;
  const card = cardFor(best.endpoint.prices, request.promptTokens);
  return card === undefined ? undefined : { model: best.model.id, card };
}
