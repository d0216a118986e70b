/** `decide(request, snapshot, seed)` turns a request into a plan of attempts. Pure: the same inputs give the same plan. */
import { effortOf } from '@signalbox/kernel/param-names';
import { cardFor, type PriceCard, type PriceStep } from '@signalbox/kernel/tokens';
import { ATTEMPTS_MAX, chooseForAuto, type AutoChoice } from './auto.js';
import { findModel, type Endpoint, type EndpointLive, type Model, type Snapshot } from './catalog.js';
import { CONTEXT_LENGTH_BIT, createEndpointFilter, isByLength, isDropped, isOnOwnCredential, isReachable, modelListFilter, reasonNames, type EndpointFilter, type Reason } from './filters.js';
import type { ModelGroup } from './model-group.js';
import type { Prediction } from './quality.js';
import { orderCandidates, scoreEndpoint, withTrial, type Candidate } from './rank.js';
import { isAuto, type RouteRequest } from './request.js';
import { successorsOf } from './successors.js';

/** Endpoints that a plan needs to survive the failure of one. */
const ENDPOINTS_WANTED = 2;
/** Added to the time limit of an answer that is not streamed: it takes longer to arrive than the first token of a stream. */
const WHOLE_ANSWER_EXTRA_MS = 120_000;
/** How many times slower than usual an answer may be generated before it counts as hanging. */
const SLOWEST_FACTOR = 4;
/** Upper limit of the time for a whole answer. */
const WHOLE_ANSWER_MS_MAX = 600_000;
/**
 * By reasoning effort: how many times longer than otherwise a reasoning model may be silent before its stream begins. Hosts of
 * the OpenAI format send nothing until it has finished thinking (79 s were measured for gpt-5 in BerriAI/litellm#36992).
 * Without an effort in the request `medium` is assumed, except on wires where thinking is off unless asked for.
 */
const THINKING_FACTOR: Readonly<Record<string, number>> = { none: 1, minimal: 1, low: 1, medium: 2, high: 5, xhigh: 10, max: 10 };

export interface Attempt {
  readonly endpoint: Endpoint;
  /** The price card for a prompt of the estimated length. */
  readonly card: PriceCard;
  /** All price steps of the endpoint by prompt length, ascending; empty where there is only one. */
  readonly steps: readonly PriceStep[];
  /** Tuning fields of the request that this endpoint does not support, and is not sent. */
  readonly dropParams: readonly string[];
  readonly firstByteTimeoutMs: number;
  /** Time limit for the first byte of an answer that is not streamed, which arrives once all of it is generated; 0 = no limit is known, and for streams. */
  readonly wholeTimeoutMs: number;
  /** Uses the account's own credential; the same for all attempts of a plan. */
  readonly byok: boolean;
}

