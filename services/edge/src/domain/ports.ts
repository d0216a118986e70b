/** What the conduct of a request needs from the world. */
import type { Account__Output, Key__Output } from '@signalbox/contracts/accounts';
import type { AdmitRequest, AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { DispatchEvent__Output, DispatchRequest, Outcome } from '@signalbox/contracts/worker';
import type { Fault } from '@signalbox/kernel/fault';
import type { Variant } from '@signalbox/kernel/tiers';

/** Who calls: a key that authenticates, and its account. */
export interface Caller {
  readonly key: Key__Output;
  readonly account: Account__Output;
  readonly variant: Variant;
}

export interface RoutingPort {
  /** Throws a Fault `routing_unavailable`. */
  decide(request: DecideRequest): Promise<DecideResponse__Output>;
}

export interface QuotaPort {
  /** One atomic decision. Throws a Fault `quota_unavailable`; the hold is then released in the background. */
  admit(request: AdmitRequest): Promise<AdmitResponse__Output>;
  /** Frees the hold of a request that was never dispatched; failures are left to the lease. */
  release(accountId: string, requestId: string): void;
}

export interface AttemptCall {
  cancel(): void;
  pause(): void;
  resume(): void;
}

export interface AttemptListener {
  onEvent(event: DispatchEvent__Output): void;
  /** Exactly once, last. */
  onEnd(fault: Fault | undefined): void;
}

export interface WorkersPort {
  /** Undefined when no worker serves that provider. */
  dispatch(provider: string, request: DispatchRequest, listener: AttemptListener): AttemptCall | undefined;
  /** Tells what became of an attempt; retried in the background for a while. */
  tellOutcome(provider: string, accountId: string, requestId: string, attempt: number, outcome: Outcome): void;
}
