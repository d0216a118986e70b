/** One request on its way through the conduct. */
import type { Fault } from '@signalbox/kernel/fault';
import type { Answer, PipelineStage } from './answer.js';
import type { ChatRequest } from './chat-request.js';
import type { Caller } from './ports.js';

/** Tools that run here and not at the client. */
export interface ServerTools {
  readonly names: ReadonlySet<string>;
  /** Of those that spend money outside, by name. */
  readonly spending: ReadonlyMap<string, SpendingTerms>;
  /** How often the model is asked again with their results. */
  readonly roundsMax: number;
  /** Runs one call; what goes wrong is told to the model. Rejects only when `signal` is aborted. `byok`: the request runs on the account's own credentials. */
  run(call: ToolCall, byok: boolean, signal: AbortSignal): Promise<ToolOutcome>;
}

/** What one call of a tool may take at most. */
export interface SpendingTerms {
  readonly feeNanoUsdMax: bigint;
  readonly imagesMax: number;
}

/** A picture for the client. */
export interface ToolImage {
  /** Such as `image/png`. */
  readonly mediaType: string;
  readonly data: Uint8Array;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it, maybe broken. */
  readonly arguments: string;
}

export interface ToolOutcome {
  /** For the model. */
  readonly content: string;
  readonly stage: PipelineStage;
  readonly images: readonly ToolImage[];
}

export interface Turn {
  readonly requestId: string;
  readonly caller: Caller;
  readonly request: ChatRequest;
  readonly answer: Answer;
  /** The client wants to see why its request went where it went. Absent = no. */
  readonly explain?: boolean;
  /** Fees of the plugins that ran, nano-USD: part of what each attempt costs. Absent = none. */
  readonly feeNanoUsd?: bigint;
  /** Functions of ours that the model may call. Absent = none. */
  readonly tools?: ServerTools;
  /** For a request under an Idempotency-Key, asked before each dispatch; a Fault = nothing may be dispatched. Absent = there is no key. */
  readonly keepClaim?: () => Promise<Fault | undefined>;
  /** Monotonic milliseconds since when the client has heard nothing; absent = since the dispatch. */
  readonly silentSinceMs?: number;
}