export interface Plan {
  readonly kind: 'plan';
  /** 1 to ATTEMPTS_MAX, in order. */
  readonly attempts: readonly Attempt[];
  /** The baseline that savings are measured against; undefined = there is none. */
  readonly reference: { readonly model: string; readonly card: PriceCard; readonly steps: readonly PriceStep[] } | undefined;
  /** How `auto` chose; undefined when the client named every model. */
  readonly auto: AutoChoice | undefined;
  /** The plan begins with the choice of `auto`; false where it begins with a model that the client named, even if `auto` is among the fallbacks. */
  readonly isByAuto: boolean;
  /** The prompt lengths for which the plan may be reused; undefined where other endpoints could have served the request. */
  readonly reach: Reach | undefined;
  /** Milliseconds until an endpoint may be called that has more room for the prompt than those of the plan, whose windows are too small by the estimate; absent = none is down. */
  readonly roomierAfterMs?: number;
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
  /** `contextLimit` in tokens; 0 = unknown. `answerLimit`: the largest `max_tokens` that would be accepted with this prompt; undefined = the prompt itself is too long. */
  | { readonly kind: 'context-length-exceeded'; readonly contextLimit: number; readonly answerLimit?: number; readonly excludedBy: readonly Reason[] }
  /** `retryAfterMs`: until the first breaker lets a call through; 0 = unknown. `isLengthToo`: others are left out for nothing but the length of the prompt. */
  | { readonly kind: 'all-unhealthy'; readonly retryAfterMs: number; readonly isLengthToo: boolean };

/** The wait that is assumed for a breaker of which none is known. */
const UNKNOWN_WAIT_MS = 5_000;

/** The endpoints of one model, or of all, after the hard filters. */
interface Pool {
  readonly eligible: readonly Endpoint[];
  /** Eligible but for being ejected as outliers. */
  readonly ejected: readonly Endpoint[];
  readonly reachable: number;
  /** How many could serve this request, or one with a prompt of another length, now or once they have recovered. */
  readonly possible: number;
  readonly unhealthy: number;
  /** Shortest wait of the unhealthy in milliseconds; Infinity = unknown. */
  readonly waitMs: number;
  readonly mask: number;
  /** Largest window among endpoints that only the length excludes; undefined = there is none. */
  readonly contextLimit: number | undefined;
  /** The largest answer, in tokens, among endpoints that generate less than was asked for; 0 = there is none. */
  readonly answerLimit: number;
}

/** A plan, or the reason why there is none. `seed` fixes every random draw. `prediction`: the quality prediction of an earlier decision, used instead of a new one. */
export function decide(request: RouteRequest, snapshot: Snapshot, seed: number, prediction?: Prediction): Plan | Refusal {
  const { promptTokens, promptTokensMin = promptTokens } = request;
  const decided = decideFor(promptTokens, request, snapshot, seed, prediction);
  if (promptTokensMin >= promptTokens) return decided;
  // What the estimate alone excludes is left to the provider to refuse (ADR 87).
  if (decided.kind === 'context-length-exceeded') return decideFor(promptTokensMin, request, snapshot, seed, prediction);
  if (decided.kind !== 'all-unhealthy' || !decided.isLengthToo) return decided;
  const plan = decideFor(promptTokensMin, request, snapshot, seed, prediction);
  return plan.kind === 'plan' ? { ...plan, roomierAfterMs: decided.retryAfterMs > 0 ? decided.retryAfterMs : UNKNOWN_WAIT_MS } : decided;
}

/** `promptTokens`: the length that a window must have room for. Prices are those of the estimated length. */
function decideFor(promptTokens: number, request: RouteRequest, snapshot: Snapshot, seed: number, prediction: Prediction | undefined): Plan | Refusal {
  const filter = createEndpointFilter(request, promptTokens);
  const names = request.model === '' ? request.models : [request.model, ...request.models];
  const pools: Pool[] = [];
  const lists: (readonly Candidate[])[] = [];
  const asked: string[] = [];
  let reference: Plan['reference'];
  let retired: Model | undefined;
  let auto: AutoChoice | undefined;
  let isByAuto = false;
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
    const pool = gather(model === undefined ? snapshot.catalog.models : [model], request, snapshot, { promptTokens, filter, isAllowed });
    pools.push(pool);
    const { eligible } = pool;
    if (eligible.length === 0) continue;
    // The first model in the request is the reference for savings, even if it has no list price: a client could put a fallback at any price behind it.
    const isFirst = lists.length === 0;
    if (model === undefined) {
      auto = chooseForAuto(eligible, request, snapshot, seed, prediction);
      isByAuto = isFirst;
      if (isFirst) reference = autoReference(auto, request, snapshot);
      lists.push([...auto.ordered]);
    } else {
      if (isFirst) reference = listPrice(model, request);
      const ordered = rankPinned(eligible, request, snapshot, seed);
      // A trial needs a place behind it for the endpoint that is known: it must not cost the client the model, or the answer.
      const ranked = isFirst && attemptsMaxOf(request) > names.length ? withTrial(ordered, request, seed) : ordered;
      lists.push(promptTokens < request.promptTokens ? smallWindowsLast(ranked, request) : ranked);
    }
  }
  // An outlier is worse than its peers, but not down: it goes last, if the plan would otherwise have no endpoint to fail over to.
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
  const reach = auto === undefined && promptTokens === request.promptTokens && pools.reduce((count, pool) => count + pool.possible, 0) === 1 ? reachOf(attempts, reference, request) : undefined;
  return { kind: 'plan', attempts, reference, auto, isByAuto, reach };
}

