/** One request on its way through edge, and the plugins' tools that run for it. */
import type { Fault } from '@signalbox/kernel/fault';
import type { Answer, PipelineStage } from './answer.js';
import type { ChatRequest } from './chat-request.js';
import type { Caller } from './ports.js';

/** Tools of plugins, which this gateway runs and not the client. */
export interface ServerTools {
  readonly names: ReadonlySet<string>;
  /** The terms of those tools that spend money at a provider, by name. */
  readonly spending: ReadonlyMap<string, SpendingTerms>;
  /** How often, at most, the model is asked again with their results. */
  readonly roundsMax: number;
  /** Runs one call. The model gets a failure as the call's result. Rejects when `signal` is aborted or the plugins service is away. `byok`: the request runs on the account's own credentials. */
  run(call: ToolCall, byok: boolean, signal: AbortSignal): Promise<ToolOutcome>;
}

/** Upper bounds of one call of a tool that spends money. */
export interface SpendingTerms {
  readonly feeNanoUsdMax: bigint;
  readonly imagesMax: number;
}

/** An image for the client. */
export interface ToolImage {
  /** Such as `image/png`. */
  readonly mediaType: string;
  readonly data: Uint8Array;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it, perhaps invalid. */
  readonly arguments: string;
}

export interface ToolOutcome {
  /** The result as text for the model. */
  readonly content: string;
  readonly stage: PipelineStage;
  readonly images: readonly ToolImage[];
}

export interface Turn {
  readonly requestId: string;
  readonly caller: Caller;
  readonly request: ChatRequest;
  readonly answer: Answer;
  /** The client asked to see its routing decision. Absent = no. */
  readonly explain?: boolean;
  /** Fees of the plugins that ran, in nano-USD; they are part of what each attempt costs. Absent = none. */
  readonly feeNanoUsd?: bigint;
  /** Tools of ours that the model may call. Absent = none. */
  readonly tools?: ServerTools;
  /** For a request with an Idempotency-Key: confirms before each dispatch that this request still has the key. A Fault = nothing may be dispatched. Absent = no key. */
  readonly keepClaim?: () => Promise<Fault | undefined>;
  /** Counts bytes that the request is kept with besides its body, until it is over; false = there is no room for them. Absent = there is room. */
  readonly takeRoom?: ((bytes: number) => boolean) | undefined;
  /** When the client was last sent anything, in monotonic milliseconds; absent = at the dispatch. */
  readonly silentSinceMs?: number;
}
