/**
 * What stands directly in front of the provider. Routing keeps failing endpoints out of plans, a moment late: it hears
 * of attempts over the bus, and plans are on their way. Here nothing passes that a breaker does not allow.
 *
 * Replicas of a worker count each other's attempts, so that their breakers open together and one call at a time tries an
 * endpoint again. What is lost on the way costs a few calls or seconds: each breaker is whole by itself.
 */
import type { AttemptsObserved__Output } from '@signalbox/contracts/events';
import type { Clock } from '@signalbox/kernel/clock';
import { createBreaker, type Breaker } from '@signalbox/router-core/breaker';
import type { BreakerState } from '@signalbox/router-core/catalog';
import type { FailureClass } from '@signalbox/wires/canonical';

/** Endpoints of one provider; the one that was first asked goes first. */
const ENDPOINTS_MAX = 10_000;
/** The request was at fault: the endpoint is well. */
const REQUEST_FAULTS: ReadonlySet<string> = new Set<FailureClass>(['BAD_REQUEST', 'CONTEXT_LENGTH', 'CONTENT_POLICY']);
const OF_THE_KEY: ReadonlySet<string> = new Set<FailureClass>(['CREDENTIAL', 'RATE_LIMITED']);

/** Ahead of the next replica, to try an endpoint again: far longer than news takes. */
const LEAD_MS = 250;
/** Routing reads its breakers as late as this, so that its plans find every replica ready. */
const LEADS_MS_MAX = 1_000;
/** A replica that was not heard of for so long does not count: each says every minute that it is there. */
const REPLICA_AGE_MAX_MS = 150_000;
const REPLICAS_MAX = 256;

/** Whether an endpoint may be asked now. */
export interface Admission {
  /** Milliseconds until it may; 0 = now. */
  readonly waitMs: number;
  /** This call finds out whether the endpoint is well again, and others wait: it is to be followed by `begun`, `record` or `giveBack`. */
  readonly isProbe: boolean;
}

const PASS: Admission = { waitMs: 0, isProbe: false };
const PROBE: Admission = { waitMs: 0, isProbe: true };

/** How far a call has come that was let through to an endpoint whose breaker was open; `void` = it ended, and says nothing. */
export type ProbeStep = 'sent' | 'begun' | 'void';

export interface EndpointBreakers {
  /** Of an endpoint that is half open, one call passes at a time. */
  admit(endpointId: string): Admission;
  /** Content of a probe has come: the next call may try. */
  begun(endpointId: string): void;
  /** A probe ended before that, and says nothing: the next call may try at once. */
  giveBack(endpointId: string): void;
  /** How an admitted attempt ended; undefined = well. `isResting`: no credential is free for it now, and none is taken. */
  record(endpointId: string, failure: string | undefined, isResting: boolean): void;
  /** What a replica told. Its own messages, which come back to it, say nothing. */
  hear(news: Pick<AttemptsObserved__Output, 'origin' | 'pool' | 'attempts' | 'probedEndpointIds' | 'begunEndpointIds' | 'voidEndpointIds'>): void;
  /** Endpoints by the state of their breaker. */
  states(): Readonly<Record<BreakerState, number>>;
}

export interface EndpointBreakersOptions {
  readonly clock: Clock;
  /** This replica among those of its worker; of those that would try an endpoint again, the least goes first. */
  readonly origin: string;
  /** Of its credentials: what others met with theirs is not theirs. 0 or absent = nobody knows. */
  readonly pool?: number;
  /** Called as a call is let through to an endpoint whose breaker was open, and when that is over or others may follow. */
  readonly onProbe: (endpointId: string, step: ProbeStep) => void;
}

/** Whether a failure is ours, or a matter of the account's own key, and says nothing about the endpoint. */
export function saysNothing(failure: string | undefined, isByok: boolean): boolean {
  return failure === 'QUOTA_AWAY' || (isByok && failure !== undefined && OF_THE_KEY.has(failure));
}

export function createEndpointBreakers({ clock, origin, pool = 0, onProbe }: EndpointBreakersOptions): EndpointBreakers {
  const breakers = new Map<string, Breaker>(); // kept: by endpoint.
  /** When each other replica was heard last; the one heard longest ago first. */
  const heardAtMs = new Map<string, number>(); // kept: by replica.

  /** `restMs`: a rate limit, for as long; undefined = nobody knows, or another credential is free. */
  const count = (endpointId: string, failure: string | undefined, restMs: number | undefined): void => {
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
    } else breaker.record(isWell, 0, clock.monotonicMs());
  };

  /** Breakers of replicas open together, so each waits for those before it. */
  const leadsMs = (nowMs: number): number => {
    let before = 0;
    for (const [replica, atMs] of heardAtMs) if (replica < origin && nowMs - atMs < REPLICA_AGE_MAX_MS) before += 1;
    return Math.min(LEADS_MS_MAX, before * LEAD_MS);
  };

  /** A place that a call of this replica leaves is this one's first, whoever else has heard of it. */
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
    admit: (endpointId) => {
      const breaker = breakers.get(endpointId);
      const nowMs = clock.monotonicMs();
      if (breaker === undefined || breaker.state(nowMs) === 'closed') return PASS;
      const waitMs = breaker.waitMs(nowMs - leadsMs(nowMs));
      if (waitMs > 0) return { waitMs: Math.ceil(waitMs), isProbe: false };
      breaker.noteProbe(nowMs);
      onProbe(endpointId, 'sent');
      return PROBE;
    },
    begun: (endpointId) => {
      breakers.get(endpointId)?.noteBegun(hereFirst());
      onProbe(endpointId, 'begun');
    },
    giveBack: (endpointId) => {
      breakers.get(endpointId)?.giveBack(hereFirst());
      onProbe(endpointId, 'void');
    },
    // Own credentials wait by themselves.
    record: (endpointId, failure, isResting) => count(endpointId, failure, isResting ? 0 : undefined),
    hear: (news) => {
      if (news.origin === '' || news.origin === origin) return;
      noteReplica(news.origin);
      const nowMs = clock.monotonicMs();
      const hasOthers = news.pool !== 0 && pool !== 0 && news.pool !== pool;
      for (const { endpointId, ok, failure, retryAfterMs, forBreakers } of news.attempts) {
        if (!forBreakers) continue;
        if (hasOthers && !ok && OF_THE_KEY.has(failure)) breakers.get(endpointId)?.giveBack(nowMs);
        else count(endpointId, ok ? undefined : failure, retryAfterMs > 0 ? retryAfterMs : undefined);
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
