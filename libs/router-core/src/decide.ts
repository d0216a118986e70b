/** `decide(request, snapshot, seed)`: pure; the same inputs give the same plan (ROUTING). */
import { effortOf } from '@signalbox/kernel/param-names';
import { cardFor, type PriceCard, type PriceStep } from '@signalbox/kernel/tokens';
import { ATTEMPTS_MAX, chooseForAuto, type AutoChoice } from './auto.js';
import { findModel, type Endpoint, type EndpointLive, type Model, type Snapshot } from './catalog.js';
import { CONTEXT_LENGTH_BIT, createEndpointFilter, isByLength, isDropped, isOnOwnCredential, isReachable, modelListFilter, reasonNames, type EndpointFilter, type Reason } from './filters.js';
import type { ModelGroup } from './model-group.js';
import type { Prediction } from './quality.js';
import { orderCandidates, scoreEndpoint, type Candidate } from './rank.js';
import { isAuto, type RouteRequest } from './request.js';
import { successorsOf } from './successors.js';

/** Endpoints that a plan needs for a failure to be survived. */
const ENDPOINTS_WANTED = 2;
/** A whole answer takes longer to begin than the first token of a stream. */
const WHOLE_ANSWER_EXTRA_MS = 120_000;
/** How much slower than usual an answer may be written that is still believed in. */
const SLOWEST_FACTOR = 4;
/** No answer takes longer. */
const WHOLE_ANSWER_MS_MAX = 600_000;
/**
 * How many times longer than without a thought a model that reasons may be silent before it streams, by the effort that is
 * asked for: hosts of the common format tell nothing until it has thought (79 s of a gpt-5 were measured in
 * BerriAI/litellm#36992). One that nothing was said to thinks as at `medium`, but for wires on which thoughts are asked for.
 */
const THINKING_FACTOR: Readonly<Record<string, number>> = { none: 1, minimal: 1, low: 1, medium: 2, high: 5, xhigh: 10, max: 10 };

export interface Attempt {
  readonly endpoint: Endpoint;
  /** For the estimate of the prompt. */
  readonly card: PriceCard;
  /** All cards of the endpoint, ascending; empty where there is one for every prompt. */
  readonly steps: readonly PriceStep[];
  /** Tuning fields of the request that this endpoint does not take. */
  readonly dropParams: readonly string[];
  readonly firstByteTimeoutMs: number;
  /** Longest that a whole answer may take to begin, which it does when it is written; 0 = nobody knows, and for streams. */
  readonly wholeTimeoutMs: number;
  /** On the account's own credential: all attempts of a plan, or none. */
  readonly byok: boolean;
}

export interface Plan {
  readonly kind: 'plan';
  /** 1 to ATTEMPTS_MAX, in order. */
  readonly attempts: readonly Attempt[];
  /** What savings are measured against; undefined = nothing to compare with. */
  readonly reference: { readonly model: string; readonly card: PriceCard; readonly steps: readonly PriceStep[] } | undefined;
  /** How `auto` chose; undefined when no model was left to us. */
  readonly auto: AutoChoice | undefined;
  /** The prompts for which it holds; undefined where anything else could have served the request. */
  readonly reach: Reach | undefined;
}

/** Prompt tokens, both inclusive, between which a request that asks for the same gets the same plan, whatever its seed, session and text. */
export interface Reach {
  readonly fromPromptTokens: number;
  /** Infinity = there is no upper end. */
  readonly toPromptTokens: number;
}

export type Refusal =
  | { readonly kind: 'model-not-found' }
  | { readonly kind: 'model-deprecated'; readonly fallbackModels: readonly string[] }
  | { readonly kind: 'no-eligible-provider'; readonly excludedBy: readonly Reason[] }
  /** `contextLimit` in tokens; 0 = unknown. `answerLimit`: a `max_tokens` of so many would be taken; undefined = the prompt is too long. */
  | { readonly kind: 'context-length-exceeded'; readonly contextLimit: number; readonly answerLimit?: number; readonly excludedBy: readonly Reason[] }
  /** `retryAfterMs`: until the first breaker lets a call through; 0 = unknown. */
  | { readonly kind: 'all-unhealthy'; readonly retryAfterMs: number };

/** What the filters left of one or all models. */
interface Pool {
  readonly eligible: readonly Endpoint[];
  /** They would be eligible, and are left out as outliers. */
  readonly ejected: readonly Endpoint[];
  readonly reachable: number;
  /** Those that the request, or one with another prompt, may go to, now or once they are well. */
  readonly possible: number;
  readonly unhealthy: number;
  /** Shortest wait of the unhealthy in milliseconds; Infinity = unknown. */
  readonly waitMs: number;
  readonly mask: number;
  /** Largest window among endpoints that only the length excludes; undefined = there is none. */
  readonly contextLimit: number | undefined;
  /** The most that one of them writes after this prompt, of those that write less than was asked for; 0 = there is none. */
  readonly answerLimit: number;
}

