/** Ranks endpoints: tiers of soft preferences, expected cost, seeded weighted draw. */
import { cardFor, type PriceCard } from '@signalbox/kernel/tokens';
import type { Endpoint, EndpointLive, Snapshot } from './catalog.js';
import { isOnOwnCredential } from './filters.js';
import type { RouteRequest } from './request.js';

/** Number of samples from which on the catalog's prior no longer counts, and the prior's weight until then. */
const PRIOR_SAMPLES = 20;
/** Expected output tokens of an answer, where nothing better is known. */
export const EXPECTED_OUTPUT_TOKENS = 400;
/** Factor on the cost of an answer for reasoning that is billed but not shown. */
const HIDDEN_REASONING_FACTOR = 3;
const SUCCESS_SHARE_PRIOR = 0.98;
/** Share of requests with a sort by speed that try an endpoint whose speed nobody knows (ADR 111). */
export const TRIAL_SHARE = 0.05;
/** Nano-USD; keeps weights finite for endpoints that cost nothing. */
const COST_FLOOR = 1;

export interface Candidate {
  readonly endpoint: Endpoint;
  /** 0 = meets every soft preference; each missed one adds 1. */
  readonly tier: number;
  /** Expected nano-USD of this request. */
  readonly cost: number;
  /** `cost` plus the expected cost of retries. A score for ordering, never an amount of money. */
  readonly effectiveCost: number;
  readonly latencyMs: number | undefined;
  readonly throughputTps: number | undefined;
  /** For the client's sort: the same, or what fewer samples than a wish is held to show. Undefined = nothing is known. */
  readonly roughLatencyMs: number | undefined;
  readonly roughThroughputTps: number | undefined;
  /** Share of calls that succeed. */
  readonly successShare: number;
}

