/** What attempts say of endpoints: five-minute windows, breakers and outliers. Best effort, rebuilt from events after a restart. */
import type { Clock } from '@signalbox/kernel/clock';
import type { EndpointLive } from '@signalbox/router-core/catalog';
import { createBreaker, type Breaker } from '@signalbox/router-core/breaker';
import { createEjections, type EndpointEvidence } from '@signalbox/router-core/outliers';
import { createCredentialPools } from './credential-pools.js';
import type { Credentials, PeersOf } from './peers.js';
import { createSlidingWindow, type SlidingWindow } from './sliding-window.js';

/** Shorter answers say nothing of a model's speed. */
const SPEED_TOKENS_MIN = 32;
const SUCCESS_PRIOR = 0.98;
const SUCCESS_PRIOR_CALLS = 20;
/** Windows slide even without news: the view is renewed at this age, and outliers are looked for as often. */
const VIEW_AGE_MAX_MS = 1_000;
/** Breakers are read a second late: by then every replica of a worker lets a call through that is planned to see whether the endpoint is well. */
const BEHIND_WORKERS_MS = 1_000;
/** From a plan to the call that its worker lets through, which is then heard of: admission may wait two seconds. A plan that came to nothing leaves its place then. */
const PLANNED_MS = 3_000;
/** Told as the wait while a probe is under way, which mostly ends long before it is given up. */
const PROBE_WAIT_MS_MAX = 5_000;

export interface Observation {
  readonly endpointId: string;
  /** True also when the request itself was at fault: the endpoint is well. */
  readonly isSuccess: boolean;
  readonly isStreaming: boolean;
  /** Milliseconds; 0 = not measured. */
  readonly firstTokenMs: number;
  /** Milliseconds; 0 = not measured. */
  readonly totalMs: number;
  readonly outputTokens: number;
  /** Until a credential is free for it; 0 = one is, or nobody knows. */
  readonly retryAfterMs: number;
  /** Until any of the operator's credentials at the provider may be asked for whatever model; 0 = one may. */
  readonly benchedMs: number;
  /** A rate limit: it is waited for, and says nothing of how well the endpoint is. */
  readonly isRateLimit: boolean;
  /** Whose worker tells it, and which of the operator's credentials that has; 0 or absent = it does not say. */
  readonly provider?: string;
  readonly pool?: number;
}

interface Tracked {
  readonly breaker: Breaker;
  readonly latency: SlidingWindow;
  readonly total: SlidingWindow;
  readonly throughput: SlidingWindow;
  readonly successes: SlidingWindow;
  readonly failures: SlidingWindow;
}

const NO_SIBLINGS: Credentials = { siblingsOf: () => undefined, endpointsOf: () => [] };

export interface LiveStats {
  /** Ignores endpoints that `peersOf` does not know, so the table stays bounded by the catalog. */
  observe(observation: Observation): void;
  /** A worker lets one call through to an endpoint whose breaker was open; that call has brought content, or ended and says nothing. */
  hearProbe(endpointId: string, step: 'sent' | 'begun' | 'void'): void;
  /** A worker of the provider is there, with these credentials. */
  hearPool(provider: string, pool: number): void;
  /** One of them is not benched. */
  hearFree(provider: string, pool: number): void;
  /** At most one second old; breakers are current. */
  view(): ReadonlyMap<string, EndpointLive>;
  /** A plan begins with an endpoint that is half open. */
  noteProbe(endpointId: string): void;
}

