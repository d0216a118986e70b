/** What the conduct of a request needs from the world. */
import type { Account__Output, Key__Output } from '@signalbox/contracts/accounts';
import type { Draw } from '@signalbox/contracts/common';
import type { ObserveRequest, PrepareRequest, PrepareResponse__Output, RunToolRequest, RunToolResponse__Output } from '@signalbox/contracts/plugins';
import type { AdmitRequest, AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { DispatchEvent__Output, DispatchRequest, Outcome } from '@signalbox/contracts/worker';
import type { Fault } from '@signalbox/kernel/fault';
import type { Variant } from '@signalbox/kernel/tiers';
import type { ManifestRecord } from '@signalbox/plugin-kit/manifest';

/** Who calls: a key that authenticates, and its account. */
export interface Caller {
  readonly key: Key__Output;
  readonly account: Account__Output;
  readonly variant: Variant;
}

export interface RoutingPort {
  /** Throws a Fault `routing_unavailable`. */
  decide(request: DecideRequest): Promise<DecideResponse__Output>;
  /** An attempt at that endpoint failed: no plan of before that names it is used again. */
  doubt(endpointId: string): void;
}

export interface Admission extends AdmitResponse__Output {
  /** What the request was served with out of an advance: it goes with whatever tells quota of the request. Absent = quota holds it. */
  draw?: Draw;
}

export interface QuotaPort {
  /** One atomic decision. Throws a Fault `quota_unavailable`; the hold is then released in the background. */
  admit(request: AdmitRequest): Promise<Admission>;
  /** Frees the hold of a request that was never dispatched; failures are left to the lease. `draw`, here and below: as its admission told; what was drawn is told again on failure. */
  release(accountId: string, requestId: string, draw?: Draw): void;
  /** Makes the hold of a request grow to these amounts. False = the limits leave no room. Throws a Fault `quota_unavailable`, also when the hold was lost. `epoch`: as its admission told. */
  extend(accountId: string, requestId: string, toNanoUsd: bigint, toTokens: bigint, epoch: string, draw?: Draw): Promise<boolean>;
}

export interface PluginsPort {
  /** What is installed, by id. Undefined when the service has never answered. Never rejects. */
  manifests(): Promise<ReadonlyMap<string, ManifestRecord> | undefined>;
  /** Runs what comes before the model. Throws a Fault when the service is away. */
  prepare(request: PrepareRequest, signal: AbortSignal): Promise<PrepareResponse__Output>;
  /** One call of a function that a plugin offers. Throws a Fault when the service is away. */
  runTool(request: RunToolRequest, signal: AbortSignal): Promise<RunToolResponse__Output>;
  /** Lets plugins do what comes after the answer, in the background; failures are left. */
  observe(request: ObserveRequest): void;
}

export interface AttemptCall {
  /** `client_left`: because the client hung up by itself. */
  cancel(why?: 'client_left'): void;
  pause(): void;
  resume(): void;
  /** The replica of the worker that it was sent to; undefined before, and of a worker in this process. */
  peer?(): object | undefined;
  /** Whether another replica could be asked besides that one, without waiting for it. */
  hasOthers?(): boolean;
}

export interface AttemptListener {
  onEvent(event: DispatchEvent__Output): void;
  /** Exactly once, last. */
  onEnd(fault: Fault | undefined): void;
}

/** What is said with an outcome. */
export interface OutcomeTerms {
  /** A later round of the request ends its hold. */
  readonly isFollowed?: boolean;
  /** Another attempt was tried to take its place. */
  readonly isReserve?: boolean;
}

export interface WorkersPort {
  /** Undefined when no worker serves that provider. `besides`: a replica that was lost, or refused; another is asked, or that one once it is back, which is waited for as for any worker (1 s). */
  dispatch(provider: string, request: DispatchRequest, listener: AttemptListener, besides?: object): AttemptCall | undefined;
  /**
   * Tells what became of an attempt; retried in the background for a while. Resolves with true when the worker has written
   * down what it would not conclude by itself, with false when it was told in vain for the last time; never rejects.
   */
  tellOutcome(provider: string, requestId: string, attempt: number, outcome: Outcome, terms?: OutcomeTerms): Promise<boolean>;
  /** Tells a worker that an answered round's outcome will be told later; to be repeated every 10 s. Never retried. */
  tend(provider: string, requestId: string, attempt: number): void;
  /** Asks for the end of a stream, which then follows. Never retried. */
  stop(provider: string, requestId: string, attempt: number): void;
}