/** Answers a plan or the reason there is none. `seed` settles every draw; a given `prediction` is taken instead of a new one. */
export function decide(request: RouteRequest, snapshot: Snapshot, seed: number, prediction?: Prediction): Plan | Refusal {
  const filter = createEndpointFilter(request);
  const names = request.model === '' ? request.models : [request.model, ...request.models];
  const pools: Pool[] = [];
  const lists: Candidate[][] = [];
  const asked: string[] = [];
  let reference: Plan['reference'];
  let retired: Model | undefined;
  let auto: AutoChoice | undefined;
  for (const name of names) {
    const viaAuto = isAuto(name);
    const model = viaAuto ? undefined : findModel(snapshot.catalog, name);
    const identity = viaAuto ? 'auto' : (model?.id ?? name);
    if (asked.includes(identity) || (!viaAuto && model === undefined)) continue;
    asked.push(identity);
    const isAllowed = modelListFilter(snapshot.catalog, request, viaAuto);
    if (model?.isRetired === true) {
      if (isAllowed(model)) retired ??= model;
      continue;
    }
    const pool = gather(model === undefined ? snapshot.catalog.models : [model], request, snapshot, filter, isAllowed);
    pools.push(pool);
    const { eligible } = pool;
    if (eligible.length === 0) continue;
    // What is asked for first is compared with, even where it has no price to compare: what a client lists behind it may be as dear as it likes.
    const isFirst = lists.length === 0;
    if (model === undefined) {
      auto = chooseForAuto(eligible, request, snapshot, seed, prediction);
      if (isFirst) reference = autoReference(auto, request, snapshot);
      lists.push([...auto.ordered]);
    } else {
      if (isFirst) reference = listPrice(model, request);
      lists.push(rankPinned(eligible, request, snapshot, seed));
    }
  }
  // An outlier is worse than its peers, not down: it comes last rather than leave a plan with nothing to fail over to.
  if (pools.some((pool) => pool.ejected.length > 0) && new Set(lists.flat().map(({ endpoint }) => endpoint.id)).size < ENDPOINTS_WANTED) {
    const ejected = new Set(pools.flatMap((pool) => pool.ejected));
    lists.push(rankPinned([...ejected], request, snapshot, seed));
  }
  if (lists.length === 0) return refusalOf(pools, retired, request, snapshot);
  const attempts: Attempt[] = [];
  for (const candidate of pickAttempts(ofOneCredential(lists, request), request)) {
    const attempt = attemptOf(candidate, request);
    if (attempt !== undefined) attempts.push(attempt);
  }
  const reach = auto === undefined && pools.reduce((count, pool) => count + pool.possible, 0) === 1 ? reachOf(attempts, reference, request) : undefined;
  return { kind: 'plan', attempts, reference, auto, reach };
}

function gather(models: readonly Model[], request: RouteRequest, snapshot: Snapshot, filter: EndpointFilter, isAllowed: (model: Model) => boolean): Pool {
  const eligible: Endpoint[] = [];
  const ejected: Endpoint[] = [];
  let reachable = 0;
  let possible = 0;
  let unhealthy = 0;
  let waitMs = Infinity;
  let union = 0;
  let contextLimit: number | undefined;
  let answerLimit = 0;
  for (const model of models) {
    if (model.isRetired) continue;
    const isModelAllowed = isAllowed(model);
    for (const endpoint of model.endpoints) {
      if (!isReachable(endpoint, request.byokProviders)) continue;
      reachable += 1;
      const mask = filter(endpoint, isModelAllowed);
      if (isByLength(mask)) possible += 1;
      if (mask !== 0) {
        union |= mask;
        if (mask === CONTEXT_LENGTH_BIT) {
          contextLimit = Math.max(contextLimit ?? 0, endpoint.contextWindow ?? 0);
          answerLimit = Math.max(answerLimit, answerRoom(endpoint, request));
        }
        continue;
      }
      const live = snapshot.live.get(endpoint.id);
      if (isDown(endpoint, live, request)) {
        unhealthy += 1;
        waitMs = Math.min(waitMs, live?.waitMs ?? Infinity);
      } else if (isEjected(endpoint, live, request)) ejected.push(endpoint);
      else eligible.push(endpoint);
    }
  }
  // Where the request may go nowhere else, it goes to them.
  const counted = { reachable, possible, unhealthy, waitMs, mask: union, contextLimit, answerLimit };
  return eligible.length > 0 ? { ...counted, eligible, ejected } : { ...counted, eligible: ejected, ejected: [] };
}