export function createLiveStats(clock: Clock, peersOf: PeersOf, { siblingsOf, endpointsOf }: Credentials = NO_SIBLINGS): LiveStats {
  const tracked = new Map<string, Tracked>(); // kept: by endpoint.
  const ejections = createEjections();
  const pools = createCredentialPools();
  /** Endpoints with news since outliers were last looked for. */
  const unjudged = new Set<string>(); // kept: ids of endpoints alone.
  let judgedAtMs = -Infinity;
  let view: ReadonlyMap<string, EndpointLive> = new Map();
  let viewAtMs = -Infinity;
  let isStale = false;

  const evidenceOf = (endpointId: string, { latency, total, throughput, successes, failures }: Tracked, nowMs: number): EndpointEvidence => {
    const sinceMs = ejections.endOf(endpointId);
    const quantileOf = (window: SlidingWindow, quantile: number) => ({ samples: window.count(nowMs, sinceMs), value: window.quantile(quantile, nowMs, sinceMs) });
    const failed = failures.count(nowMs, sinceMs);
    return {
      endpointId,
      calls: successes.count(nowMs, sinceMs) + failed,
      failures: failed,
      firstTokenMsP75: quantileOf(latency, 0.75),
      totalMsP75: quantileOf(total, 0.75),
      throughputTpsP50: quantileOf(throughput, 0.5),
    };
  };

  /** Judges every model that has news, once. */
  const judge = (nowMs: number): void => {
    const judged = new Set<string>();
    for (const id of unjudged) {
      if (judged.has(id)) continue;
      const peers = peersOf(id) ?? [];
      for (const peer of peers) judged.add(peer);
      const seen = peers.flatMap((peer) => {
        const entry = tracked.get(peer);
        return entry === undefined ? [] : [{ peer, entry }];
      });
      if (seen.length > 1) ejections.judge(peers, seen.map(({ peer, entry }) => evidenceOf(peer, entry, nowMs)), nowMs);
    }
    unjudged.clear();
    judgedAtMs = nowMs;
  };

  const describe = (endpointId: string, entry: Tracked, nowMs: number): EndpointLive => {
    const ok = entry.successes.count(nowMs);
    const failed = entry.failures.count(nowMs);
    const behindMs = nowMs - BEHIND_WORKERS_MS;
    const breaker = entry.breaker.state(behindMs);
    const ejectedFor = ejections.reasonOf(endpointId, nowMs);
    return {
      samples: entry.latency.count(nowMs),
      latencyMsP75: entry.latency.quantile(0.75, nowMs),
      totalMsP75: entry.total.quantile(0.75, nowMs),
      totalSamples: entry.total.count(nowMs),
      throughputTpsP50: entry.throughput.quantile(0.5, nowMs),
      throughputSamples: entry.throughput.count(nowMs),
      successShare: (ok + SUCCESS_PRIOR * SUCCESS_PRIOR_CALLS) / (ok + failed + SUCCESS_PRIOR_CALLS),
      breaker,
      ...(breaker === 'open' ? { waitMs: Math.min(entry.breaker.waitMs(behindMs), entry.breaker.isProbing() ? PROBE_WAIT_MS_MAX : Infinity) } : {}),
      ...(ejectedFor === undefined ? {} : { ejectedFor }),
    };
  };

  /** Undefined for an endpoint that the catalog does not have. */
  const track = (endpointId: string): Tracked | undefined => {
    let entry = tracked.get(endpointId);
    if (entry === undefined && peersOf(endpointId) !== undefined) {
      entry = { breaker: createBreaker(), latency: createSlidingWindow(), total: createSlidingWindow(), throughput: createSlidingWindow(), successes: createSlidingWindow(), failures: createSlidingWindow() };
      tracked.set(endpointId, entry);
    }
    return entry;
  };

  /** No call can be made with any of the provider's credentials: the other endpoints need not be asked to know it. */
  const rest = (endpointIds: readonly string[], forMs: number, nowMs: number): void => {
    for (const id of endpointIds) track(id)?.breaker.pause(forMs, nowMs);
    isStale = true;
  };

  return {
    observe: ({ endpointId, isSuccess, isStreaming, firstTokenMs, totalMs, outputTokens, retryAfterMs, benchedMs, isRateLimit, provider = '', pool = 0 }) => {
      const entry = track(endpointId);
      if (entry === undefined) return;
      const nowMs = clock.monotonicMs();
      const before = entry.breaker.state(nowMs);
      const restMs = retryAfterMs > 0 ? pools.wait(provider, pool, endpointId, retryAfterMs, nowMs) : 0;
      const pauseMs = benchedMs > 0 ? pools.wait(provider, pool, undefined, benchedMs, nowMs) : 0;
      if ((retryAfterMs > 0 || benchedMs > 0) && restMs === 0 && pauseMs === 0) {
        // It is a matter of credentials that this replica has: another has some that may be asked, and the endpoint may be well.
        entry.breaker.giveBack(nowMs - BEHIND_WORKERS_MS);
        isStale = true;
        return;
      }
      if (isRateLimit && restMs > 0) entry.breaker.rest(restMs, nowMs);
      else if (isRateLimit && pauseMs === 0) entry.breaker.limit(nowMs);
      // What is said of all endpoints is waited for by all alike.
      else entry.breaker.record(isSuccess, pauseMs > 0 ? 0 : restMs, nowMs);
      if (pauseMs > 0) rest(siblingsOf(endpointId) ?? [], pauseMs, nowMs);
      if (entry.breaker.state(nowMs) !== before) isStale = true;
      unjudged.add(endpointId);
      (isSuccess ? entry.successes : entry.failures).add(1, nowMs);
      if (!isSuccess) return;
      if (isStreaming && firstTokenMs > 0) entry.latency.add(firstTokenMs, nowMs);
      if (!isStreaming && totalMs > 0) entry.total.add(totalMs, nowMs);
      const writingMs = isStreaming ? totalMs - firstTokenMs : totalMs;
      if (outputTokens > SPEED_TOKENS_MIN && writingMs > 0) entry.throughput.add((outputTokens * 1_000) / writingMs, nowMs);
    },
    view: () => {
      const nowMs = clock.monotonicMs();
      if (tracked.size === 0 || (!isStale && nowMs - viewAtMs < VIEW_AGE_MAX_MS)) return view;
      if (nowMs - judgedAtMs >= VIEW_AGE_MAX_MS) judge(nowMs);
      const next = new Map<string, EndpointLive>();
      for (const [id, entry] of tracked) next.set(id, describe(id, entry, nowMs));
      view = next;
      viewAtMs = nowMs;
      isStale = false;
      return view;
    },
    hearPool: (provider, pool) => pools.note(provider, pool, clock.monotonicMs()),
    hearFree: (provider, pool) => {
      pools.free(provider, pool);
      for (const id of endpointsOf(provider)) tracked.get(id)?.breaker.unpause();
      isStale = true;
    },
    hearProbe: (endpointId, step) => {
      const breaker = tracked.get(endpointId)?.breaker;
      const nowMs = clock.monotonicMs();
      if (step === 'sent') breaker?.hearProbe(nowMs);
      // At once: the worker that tells it is ready for the next.
      else if (step === 'begun') breaker?.noteBegun(nowMs - BEHIND_WORKERS_MS);
      else breaker?.giveBack(nowMs - BEHIND_WORKERS_MS);
      isStale = true;
    },
    noteProbe: (endpointId) => {
      tracked.get(endpointId)?.breaker.noteProbe(clock.monotonicMs() - BEHIND_WORKERS_MS, PLANNED_MS);
      isStale = true;
    },
  };
}
