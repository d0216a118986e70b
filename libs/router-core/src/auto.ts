/** `auto`: ranks models by predicted quality, then expected cost, and counts what moving a conversation costs (docs/auto.md). */
import type { Endpoint, Snapshot } from './catalog.js';
import { drawExploration } from './exploration.js';
import { isOnOwnCredential } from './filters.js';
import type { ModelGroup } from './model-group.js';
import type { Prediction } from './quality.js';
import { compareInTier, effectiveCostOf, EXPECTED_OUTPUT_TOKENS, expectedCost, hashText, orderCandidates, orderPosition, scoreEndpoint, type Candidate } from './rank.js';
import type { RouteRequest } from './request.js';

/** Most attempts in one plan. */
export const ATTEMPTS_MAX = 3;
/** ε: how far below the best predicted quality `auto` may go, by the account's policy. */
const QUALITY_MARGIN = { quality: 0.01, balanced: 0.03, economy: 0.1, '': 0.03 } as const;
/** What moving a conversation must gain beyond its lost prompt cache: in quality, or as a share of the cost. */
const MOVING_GAIN_MIN = 0.02;
/** Log-odds; a model without a prediction is as uncertain as an unmeasured one. */
const DEVIATION_UNJUDGED = 1;
const NANO_USD = 1e9;

export interface AutoChoice {
  /** Undefined if abilities decided. */
  readonly prediction: Prediction | undefined;
  /** Every model with an eligible endpoint, best first. */
  readonly groups: readonly ModelGroup[];
  /** The quality below which a model comes after all others; 0 when λ weighs quality against cost. */
  readonly floor: number;
  /** Models among which exploration may choose, best first; empty if it may not. */
  readonly peers: readonly ModelGroup[];
  /** Why the first model is first. */
  readonly reason: 'best' | 'stayed' | 'explored';
  /** Endpoints to try, best first: enough for a plan. */
  readonly ordered: readonly Candidate[];
}

/** `eligible` has passed every filter and is not empty. */
export function chooseForAuto(eligible: readonly Endpoint[], request: RouteRequest, snapshot: Snapshot, seed: number, given?: Prediction): AutoChoice {
  const prediction = given ?? (request.promptText === '' ? undefined : snapshot.quality?.predict(request.promptText, settingOf(request)));
  const groups = groupByModel(withoutSimulated(eligible, snapshot), request, snapshot, prediction);
  const floor = request.costWeight === undefined ? Math.max(...groups.map((group) => group.quality)) - QUALITY_MARGIN[request.mode] : 0;
  groups.sort((left, right) => compareGroups(left, right, floor, request) || hashText(left.model.id, seed) - hashText(right.model.id, seed) || left.model.index - right.model.index);
  const [best] = groups;
  const held = request.held === undefined ? undefined : findHeld(groups, request.held.endpointId);
  if (best !== undefined && held !== undefined && shouldStay(held, best, floor, request)) {
    const stayed = toFront(groups, held.group);
    return { prediction, floor, peers: [], reason: 'stayed', groups: stayed, ordered: orderOf(stayed, request, seed, held.candidate) };
  }
  const peers = held === undefined ? peersOf(groups, floor, request) : groups.slice(0, 1);
  const explored = drawExploration(peers, request, seed);
  const chosen = explored === undefined ? groups : toFront(groups, explored);
  return { prediction, floor, peers, reason: explored === undefined ? 'best' : 'explored', groups: chosen, ordered: orderOf(chosen, request, seed) };
}

function settingOf(request: RouteRequest): Parameters<NonNullable<Snapshot['quality']>['predict']>[1] {
  return { hasTools: request.needs.tools, wantsJson: request.needs.responseFormat !== '', promptTokens: request.promptTokens };
}

/** Drops simulated models unless no real one is left. */
function withoutSimulated(eligible: readonly Endpoint[], snapshot: Snapshot): readonly Endpoint[] {
  const real = eligible.filter((endpoint) => snapshot.catalog.models[endpoint.modelIndex]?.isSimulated !== true);
  return real.length > 0 ? real : eligible;
}

function groupByModel(eligible: readonly Endpoint[], request: RouteRequest, snapshot: Snapshot, prediction: Prediction | undefined): ModelGroup[] {
  const byModel = new Map<number, Endpoint[]>();
  for (const endpoint of eligible) {
    const list = byModel.get(endpoint.modelIndex);
    if (list === undefined) byModel.set(endpoint.modelIndex, [endpoint]);
    else list.push(endpoint);
  }
  const groups: ModelGroup[] = [];
  for (const [index, endpoints] of byModel) {
    const model = snapshot.catalog.models[index];
    if (model === undefined) continue;
    const outputTokens = prediction?.outputTokens[index] ?? EXPECTED_OUTPUT_TOKENS;
    const candidates = endpoints.map((endpoint) => scoreEndpoint(endpoint, request, snapshot, outputTokens));
    const [first, ...others] = candidates;
    if (first === undefined) continue;
    const best = others.reduce((top, candidate) => (comesBefore(candidate, top, request) ? candidate : top), first);
    groups.push({ model, candidates, best, orderPosition: orderPosition(best, request.provider.order), tier: best.tier, cost: best.effectiveCost, quality: prediction?.quality[index] ?? model.ability, deviation: prediction?.deviation[index] ?? DEVIATION_UNJUDGED, outputTokens });
  }
  return groups;
}

