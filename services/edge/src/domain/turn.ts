/** One request on its way through the conduct. */
import type { Answer, PipelineStage } from './answer.js';
import type { ChatRequest } from './chat-request.js';
import type { Caller } from './ports.js';

/** Tools that run here and not at the client. */
export interface ServerTools {
  readonly names: ReadonlySet<string>;
  /** How often the model is asked again with their results. */
  readonly roundsMax: number;
  /** Runs one call; what goes wrong is told to the model. Rejects only when `signal` is aborted. */
  run(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome>;
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
  /** Monotonic milliseconds since when the client has heard nothing; absent = since the dispatch. */
  readonly silentSinceMs?: number;
}