interface Sieve {
  readonly promptTokens: number;
  readonly filter: EndpointFilter;
  readonly isAllowed: (model: Model) => boolean;
}

function gather(models: readonly Model[], request: RouteRequest, snapshot: Snapshot, { promptTokens, filter, isAllowed }: Sieve): Pool {
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
          answerLimit = Math.max(answerLimit, answerRoom(endpoint, promptTokens, request.maxTokens));
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
  // If only ejected endpoints are left, use them.
  const counted = { reachable, possible, unhealthy, waitMs, mask: union, contextLimit, answerLimit };
  return eligible.length > 0 ? { ...counted, eligible, ejected } : { ...counted, eligible: ejected, ejected: [] };
}

/** The answer, in tokens, that an endpoint with an output limit below `max_tokens` has room for after this prompt; 0 where the limit is no obstacle, or the prompt leaves no room. */
function answerRoom({ contextWindow, maxOutputTokens }: Endpoint, promptTokens: number, maxTokens = 0): number {
  if (maxOutputTokens === null || maxTokens <= maxOutputTokens) return 0;
  return Math.max(0, Math.min(maxOutputTokens, (contextWindow ?? Infinity) - promptTokens));
}

/** True while the endpoint's breaker is open. Never on the account's own credential: the breaker reflects the operator's, and going elsewhere could change who pays. */
export function isDown(endpoint: Endpoint, live: EndpointLive | undefined, { byokProviders }: Pick<RouteRequest, 'byokProviders'>): boolean {
  return live?.breaker === 'open' && !isOnOwnCredential(endpoint, byokProviders);
}

/** True while the endpoint is ejected as an outlier. Never on the account's own credential: going elsewhere could change who pays. */
export function isEjected(endpoint: Endpoint, live: EndpointLive | undefined, { byokProviders }: Pick<RouteRequest, 'byokProviders'>): boolean {
  return live?.ejectedFor !== undefined && !isOnOwnCredential(endpoint, byokProviders);
}

function refusalOf(pools: readonly Pool[], retired: Model | undefined, request: RouteRequest, { catalog }: Snapshot): Refusal {
  const reachable = pools.filter((pool) => pool.reachable > 0);
  if (reachable.length === 0) return retired === undefined ? { kind: 'model-not-found' } : { kind: 'model-deprecated', fallbackModels: successorsOf(retired, catalog, request) };
  if (reachable.some((pool) => pool.unhealthy > 0)) {
    const waitMs = Math.min(...reachable.map((pool) => pool.waitMs));
    return { kind: 'all-unhealthy', retryAfterMs: Number.isFinite(waitMs) ? Math.ceil(waitMs) : 0, isLengthToo: reachable.some((pool) => pool.contextLimit !== undefined) };
  }
  const excludedBy = reasonNames(reachable.reduce((mask, pool) => mask | pool.mask, 0));
  const limits = reachable.flatMap((pool) => (pool.contextLimit === undefined ? [] : [pool.contextLimit]));
  if (limits.length > 0) {
    const answerLimit = Math.max(...reachable.map((pool) => pool.answerLimit));
    return { kind: 'context-length-exceeded', contextLimit: Math.max(...limits), ...(answerLimit > 0 ? { answerLimit } : {}), excludedBy };
  }
  return { kind: 'no-eligible-provider', excludedBy };
}

