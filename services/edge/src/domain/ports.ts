/** The interfaces to the other services that edge's domain uses. */
import type { Account__Output, Key__Output } from '@signalbox/contracts/accounts';
import type { Draw } from '@signalbox/contracts/common';
import type { ObserveRequest, PrepareRequest, PrepareResponse__Output, RunToolRequest, RunToolResponse__Output } from '@signalbox/contracts/plugins';
import type { AdmitRequest, AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { DispatchEvent__Output, DispatchRequest, Outcome } from '@signalbox/contracts/worker';
import type { Fault } from '@signalbox/kernel/fault';
import type { Variant } from '@signalbox/kernel/tiers';
import type { ManifestRecord } from '@signalbox/plugin-kit/manifest';

/** An authenticated key and its account. */
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
  /** Frees the hold of a request that was never dispatched. If that fails, the hold ends with its lease; the release of a `draw` is retried until then. `draw`, here and below: from the request's admission. */
  release(accountId: string, requestId: string, draw?: Draw): void;
  /** Raises the hold of a request to these totals (nano-USD, tokens). False = the limits leave no room. Throws a Fault `quota_unavailable`, also when the hold was lost. `epoch`: from the request's admission. */
  extend(accountId: string, requestId: string, toNanoUsd: bigint, toTokens: bigint, epoch: string, draw?: Draw): Promise<boolean>;
}

export interface PluginsPort {
  /** The installed plugins by id. Undefined when the service has never answered. Never rejects. */
  manifests(): Promise<ReadonlyMap<string, ManifestRecord> | undefined>;
  /** Runs the plugins that come before the model. Throws a Fault when the service is away. */
  prepare(request: PrepareRequest, signal: AbortSignal): Promise<PrepareResponse__Output>;
  /** Runs one call of a function that a plugin offers. Throws a Fault when the service is away. */
  runTool(request: RunToolRequest, signal: AbortSignal): Promise<RunToolResponse__Output>;
  /** Lets plugins do their work after the answer, in the background. A failure is not retried. */
  observe(request: ObserveRequest): void;
}

export interface AttemptCall {
  /** `client_left`: the client closed the connection by itself. */
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
  /** Called exactly once, as the last event. */
  onEnd(fault: Fault | undefined): void;
}

/** Details of an outcome. */
export interface OutcomeTerms {
  /** An attempt of a later round follows, which ends the hold. */
  readonly isFollowed?: boolean;
  /** Its answer was kept in reserve while another attempt was tried. */
  readonly isReserve?: boolean;
  /** The attempt goes on for a while, as a whole answer does whose client left; only then has its worker written the outcome down. */
  readonly goesOn?: boolean;
}

export interface WorkersPort {
  /** Starts an attempt; undefined when no worker serves that provider. `besides`: a connection to avoid, since its replica was lost or refused the attempt. The call then waits up to 1 s for another replica, or for a new connection to the same one. */
  dispatch(provider: string, request: DispatchRequest, listener: AttemptListener, besides?: object): AttemptCall | undefined;
  /**
   * Tells a worker the outcome of an attempt; retried in the background for a while. Resolves with true when the worker has
   * taken it (and has written it to its log if it would not conclude the same by itself), with false when the last retry
   * failed; never rejects.
   */
  tellOutcome(provider: string, requestId: string, attempt: number, outcome: Outcome, terms?: OutcomeTerms): Promise<boolean>;
  /** Tells a worker that this edge is alive and will tell the outcome of an answered attempt later. To be repeated every 10 s (TEND_MS); a lost one is not retried. */
  tend(provider: string, requestId: string, attempt: number): void;
  /** Asks the worker to end a stream early; its last event then follows as usual. Not retried. */
  stop(provider: string, requestId: string, attempt: number): void;
}