/** What an endpoint that writes less than `max_tokens` would write after this prompt; 0 for one that writes as much, or cannot read it. */
function answerRoom({ contextWindow, maxOutputTokens }: Endpoint, { promptTokens, maxTokens = 0 }: RouteRequest): number {
  if (maxOutputTokens === null || maxTokens <= maxOutputTokens) return 0;
  return Math.max(0, Math.min(maxOutputTokens, (contextWindow ?? Infinity) - promptTokens));
}

/** Never on the account's own credential: a breaker tells of the operator's, which may be refused or limited alone, and another endpoint could be one that the account pays for. */
export function isDown(endpoint: Endpoint, live: EndpointLive | undefined, { byokProviders }: Pick<RouteRequest, 'byokProviders'>): boolean {
  return live?.breaker === 'open' && !isOnOwnCredential(endpoint, byokProviders);
}

/** Never of the account's own credential: another endpoint could be one that the account pays for. */
export function isEjected(endpoint: Endpoint, live: EndpointLive | undefined, { byokProviders }: Pick<RouteRequest, 'byokProviders'>): boolean {
  return live?.ejectedFor !== undefined && !isOnOwnCredential(endpoint, byokProviders);
}

function refusalOf(pools: readonly Pool[], retired: Model | undefined, request: RouteRequest, { catalog }: Snapshot): Refusal {
  const reachable = pools.filter((pool) => pool.reachable > 0);
  if (reachable.length === 0) return retired === undefined ? { kind: 'model-not-found' } : { kind: 'model-deprecated', fallbackModels: successorsOf(retired, catalog, request) };
  if (reachable.some((pool) => pool.unhealthy > 0)) {
    const waitMs = Math.min(...reachable.map((pool) => pool.waitMs));
    return { kind: 'all-unhealthy', retryAfterMs: Number.isFinite(waitMs) ? Math.ceil(waitMs) : 0 };
  }
  const excludedBy = reasonNames(reachable.reduce((mask, pool) => mask | pool.mask, 0));
  const limits = reachable.flatMap((pool) => (pool.contextLimit === undefined ? [] : [pool.contextLimit]));
  if (limits.length > 0) {
    const answerLimit = Math.max(...reachable.map((pool) => pool.answerLimit));
    return { kind: 'context-length-exceeded', contextLimit: Math.max(...limits), ...(answerLimit > 0 ? { answerLimit } : {}), excludedBy };
  }
  return { kind: 'no-eligible-provider', excludedBy };
}

function rankPinned(eligible: readonly Endpoint[], request: RouteRequest, snapshot: Snapshot, seed: number): Candidate[] {
  return orderCandidates(eligible.map((endpoint) => scoreEndpoint(endpoint, request, snapshot)), request, seed);
}

/**
 * A request that begins on the account's own credentials stays on them, and one on the operator's stays there: who pays
 * never changes on the way.
 */
function ofOneCredential(lists: readonly Candidate[][], { byokProviders }: RouteRequest): readonly Candidate[][] {
  const first = lists[0]?.[0];
  if (byokProviders.length === 0 || first === undefined) return lists;
  const isOwn = isOnOwnCredential(first.endpoint, byokProviders);
  return lists.map((list) => list.filter(({ endpoint }) => isOnOwnCredential(endpoint, byokProviders) === isOwn)).filter((list) => list.length > 0);
}

/** At most ATTEMPTS_MAX; each further model the client lists keeps a place while there is one. */
function pickAttempts(lists: readonly Candidate[][], request: RouteRequest): Candidate[] {
  const limit = request.provider.allowFallbacks || request.provider.order.length > 0 ? ATTEMPTS_MAX : 1;
  const picked: Candidate[] = [];
  lists.forEach((list, index) => {
    const reserved = Math.min(lists.length - index - 1, ATTEMPTS_MAX - 1);
    const room = Math.max(limit - reserved, picked.length + 1);
    for (const candidate of list) {
      if (picked.length >= Math.min(room, limit)) break;
      if (!picked.some(({ endpoint }) => endpoint.id === candidate.endpoint.id)) picked.push(candidate);
    }
  });
  return picked;
}

const NO_STEPS: readonly PriceStep[] = [];

/** None where one card holds for every prompt: an ordinary plan is no longer for them. */
const stepsOf = (prices: readonly PriceStep[]): readonly PriceStep[] => (prices.length > 1 ? prices : NO_STEPS);

