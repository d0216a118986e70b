/**
 * Circuit breakers directly in front of the provider. Routing keeps failing endpoints out of its plans, but a moment late: it
 * learns about attempts over the bus, and older plans are still on their way. Here no call passes that a breaker does not allow.
 *
 * Replicas of a worker count each other's attempts, so that their breakers open together and only one call at a time tries an
 * endpoint again. A lost message costs a few calls or seconds, since each breaker also works on its own.
 */
import type { AttemptsObserved__Output } from '@signalbox/contracts/events';
import type { Clock } from '@signalbox/kernel/clock';
import { createBreaker, type Breaker } from '@signalbox/router-core/breaker';
import type { BreakerState } from '@signalbox/router-core/catalog';
import type { Failure, FailureClass } from '@signalbox/wires/canonical';

/** Most endpoints with a breaker; beyond that the one created first is dropped. */
const ENDPOINTS_MAX = 10_000;
/** Failures caused by the request: the endpoint works. */
const REQUEST_FAULTS: ReadonlySet<string> = new Set<FailureClass>(['BAD_REQUEST', 'CONTEXT_LENGTH', 'CONTENT_POLICY']);
/** Failures that concern the credential. */
const OF_THE_KEY: ReadonlySet<string> = new Set<FailureClass>(['CREDENTIAL', 'RATE_LIMITED']);

/** How long no stream is sent to an endpoint that refuses them. */
const STREAMS_MS = 30_000;

/** Head start of each replica over the next in trying an endpoint again; far longer than messages between them take. */
const LEAD_MS = 250;
/** Upper bound of all head starts. Routing delays its own breakers by this long, so that its plans find every replica ready. */
const LEADS_MS_MAX = 1_000;
/** A replica that was not heard from for this long does not count. Each announces itself every minute. */
const REPLICA_AGE_MAX_MS = 150_000;
const REPLICAS_MAX = 256;

/** Whether an endpoint may be called now. */
export interface Admission {
  /** Milliseconds until it may; 0 = now. */
  readonly waitMs: number;
  /** This call finds out whether the endpoint has recovered, while others wait. It must be followed by `begun`, `record` or `giveBack`. */
  readonly isProbe: boolean;
}

const PASS: Admission = { waitMs: 0, isProbe: false };
const PROBE: Admission = { waitMs: 0, isProbe: true };

/** Progress of a probe, a call that was let through to an endpoint whose breaker was open; `void` = it ended without telling anything about the endpoint. */
export type ProbeStep = 'sent' | 'begun' | 'void';

export interface EndpointBreakers {
  /** While a breaker is half open, one call passes at a time. */
  admit(endpointId: string, isStream?: boolean): Admission;
  /** The endpoint refuses streams: none passes for half a minute, and then the next finds out. Other calls do. */
  refusesStreams(endpointId: string): void;
  /** The first content of a probe arrived: the next call may try. */
  begun(endpointId: string): void;
  /** A probe ended before that without telling anything: the next call may try at once. */
  giveBack(endpointId: string): void;
  /** How an admitted attempt ended; undefined = success. `isResting`: no credential is free for the endpoint now, so calls wait for one anyway. `cutMs`: for how long an answer was under way that had begun and broke off; undefined = none had. */
  record(endpointId: string, failure: string | undefined, isResting: boolean, cutMs?: number): void;
  /** Applies a message of another replica. A replica's own messages, which come back to it, are ignored. */
  hear(news: Pick<AttemptsObserved__Output, 'origin' | 'pool' | 'attempts' | 'probedEndpointIds' | 'begunEndpointIds' | 'voidEndpointIds'>): void;
  /** Number of endpoints by the state of their breaker. */
  states(): Readonly<Record<BreakerState, number>>;
}

export interface EndpointBreakersOptions {
  readonly clock: Clock;
  /** Id of this replica; of the replicas that would try an endpoint again, the one with the lowest id goes first. */
  readonly origin: string;
  /** Mark of its set of credentials. Failures that concern other replicas' different credentials are not counted. 0 or absent = unknown. */
  readonly pool?: number;
  /** Called when a call is let through to an endpoint whose breaker was open, and again when others may follow. */
  readonly onProbe: (endpointId: string, step: ProbeStep) => void;
}

/** What breakers and statistics are told of a failure: one of an endpoint that works counts as a refused request does. */
export function countedAs({ class: failureClass, isEndpointWell }: Failure): FailureClass {
  return isEndpointWell === true && !REQUEST_FAULTS.has(failureClass) ? 'BAD_REQUEST' : failureClass;
}

/** Whether a failure tells nothing about the endpoint, because it is ours or concerns the account's own key. */
export function saysNothing(failure: string | undefined, isByok: boolean): boolean {
  return failure === 'QUOTA_AWAY' || (isByok && failure !== undefined && OF_THE_KEY.has(failure));
}