/** Orders endpoints of one model as `orderCandidates` does, but by cost instead of the draw: a model's cost is that of its best endpoint. With `sort` by speed that is the fastest, which may cost many times what the cheapest does. */
function comesBefore(left: Candidate, right: Candidate, { provider, byokProviders }: RouteRequest): boolean {
  const own = ({ endpoint }: Candidate): number => Number(isOnOwnCredential(endpoint, byokProviders));
  return (orderPosition(left, provider.order) - orderPosition(right, provider.order) || own(right) - own(left) || left.tier - right.tier || compareInTier(left, right, provider.sort) || left.effectiveCost - right.effectiveCost) < 0;
}

/** Quality minus λ times cost (nano-USD). */
export function utilityOf(quality: number, cost: number, costWeight: number): number {
  return quality - (costWeight * cost) / NANO_USD;
}

/** With λ: by client's order, tier, utility. With a margin: first the models above the floor, by client's order, tier and cost; then the others by quality. */
function compareGroups(left: ModelGroup, right: ModelGroup, floor: number, { costWeight }: RouteRequest): number {
  const leftIn = left.quality >= floor;
  if (leftIn !== right.quality >= floor) return leftIn ? -1 : 1;
  if (!leftIn) return right.quality - left.quality;
  const byWishes = left.orderPosition - right.orderPosition || left.tier - right.tier;
  if (byWishes !== 0) return byWishes;
  return costWeight === undefined ? left.cost - right.cost : utilityOf(right.quality, right.cost, costWeight) - utilityOf(left.quality, left.cost, costWeight);
}

interface Held {
  readonly group: ModelGroup;
  readonly candidate: Candidate;
}

function findHeld(groups: readonly ModelGroup[], endpointId: string): Held | undefined {
  for (const group of groups) {
    const candidate = group.candidates.find((entry) => entry.endpoint.id === endpointId);
    if (candidate !== undefined) return { group, candidate };
  }
  return undefined;
}

/** Moving a conversation loses its prompt cache. It stays unless the gain elsewhere exceeds that loss by `MOVING_GAIN_MIN`. */
function shouldStay(held: Held, best: ModelGroup, floor: number, request: RouteRequest): boolean {
  const position = orderPosition(held.candidate, request.provider.order);
  if (position > best.orderPosition || (position === best.orderPosition && held.candidate.tier > best.tier)) return false;
  // An own credential that is new, or works again, is used despite the lost cache: otherwise the account would pay us for what it already pays for elsewhere.
  if (!isPaidAs(held.group.best, held.candidate, request)) return false;
  const stayingCost = effectiveCostOf(expectedCost(held.candidate.endpoint, request, held.group.outputTokens, request.held?.cachedTokens ?? 0), held.candidate.successShare);
  if (request.costWeight !== undefined) return utilityOf(held.group.quality, stayingCost, request.costWeight) >= utilityOf(best.quality, best.cost, request.costWeight) - MOVING_GAIN_MIN;
  return held.group.quality >= floor - MOVING_GAIN_MIN && stayingCost <= best.cost * (1 + MOVING_GAIN_MIN);
}

/** Models that exploration may try instead of the first one: above the floor, and equal by the client's wishes. */
function peersOf(groups: readonly ModelGroup[], floor: number, request: RouteRequest): readonly ModelGroup[] {
  const best = groups[0];
  if (best === undefined) return [];
  if (request.costWeight !== undefined) return [best];
  return groups.filter((group) => group.quality >= floor && group.orderPosition === best.orderPosition && group.tier === best.tier);
}

function toFront(groups: readonly ModelGroup[], first: ModelGroup): ModelGroup[] {
  return [first, ...groups.filter((group) => group !== first)];
}

function orderOf(groups: readonly ModelGroup[], request: RouteRequest, seed: number, first?: Candidate): readonly Candidate[] {
  const ordered: Candidate[] = first === undefined ? [] : [first];
  const providers = new Set(ordered.map((candidate) => candidate.endpoint.provider));
  for (const group of groups) {
    // Only the head of the list is used: a full plan with a second provider is enough.
    if (ordered.length >= ATTEMPTS_MAX && providers.size > 1) break;
    for (const candidate of orderCandidates(group.candidates, request, seed)) {
      if (candidate === first || !isPaidAs(ordered[0], candidate, request)) continue;
      ordered.push(candidate);
      providers.add(candidate.endpoint.provider);
    }
  }
  return spanTwoProviders(ordered);
}

/** True if both candidates run on the same side's credential (account's or operator's): who pays never changes within a plan. */
function isPaidAs(first: Candidate | undefined, candidate: Candidate, { byokProviders }: RouteRequest): boolean {
  return first === undefined || isOnOwnCredential(first.endpoint, byokProviders) === isOnOwnCredential(candidate.endpoint, byokProviders);
}

/** If the plan has only one provider, puts the first endpoint of another provider in its last place. */
function spanTwoProviders(ordered: Candidate[]): Candidate[] {
  const first = ordered[0];
  if (first === undefined) return ordered;
  const other = ordered.findIndex((candidate) => candidate.endpoint.provider !== first.endpoint.provider);
  if (other < ATTEMPTS_MAX) return ordered;
  const [moved] = ordered.splice(other, 1);
  if (moved !== undefined) ordered.splice(ATTEMPTS_MAX - 1, 0, moved);
  return ordered;
}
