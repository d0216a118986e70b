/** What a request needs of the other services, as edge's domain sees them. */
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
  /** An attempt at that endpoint failed: plans made before now that name it are not reused. */
  doubt(endpointId: string): void;
}

export interface Admission extends AdmitResponse__Output {
  /** The part of an advance (advances.ts) that the request was served from. It is sent along with everything quota is told about the request. Absent = quota holds the amount for this request alone. */
  draw?: Draw;
}

export interface QuotaPort {
  /** One atomic decision. Throws a Fault `quota_unavailable`; the hold is then released in the background. */
  admit(request: AdmitRequest): Promise<Admission>;
  /** Frees the hold of a request that was never dispatched. When that fails, the hold ends with its lease; a `draw` is given back again and again until then. `draw`, here and below: from the request's admission. */
  release(accountId: string, requestId: string, draw?: Draw): void;
  /** Raises the hold of a request to these totals (nano-USD, tokens). False = the limits leave no room. Throws a Fault `quota_unavailable`, also when the hold was lost. `epoch`: from the request's admission. */
  extend(accountId: string, requestId: string, toNanoUsd: bigint, toTokens: bigint, epoch: string, draw?: Draw): Promise<boolean>;
}

export interface PluginsPort {
  /** What is installed, by id. Undefined when the service has never answered. Never rejects. */
  manifests(): Promise<ReadonlyMap<string, ManifestRecord> | undefined>;
  /** Runs what comes before the model. Throws a Fault when the service is away. */
  prepare(request: PrepareRequest, signal: AbortSignal): Promise<PrepareResponse__Output>;
  /** One call of a function that a plugin offers. Throws a Fault when the service is away. */
  runTool(request: RunToolRequest, signal: AbortSignal): Promise<RunToolResponse__Output>;
  /** Lets plugins do their work after the answer, in the background. A failure is not retried. */
  observe(request: ObserveRequest): void;
}

export interface AttemptCall {
  /** `client_left`: because the client hung up by itself. */
  cancel(why?: 'client_left'): void;
  pause(): void;
  resume(): void;
  /** The replica of the worker that has the call; undefined before it was sent, and for a worker in this process. */
  peer?(): object | undefined;
  /** True when another replica is connected and could be asked at once. */
  hasOthers?(): boolean;
}

export interface AttemptListener {
  onEvent(event: DispatchEvent__Output): void;
  /** Exactly once, last. */
  onEnd(fault: Fault | undefined): void;
}

/** What is said with an outcome. */
export interface OutcomeTerms {
  /** Another attempt of the request, of a later round, ends its hold. */
  readonly isFollowed?: boolean;
  /** Its answer was kept in reserve while another attempt was tried. */
  readonly isReserve?: boolean;
}

export interface WorkersPort {
  /** Starts an attempt; undefined when no worker serves that provider. `besides`: a replica to avoid, because it was lost or refused the attempt; only a new connection to it will do, and a call waits up to 1 s for a replica it may use. */
  dispatch(provider: string, request: DispatchRequest, listener: AttemptListener, besides?: object): AttemptCall | undefined;
  /**
   * Tells what became of an attempt; retried in the background for a while. Resolves with true when the worker has written
   * down what it would not conclude by itself, with false when it was told in vain for the last time; never rejects.
   */
  tellOutcome(provider: string, requestId: string, attempt: number, outcome: Outcome, terms?: OutcomeTerms): Promise<boolean>;
  /** Tells a worker that this edge is alive and will tell the outcome of an answered attempt later. To be repeated every 10 s (TEND_MS); a lost one is not retried. */
  tend(provider: string, requestId: string, attempt: number): void;
  /** Asks the worker to end a stream early; its last event then follows as usual. Not retried. */
  stop(provider: string, requestId: string, attempt: number): void;
}