/** 32-bit FNV-1a with a final mix. */
export function hashText(text: string, seed: number): number {
  let hash = (0x811c9dc5 ^ seed) >>> 0;
  for (let i = 0; i < text.length; i += 1) {
    hash ^= text.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  hash ^= hash >>> 16;
  return hash >>> 0;
}

/** Uniform value in (0, 1), determined by text and seed. */
export function fractionOf(text: string, seed: number): number {
  return (hashText(text, seed) + 0.5) / 4_294_967_296;
}

function blend(observed: number | undefined, samples: number, prior: number | null): number | undefined {
  if (observed !== undefined && samples >= PRIOR_SAMPLES) return observed;
  if (prior === null) return undefined;
  return observed === undefined || samples === 0 ? prior : (observed * samples + prior * PRIOR_SAMPLES) / (samples + PRIOR_SAMPLES);
}

/** P75 in ms of what the client waits for: the first token of a stream, the end of anything else. Undefined = unknown. */
function expectedLatency(endpoint: Endpoint, live: EndpointLive | undefined, isStreaming: boolean): Pick<Candidate, 'latencyMs' | 'roughLatencyMs'> {
  const prior = endpoint.priorLatencyMsP75;
  const priorTotal = prior === null || endpoint.priorThroughputTpsP50 === null ? null : prior + (EXPECTED_OUTPUT_TOKENS * 1_000) / endpoint.priorThroughputTpsP50;
  const observed = isStreaming ? live?.latencyMsP75 : live?.totalMsP75;
  const latencyMs = isStreaming ? blend(observed, live?.samples ?? 0, prior) : blend(observed, live?.totalSamples ?? 0, priorTotal);
  return { latencyMs, roughLatencyMs: latencyMs ?? observed };
}

/**
 * Scores one endpoint for one request. An endpoint's price affects only its own score, so raising it never improves its rank.
 * `outputTokens`: expected length of the answer.
 */
export function scoreEndpoint(endpoint: Endpoint, request: RouteRequest, snapshot: Snapshot, outputTokens = EXPECTED_OUTPUT_TOKENS): Candidate {
  const live = snapshot.live.get(endpoint.id);
  const { latencyMs, roughLatencyMs } = expectedLatency(endpoint, live, request.needs.streaming);
  const throughputTps = blend(live?.throughputTpsP50, live?.throughputSamples ?? 0, endpoint.priorThroughputTpsP50);
  const isLate = request.preferredMaxLatency !== undefined && latencyMs !== undefined && latencyMs > request.preferredMaxLatency;
  const isSlow = request.preferredMinThroughput !== undefined && throughputTps !== undefined && throughputTps < request.preferredMinThroughput;
  const successShare = live?.successShare ?? SUCCESS_SHARE_PRIOR;
  const cost = expectedCost(endpoint, request, outputTokens);
  const effectiveCost = effectiveCostOf(cost, successShare);
  return { endpoint, tier: Number(isLate) + Number(isSlow), cost, effectiveCost, latencyMs, throughputTps, roughLatencyMs, roughThroughputTps: throughputTps ?? live?.throughputTpsP50, successShare };
}

/** `cost` including failures: a failed call is retried at about the same price. */
export function effectiveCostOf(cost: number, successShare: number): number {
  return Math.max(COST_FLOOR, cost * (2 - successShare));
}

/** Expected nano-USD at list price, with `cachedTokens` of the prompt priced as cached input. A floating-point score for ordering, never an amount of money. */
export function expectedCost(endpoint: Endpoint, request: Pick<RouteRequest, 'promptTokens' | 'maxTokens'>, outputTokens = EXPECTED_OUTPUT_TOKENS, cachedTokens = 0): number {
  const card = cardFor(endpoint.prices, request.promptTokens);
  if (card === undefined) return Infinity;
  const shown = Math.min(outputTokens, request.maxTokens ?? outputTokens);
  const thought = endpoint.hiddenReasoning ? Math.min(shown * HIDDEN_REASONING_FACTOR, request.maxTokens ?? Infinity) - shown : 0;
  const cached = Math.min(cachedTokens, request.promptTokens);
  const price = scorePrices(card);
  return ((request.promptTokens - cached) * price.input + cached * price.cacheRead + shown * price.output + thought * price.reasoning) / 1e6 + price.request;
}

interface ScorePrices {
  readonly input: number;
  readonly cacheRead: number;
  readonly output: number;
  readonly reasoning: number;
  readonly request: number;
}

/** Price cards never change, so each is converted to numbers once. */
const pricesForScores = new WeakMap<PriceCard, ScorePrices>();

function scorePrices(card: PriceCard): ScorePrices {
  let prices = pricesForScores.get(card);
  if (prices === undefined) {
    prices = { input: Number(card.inputUncached), cacheRead: Number(card.cacheRead), output: Number(card.outputText), reasoning: Number(card.outputReasoning), request: Number(card.requestNanoUsd) };
    pricesForScores.set(card, prices);
  }
  return prices;
}

/** Unknown values sort last. */
function compareKnown(left: number | undefined, right: number | undefined): number {
  if (left === undefined || right === undefined) return left === right ? 0 : left === undefined ? 1 : -1;
  return left - right;
}

/** By the client's `sort`; 0 where it has none, or both are equal by it. */
export function compareInTier(left: Candidate, right: Candidate, sort: RouteRequest['provider']['sort']): number {
  switch (sort) {
    case 'price':
      return left.effectiveCost - right.effectiveCost;
    case 'latency':
      return compareKnown(left.roughLatencyMs, right.roughLatencyMs);
    case 'throughput':
      return compareKnown(left.roughThroughputTps === undefined ? undefined : -left.roughThroughputTps, right.roughThroughputTps === undefined ? undefined : -right.roughThroughputTps);
    case '':
      return 0;
  }
}

/** Position in the client's own order; unnamed providers follow. */
export function orderPosition(candidate: Candidate, order: readonly string[]): number {
  const position = order.indexOf(candidate.endpoint.provider);
  return position < 0 ? order.length : position;
}

/** Sort key of the weighted draw, ascending. Each endpoint draws independently, so the result does not depend on their order, and a session keeps its endpoint. */
function drawKey({ endpoint, successShare, effectiveCost }: Candidate, seed: number): number {
  const weight = successShare ** 4 / effectiveCost ** 2;
  return -Math.log(fractionOf(endpoint.id, seed)) / weight;
}

/** A conversation draws the same each time. */
function drawSeedOf({ session }: RouteRequest, seed: number): number {
  return session === '' ? seed : hashText(session, 0);
}

/** Sorts by the client's order, then the account's own credentials, then tier, then the client's sort, then the draw. Loses none. */
export function orderCandidates(candidates: readonly Candidate[], request: RouteRequest, seed: number): Candidate[] {
  if (candidates.length < 2) return [...candidates];
  const { order, sort } = request.provider;
  const drawSeed = drawSeedOf(request, seed);
  const own = (candidate: Candidate): number => Number(isOnOwnCredential(candidate.endpoint, request.byokProviders));
  const keys = new Map(candidates.map((candidate) => [candidate, drawKey(candidate, drawSeed)]));
  return [...candidates].sort((left, right) =>
    (order.length === 0 ? 0 : orderPosition(left, order) - orderPosition(right, order))
    || (request.byokProviders.length === 0 ? 0 : own(right) - own(left))
    || left.tier - right.tier
    || compareInTier(left, right, sort)
    || (keys.get(left) ?? 0) - (keys.get(right) ?? 0)
    || left.endpoint.index - right.endpoint.index);
}

/**
 * Where the client sorts by speed, now and then puts an endpoint first of whose speed nothing is known, if all else that the
 * client wishes is equal. Those that sort would otherwise never see it, however fast it is. `ordered`: by `orderCandidates`.
 */
export function withTrial(ordered: readonly Candidate[], request: RouteRequest, seed: number): readonly Candidate[] {
  const { order, sort } = request.provider;
  const [first] = ordered;
  if (first === undefined || (sort !== 'latency' && sort !== 'throughput') || fractionOf('trial', drawSeedOf(request, seed)) >= TRIAL_SHARE) return ordered;
  const isOwn = ({ endpoint }: Candidate): boolean => isOnOwnCredential(endpoint, request.byokProviders);
  const isUnknown = ({ roughLatencyMs, roughThroughputTps }: Candidate): boolean => (sort === 'latency' ? roughLatencyMs : roughThroughputTps) === undefined;
  const tried = ordered.find((candidate) => isUnknown(candidate) && candidate.tier === first.tier && isOwn(candidate) === isOwn(first) && orderPosition(candidate, order) === orderPosition(first, order));
  return tried === undefined ? ordered : [tried, ...ordered.filter((candidate) => candidate !== tried)];
}