export function createEndpointBreakers({ clock, origin, pool = 0, onProbe }: EndpointBreakersOptions): EndpointBreakers {
  const breakers = new Map<string, Breaker>(); // kept: by endpoint.
  /** Until when streams are not tried, by endpoint that refuses them. */
  const streamsAtMs = new Map<string, number>(); // kept: by endpoint.
  /** When each other replica was last heard from; the one heard longest ago comes first. */
  const heardAtMs = new Map<string, number>(); // kept: by replica.

  /** `restMs`: duration of a rate limit; undefined = unknown, or another credential is free. */
  const count = (endpointId: string, failure: string | undefined, restMs: number | undefined, cutMs: number | undefined): void => {
    const isWell = failure === undefined || REQUEST_FAULTS.has(failure);
    let breaker = breakers.get(endpointId);
    if (breaker === undefined) {
      breakers.set(endpointId, (breaker = createBreaker()));
      const first = breakers.size > ENDPOINTS_MAX ? breakers.keys().next().value : undefined;
      if (first !== undefined) breakers.delete(first);
    }
    if (failure === 'RATE_LIMITED') {
      if (restMs === undefined) breaker.limit(clock.monotonicMs());
      else breaker.rest(restMs, clock.monotonicMs());
    } else if (!isWell && cutMs !== undefined) breaker.cut(clock.monotonicMs() - cutMs, clock.monotonicMs());
    else breaker.record(isWell, 0, clock.monotonicMs());
  };

  /** How long this replica waits for those before it, since breakers of replicas open together. */
  const leadsMs = (nowMs: number): number => {
    let before = 0;
    for (const [replica, atMs] of heardAtMs) if (replica < origin && nowMs - atMs < REPLICA_AGE_MAX_MS) before += 1;
    return Math.min(LEADS_MS_MAX, before * LEAD_MS);
  };

  /** When a probe of this replica is over, this replica may send the next one first: its own wait is deducted from the time. */
  const hereFirst = (): number => {
    const nowMs = clock.monotonicMs();
    return nowMs - leadsMs(nowMs);
  };

  const noteReplica = (replica: string): void => {
    heardAtMs.delete(replica);
    heardAtMs.set(replica, clock.monotonicMs());
    const oldest = heardAtMs.size > REPLICAS_MAX ? heardAtMs.keys().next().value : undefined;
    if (oldest !== undefined) heardAtMs.delete(oldest);
  };

  return {
    admit: (endpointId, isStream = false) => {
      const breaker = breakers.get(endpointId);
      const nowMs = clock.monotonicMs();
      const streamsInMs = isStream ? (streamsAtMs.get(endpointId) ?? nowMs) - nowMs : 0;
      if (streamsInMs > 0) return { waitMs: Math.ceil(streamsInMs), isProbe: false };
      if (breaker === undefined || breaker.state(nowMs) === 'closed') return PASS;
      const waitMs = breaker.waitMs(nowMs - leadsMs(nowMs));
      if (waitMs > 0) return { waitMs: Math.ceil(waitMs), isProbe: false };
      breaker.noteProbe(nowMs);
      onProbe(endpointId, 'sent');
      return PROBE;
    },
    refusesStreams: (endpointId) => {
      streamsAtMs.set(endpointId, clock.monotonicMs() + STREAMS_MS);
      const first = streamsAtMs.size > ENDPOINTS_MAX ? streamsAtMs.keys().next().value : undefined;
      if (first !== undefined) streamsAtMs.delete(first);
    },
    begun: (endpointId) => {
      breakers.get(endpointId)?.noteBegun(hereFirst());
      onProbe(endpointId, 'begun');
    },
    giveBack: (endpointId) => {
      breakers.get(endpointId)?.giveBack(hereFirst());
      onProbe(endpointId, 'void');
    },
    // Calls wait for this replica's own credentials in the pool.
    record: (endpointId, failure, isResting, cutMs) => count(endpointId, failure, isResting ? 0 : undefined, cutMs),
    hear: (news) => {
      if (news.origin === '' || news.origin === origin) return;
      noteReplica(news.origin);
      const nowMs = clock.monotonicMs();
      const hasOthers = news.pool !== 0 && pool !== 0 && news.pool !== pool;
      for (const { endpointId, ok, failure, retryAfterMs, forBreakers, cut, totalMs } of news.attempts) {
        if (!forBreakers) continue;
        if (hasOthers && !ok && OF_THE_KEY.has(failure)) breakers.get(endpointId)?.giveBack(nowMs);
        else count(endpointId, ok ? undefined : failure, retryAfterMs > 0 ? retryAfterMs : undefined, cut ? totalMs : undefined);
      }
      for (const endpointId of news.probedEndpointIds) breakers.get(endpointId)?.hearProbe(nowMs);
      for (const endpointId of news.begunEndpointIds) breakers.get(endpointId)?.noteBegun(nowMs);
      for (const endpointId of news.voidEndpointIds) breakers.get(endpointId)?.giveBack(nowMs);
    },
    states: () => {
      const counts = { closed: 0, 'half-open': 0, open: 0 };
      const nowMs = clock.monotonicMs();
      for (const breaker of breakers.values()) counts[breaker.state(nowMs)] += 1;
      return counts;
    },
  };
}
