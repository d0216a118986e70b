/** What attempts say of endpoints: five-minute windows and breakers. Best effort, rebuilt from events after a restart. */
import type { Clock } from '@signalbox/kernel/clock';
import type { EndpointLive } from '@signalbox/router-core/catalog';
import { createBreaker, type Breaker } from '@signalbox/router-core/breaker';
import { createSlidingWindow, type SlidingWindow } from './sliding-window.js';

/** Shorter answers say nothing of a model's speed. */
const SPEED_TOKENS_MIN = 32;
const SUCCESS_PRIOR = 0.98;
const SUCCESS_PRIOR_CALLS = 20;
/** Windows slide even without news: the view is renewed at this age. */
const VIEW_AGE_MAX_MS = 1_000;

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
  /** 0 = no hint. */
  readonly retryAfterMs: number;
}

interface Tracked {
  readonly breaker: Breaker;
  readonly latency: SlidingWindow;
  readonly total: SlidingWindow;
  readonly throughput: SlidingWindow;
  readonly successes: SlidingWindow;
  readonly failures: SlidingWindow;
}

export interface LiveStats {
  /** Ignores endpoints that `isKnown` refuses, so the table stays bounded by the catalog. */
  observe(observation: Observation): void;
  /** At most one second old; breakers are current. */
  view(): ReadonlyMap<string, EndpointLive>;
  noteProbe(endpointId: string): void;
}

export function createLiveStats(clock: Clock, isKnown: (endpointId: string) => boolean): LiveStats {
  const tracked = new Map<string, Tracked>();
  let view: ReadonlyMap<string, EndpointLive> = new Map();
  let viewAtMs = -Infinity;
  let isStale = false;

  const describe = (entry: Tracked, nowMs: number): EndpointLive => {
    const ok = entry.successes.count(nowMs);
    const failed = entry.failures.count(nowMs);
    return {
      samples: entry.latency.count(nowMs),
      latencyMsP75: entry.latency.quantile(0.75, nowMs),
      totalMsP75: entry.total.quantile(0.75, nowMs),
      totalSamples: entry.total.count(nowMs),
      throughputTpsP50: entry.throughput.quantile(0.5, nowMs),
      throughputSamples: entry.throughput.count(nowMs),
      successShare: (ok + SUCCESS_PRIOR * SUCCESS_PRIOR_CALLS) / (ok + failed + SUCCESS_PRIOR_CALLS),
      breaker: entry.breaker.state(nowMs),
    };
  };

  return {
    observe: ({ endpointId, isSuccess, isStreaming, firstTokenMs, totalMs, outputTokens, retryAfterMs }) => {
      let entry = tracked.get(endpointId);
      if (entry === undefined) {
        if (!isKnown(endpointId)) return;
        entry = { breaker: createBreaker(), latency: createSlidingWindow(), total: createSlidingWindow(), throughput: createSlidingWindow(), successes: createSlidingWindow(), failures: createSlidingWindow() };
        tracked.set(endpointId, entry);
      }
      const nowMs = clock.monotonicMs();
      const before = entry.breaker.state(nowMs);
      entry.breaker.record(isSuccess, retryAfterMs, nowMs);
      if (entry.breaker.state(nowMs) !== before) isStale = true;
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
      const next = new Map<string, EndpointLive>();
      for (const [id, entry] of tracked) next.set(id, describe(entry, nowMs));
      view = next;
      viewAtMs = nowMs;
      isStale = false;
      return view;
    },
    noteProbe: (endpointId) => {
      tracked.get(endpointId)?.breaker.noteProbe(clock.monotonicMs());
      isStale = true;
    },
  };
}
