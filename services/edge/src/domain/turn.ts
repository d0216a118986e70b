/** One request on its way through edge, and the tools that run here on its behalf. */
import type { Fault } from '@signalbox/kernel/fault';
import type { Answer, PipelineStage } from './answer.js';
import type { ChatRequest } from './chat-request.js';
import type { Caller } from './ports.js';

/** Tools that run on our side, and not at the client. */
export interface ServerTools {
  readonly names: ReadonlySet<string>;
  /** The terms of those tools that spend money at a provider, by name. */
  readonly spending: ReadonlyMap<string, SpendingTerms>;
  /** How often, at most, the model is asked again with their results. */
  readonly roundsMax: number;
  /** Runs one call. A failure is told to the model as the call's result; rejects only when `signal` is aborted. `byok`: the request runs on the account's own credentials. */
  run(call: ToolCall, byok: boolean, signal: AbortSignal): Promise<ToolOutcome>;
}

/** Upper bounds of one call of a tool that spends. */
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
  /** The client asked to see its routing decision. Absent = no. */
  readonly explain?: boolean;
  /** Fees of the plugins that ran, in nano-USD; they are part of what each attempt costs. Absent = none. */
  readonly feeNanoUsd?: bigint;
  /** Tools of ours that the model may call. Absent = none. */
  readonly tools?: ServerTools;
  /** Of a request with an Idempotency-Key: confirms before each dispatch that this request still owns the key. A Fault = nothing may be dispatched. Absent = there is no key. */
  readonly keepClaim?: () => Promise<Fault | undefined>;
  /** When the client was last sent anything, in monotonic milliseconds; absent = at the dispatch. */
  readonly silentSinceMs?: number;
}
