/**
 * What stands directly in front of the provider. Routing keeps failing endpoints out of plans, a moment late: it hears
 * of attempts over the bus, and plans are on their way. Here nothing passes that a breaker does not allow.
 */
import type { Clock } from '@signalbox/kernel/clock';
import { createBreaker, type Breaker } from '@signalbox/router-core/breaker';
import type { BreakerState } from '@signalbox/router-core/catalog';
import type { FailureClass } from '@signalbox/wires/canonical';

/** Endpoints of one provider; the one that was first asked goes first. */
const ENDPOINTS_MAX = 10_000;
/** The request was at fault: the endpoint is well. */
const REQUEST_FAULTS: ReadonlySet<string> = new Set<FailureClass>(['BAD_REQUEST', 'CONTEXT_LENGTH', 'CONTENT_POLICY']);
const OF_THE_KEY: ReadonlySet<string> = new Set<FailureClass>(['CREDENTIAL', 'RATE_LIMITED']);

export interface EndpointBreakers {
  /** Milliseconds until the endpoint may be asked; 0 = now. Of an endpoint that is half open, one call passes. */
  admit(endpointId: string): number;
  /** How an admitted attempt ended; undefined = well. */
  record(endpointId: string, failure: string | undefined): void;
  /** Endpoints by the state of their breaker. */
  states(): Readonly<Record<BreakerState, number>>;
}

/** Whether a failure is a matter of the account's own key and says nothing about the endpoint. */
export function saysNothing(failure: string | undefined, isByok: boolean): boolean {
  return isByok && failure !== undefined && OF_THE_KEY.has(failure);
}

export function createEndpointBreakers(clock: Clock): EndpointBreakers {
  const breakers = new Map<string, Breaker>();
  return {
    admit: (endpointId) => {
      const breaker = breakers.get(endpointId);
      if (breaker === undefined) return 0;
      const nowMs = clock.monotonicMs();
      const waitMs = breaker.waitMs(nowMs);
      if (waitMs === 0) breaker.noteProbe(nowMs);
      return Math.ceil(waitMs);
    },
    record: (endpointId, failure) => {
      const isWell = failure === undefined || REQUEST_FAULTS.has(failure);
      let breaker = breakers.get(endpointId);
      if (breaker === undefined) {
        breakers.set(endpointId, (breaker = createBreaker()));
        const first = breakers.size > ENDPOINTS_MAX ? breakers.keys().next().value : undefined;
        if (first !== undefined) breakers.delete(first);
      }
      // Hints of a 429 are for the credential, which rests.
      breaker.record(isWell, 0, clock.monotonicMs());
    },
    states: () => {
      const counts = { closed: 0, 'half-open': 0, open: 0 };
      const nowMs = clock.monotonicMs();
      for (const breaker of breakers.values()) counts[breaker.state(nowMs)] += 1;
      return counts;
    },
  };
}