function rankPinned(eligible: readonly Endpoint[], request: RouteRequest, snapshot: Snapshot, seed: number): readonly Candidate[] {
  return orderCandidates(eligible.map((endpoint) => scoreEndpoint(endpoint, request, snapshot)), request, seed);
}

/** Most attempts of a plan. Without fallbacks, and without an order of providers, there is one. */
function attemptsMaxOf({ provider }: RouteRequest): number {
  return provider.allowFallbacks || provider.order.length > 0 ? ATTEMPTS_MAX : 1;
}

/** For a prompt that may be too long for each: windows below half of the largest come last, since a plan has few attempts. Neither who pays nor an order that the client gave changes. */
function smallWindowsLast(ranked: readonly Candidate[], { byokProviders, provider }: RouteRequest): readonly Candidate[] {
  if (provider.order.length > 0) return ranked;
  const windowOf = ({ endpoint }: Candidate): number => endpoint.contextWindow ?? 0;
  const largest = ranked.reduce((most, candidate) => Math.max(most, windowOf(candidate)), 0);
  const own = ({ endpoint }: Candidate): number => Number(isOnOwnCredential(endpoint, byokProviders));
  const small = (candidate: Candidate): number => Number(windowOf(candidate) * 2 < largest);
  return [...ranked].sort((a, b) => own(b) - own(a) || small(a) - small(b));
}

/**
 * A request that begins on the account's own credentials stays on them, and one on the operator's stays there: who pays
 * never changes on the way.
 */
function ofOneCredential(lists: readonly (readonly Candidate[])[], { byokProviders }: RouteRequest): readonly (readonly Candidate[])[] {
  const first = lists[0]?.[0];
  if (byokProviders.length === 0 || first === undefined) return lists;
  const isOwn = isOnOwnCredential(first.endpoint, byokProviders);
  return lists.map((list) => list.filter(({ endpoint }) => isOnOwnCredential(endpoint, byokProviders) === isOwn)).filter((list) => list.length > 0);
}

/** At most ATTEMPTS_MAX attempts. A place is reserved for each fallback model that the client lists, as far as there are places. */
function pickAttempts(lists: readonly (readonly Candidate[])[], request: RouteRequest): Candidate[] {
  const limit = attemptsMaxOf(request);
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

/** Empty where there is a single price, so that ordinary plans stay small. */
const stepsOf = (prices: readonly PriceStep[]): readonly PriceStep[] => (prices.length > 1 ? prices : NO_STEPS);

/**
 * Time limit for an answer that is not streamed, of which nothing is seen before it is complete: enough for the longest
 * answer that was asked for, or else that the model can give, at a quarter of the endpoint's usual speed. 0 where no such
 * limit is known: without length or speed a long answer cannot be told from a host that hangs, and an account's own
 * credential may belong to a machine of its own.
 */
function wholeTimeoutMs({ endpoint, throughputTps }: Candidate, request: RouteRequest): number {
  const { needs, maxTokens, byokProviders } = request;
  const longest = (endpoint.unsupportedParams.has('max_tokens') ? undefined : maxTokens) ?? endpoint.maxOutputTokens;
  if (needs.streaming || longest === null || throughputTps === undefined || throughputTps <= 0 || isOnOwnCredential(endpoint, byokProviders)) return 0;
  // Several choices may be generated one after the other.
  const writingMs = (longest * Math.max(1, needs.choices) * SLOWEST_FACTOR * 1_000) / throughputTps;
  return Math.ceil(Math.min(WHOLE_ANSWER_MS_MAX, endpoint.firstByteTimeoutMs + WHOLE_ANSWER_EXTRA_MS + writingMs));
}

const THINKS_WHEN_ASKED: ReadonlySet<string> = new Set(['anthropic-messages', 'bedrock-converse']);

/** Factor for a stream that begins only once the model has finished thinking. */
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

/** The reach of a plan without alternatives. A longer prompt may not fit, and a longer or shorter one may have another price. */
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

/** The account's baseline; else the most able model that passed this request's filters, at its cheapest endpoint. */
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
