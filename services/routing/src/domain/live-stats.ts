/** Live statistics of endpoints from attempts: five-minute windows, breakers and outliers. Best effort, rebuilt from events after a restart. */
import type { Clock } from '@signalbox/kernel/clock';
import type { EndpointLive } from '@signalbox/router-core/catalog';
import { createBreaker, type Breaker } from '@signalbox/router-core/breaker';
import { createEjections, type EndpointEvidence } from '@signalbox/router-core/outliers';
import { createCredentialPools } from './credential-pools.js';
import type { Credentials, PeersOf } from './peers.js';
import { createSlidingWindow, type SlidingWindow } from './sliding-window.js';

/** Shorter answers do not show a model's speed. */
const SPEED_TOKENS_MIN = 32;
const SUCCESS_PRIOR = 0.98;
const SUCCESS_PRIOR_CALLS = 20;
/** Windows slide even without new observations: the view is rebuilt at this age, and outliers are checked as often. */
const VIEW_AGE_MAX_MS = 1_000;
/** Breakers are read as of one second ago. When a plan is made to probe an endpoint, every replica's own breaker is then half open too, and lets the call through. */
const BEHIND_WORKERS_MS = 1_000;
/** Time from a plan with a probe to the report that the worker sent it: admission may wait two seconds. After that, an unused plan no longer counts as the probe. */
const PLANNED_MS = 3_000;
/** Longest wait reported while a probe runs, since a probe mostly ends long before it is abandoned. */
const PROBE_WAIT_MS_MAX = 5_000;

export interface Observation {
  readonly endpointId: string;
  /** Also true if the request itself was at fault, since the endpoint works. */
  readonly isSuccess: boolean;
  readonly isStreaming: boolean;
  /** Milliseconds; 0 = not measured. */
  readonly firstTokenMs: number;
  /** Milliseconds; 0 = not measured. */
  readonly totalMs: number;
  readonly outputTokens: number;
  /** Milliseconds until a credential is free for the endpoint; 0 = one is, or unknown. */
  readonly retryAfterMs: number;
  /** Milliseconds until any of the operator's credentials at the provider may be used, for any model; 0 = one may be used now. */
  readonly benchedMs: number;
  /** True for a rate limit: it causes a wait, and says nothing about the endpoint's health. */
  readonly isRateLimit: boolean;
  /** An answer that had begun broke off, after so many milliseconds. Absent = none did. */
  readonly cutMs?: number | undefined;
  /** Provider of the reporting worker, and `pool`, the worker's set of operator credentials; 0 or absent = not reported. */
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
  /** A worker's probe of an endpoint with an open breaker was sent, has brought content (`begun`), or ended without a verdict (`void`). */
  hearProbe(endpointId: string, step: 'sent' | 'begun' | 'void'): void;
  /** A worker of the provider is running, with these credentials. */
  hearPool(provider: string, pool: number): void;
  /** At least one of the pool's credentials is not benched. */
  hearFree(provider: string, pool: number): void;
  /** At most one second old; breakers are current. */
  view(): ReadonlyMap<string, EndpointLive>;
  /** A plan begins with a half-open endpoint. */
  noteProbe(endpointId: string): void;
}

export function createLiveStats(clock: Clock, peersOf: PeersOf, { siblingsOf, endpointsOf }: Credentials = NO_SIBLINGS): LiveStats {
  const tracked = new Map<string, Tracked>(); // kept: by endpoint.
  const ejections = createEjections();
  const pools = createCredentialPools();
  /** Endpoints with new observations since the last check for outliers. */
  const unjudged = new Set<string>(); // kept: ids of endpoints only.
  let judgedAtMs = -Infinity;
  let view: ReadonlyMap<string, EndpointLive> = new Map();
  let viewAtMs = -Infinity;
  let isStale = false;
  /** When the first open endpoint of the view may be tried. */
  let opensAtMs = Infinity;

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

  /** Checks each model with new observations for outliers, once. */
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

  /** Undefined if the catalog does not have the endpoint. */
  const track = (endpointId: string): Tracked | undefined => {
    let entry = tracked.get(endpointId);
    if (entry === undefined && peersOf(endpointId) !== undefined) {
      entry = { breaker: createBreaker(), latency: createSlidingWindow(), total: createSlidingWindow(), throughput: createSlidingWindow(), successes: createSlidingWindow(), failures: createSlidingWindow() };
      tracked.set(endpointId, entry);
    }
    return entry;
  };

  /** None of the provider's credentials can be used: pauses all endpoints that use them, without waiting for each to fail. */
  const rest = (endpointIds: readonly string[], forMs: number, nowMs: number): void => {
    for (const id of endpointIds) track(id)?.breaker.pause(forMs, nowMs);
    isStale = true;
  };

  return {
    observe: ({ endpointId, isSuccess, isStreaming, firstTokenMs, totalMs, outputTokens, retryAfterMs, benchedMs, isRateLimit, cutMs, provider = '', pool = 0 }) => {
      const entry = track(endpointId);
      if (entry === undefined) return;
      const nowMs = clock.monotonicMs();
      const before = entry.breaker.state(nowMs);
      const restMs = retryAfterMs > 0 ? pools.wait(provider, pool, endpointId, retryAfterMs, nowMs) : 0;
      const pauseMs = benchedMs > 0 ? pools.wait(provider, pool, undefined, benchedMs, nowMs) : 0;
      if ((retryAfterMs > 0 || benchedMs > 0) && restMs === 0 && pauseMs === 0) {
        // Only this replica's credentials are affected. Another replica has usable ones, and the endpoint may be healthy.
        entry.breaker.giveBack(nowMs - BEHIND_WORKERS_MS);
        isStale = true;
        return;
      }
      // No probe follows, and the client was told this wait: it is not to come back too early.
      if (isRateLimit && restMs > 0) entry.breaker.rest(restMs, nowMs, BEHIND_WORKERS_MS);
      else if (isRateLimit && pauseMs === 0) entry.breaker.limit(nowMs);
      else if (cutMs !== undefined && !isSuccess && restMs === 0 && pauseMs === 0) entry.breaker.cut(nowMs - cutMs, nowMs);
      // A pause of all the provider's endpoints is applied below, to each of them.
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
      if (tracked.size === 0 || (!isStale && nowMs < opensAtMs && nowMs - viewAtMs < VIEW_AGE_MAX_MS)) return view;
      if (nowMs - judgedAtMs >= VIEW_AGE_MAX_MS) judge(nowMs);
      const next = new Map<string, EndpointLive>();
      opensAtMs = Infinity;
      for (const [id, entry] of tracked) {
        const live = describe(id, entry, nowMs);
        next.set(id, live);
        if (live.waitMs !== undefined) opensAtMs = Math.min(opensAtMs, nowMs + live.waitMs);
      }
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
      // Let the next probe through at once: the worker that reports this is ready for it.
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