/**
 * What a host is given for a whole answer, of which nothing can be seen before it is written: time for the longest that was
 * asked for, or else that the model writes, at a quarter of the endpoint's speed. Where length or speed is unknown, nothing
 * tells a long answer from a host that hangs. What runs on an account's own credential may run on a machine of its own.
 */
function wholeTimeoutMs({ endpoint, throughputTps }: Candidate, request: RouteRequest): number {
  const { needs, maxTokens, byokProviders } = request;
  const longest = (endpoint.unsupportedParams.has('max_tokens') ? undefined : maxTokens) ?? endpoint.maxOutputTokens;
  if (needs.streaming || longest === null || throughputTps === undefined || throughputTps <= 0 || isOnOwnCredential(endpoint, byokProviders)) return 0;
  // Several choices may be written one after the other.
  const writingMs = (longest * Math.max(1, needs.choices) * SLOWEST_FACTOR * 1_000) / throughputTps;
  return Math.ceil(Math.min(WHOLE_ANSWER_MS_MAX, endpoint.firstByteTimeoutMs + WHOLE_ANSWER_EXTRA_MS + writingMs));
}

const THINKS_WHEN_ASKED: ReadonlySet<string> = new Set(['anthropic-messages', 'bedrock-converse']);

/** Of a stream that only begins once its model has thought. */
function thinkingFactorOf({ hiddenReasoning, wireProtocol }: Endpoint, { needs }: RouteRequest): number {
  if (!hiddenReasoning || !needs.streaming) return 1;
  const effort = needs.params.map(effortOf).find((asked) => asked !== undefined) ?? (THINKS_WHEN_ASKED.has(wireProtocol) ? 'none' : 'medium');
  return THINKING_FACTOR[effort] ?? 1;
}

function attemptOf(candidate: Candidate, request: RouteRequest): Attempt | undefined {
  const { endpoint } = candidate;
  const card = cardFor(endpoint.prices, request.promptTokens);
  if (card === undefined) return undefined;
  return {
    endpoint,
    card,
    steps: stepsOf(endpoint.prices),
    dropParams: request.needs.params.filter((name) => isDropped(name, endpoint, request.byokProviders)),
    firstByteTimeoutMs: Math.min(WHOLE_ANSWER_MS_MAX, endpoint.firstByteTimeoutMs * thinkingFactorOf(endpoint, request)) + (request.needs.streaming ? 0 : WHOLE_ANSWER_EXTRA_MS),
    wholeTimeoutMs: wholeTimeoutMs(candidate, request),
    byok: isOnOwnCredential(endpoint, request.byokProviders),
  };
}

/** Of a plan that was the only one. A prompt that is longer may not fit, or have another price, and a shorter one as well. */
function reachOf(attempts: readonly Attempt[], reference: Plan['reference'], { maxTokens = 0 }: RouteRequest): Reach | undefined {
  const [only] = attempts;
  if (only === undefined) return undefined;
  let fromPromptTokens = 0;
  let toPromptTokens = (only.endpoint.contextWindow ?? Infinity) - maxTokens;
  for (const { card, steps } of reference === undefined ? [only] : [only, reference]) {
    const index = steps.findIndex((step) => step.card === card);
    fromPromptTokens = Math.max(fromPromptTokens, steps[index]?.fromPromptTokens ?? 0);
    toPromptTokens = Math.min(toPromptTokens, (steps[index + 1]?.fromPromptTokens ?? Infinity) - 1);
  }
  return { fromPromptTokens, toPromptTokens };
}

function referenceAt(model: string, prices: readonly PriceStep[], request: RouteRequest): Plan['reference'] {
  const card = cardFor(prices, request.promptTokens);
  return card === undefined ? undefined : { model, card, steps: stepsOf(prices) };
}

function listPrice(model: Model, request: RouteRequest): Plan['reference'] {
  return referenceAt(model.id, model.listPrices, request);
}

/** The account's baseline, else the ablest of the models that passed this request's filters at its cheapest endpoint. */
function autoReference(choice: AutoChoice, request: RouteRequest, snapshot: Snapshot): Plan['reference'] {
  if (request.baselineModel !== '') {
    const baseline = findModel(snapshot.catalog, request.baselineModel);
    const declared = baseline === undefined ? undefined : listPrice(baseline, request);
    if (declared !== undefined) return declared;
  }
  const ablest = choice.groups.reduce<ModelGroup | undefined>((best, group) => (best === undefined || group.model.ability > best.model.ability ? group : best), undefined);
  const cheapest = ablest?.candidates.reduce((best, candidate) => (candidate.cost < best.cost ? candidate : best));
  return ablest === undefined || cheapest === undefined ? undefined : referenceAt(ablest.model.id, cheapest.endpoint.prices, request);
}
