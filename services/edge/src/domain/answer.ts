/** The client's side of a request, as the domain sees it: no wire format, no sockets. */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Body__Output, End__Output, Failed__Output, Head__Output } from '@signalbox/contracts/worker';
import type { Bought } from '@signalbox/kernel/card-fees';
import type { Fault } from '@signalbox/kernel/fault';
import type { NanoUsd } from '@signalbox/kernel/money';
import type { Caller } from './ports.js';

export interface AttemptReport {
  readonly provider: string;
  readonly model: string;
  /** Undefined for the attempt that answered. */
  readonly failed: Failed__Output | undefined;
  /** It answered in part: why the rest is missing. */
  readonly cut?: Failed__Output;
  /** The round that this attempt belongs to, from 1; undefined where the model was asked once. */
  readonly round?: number | undefined;
  /** It ran on the account's own credential. */
  readonly byok: boolean;
}

/** What a client asked of a plugin and cannot have: an option, a file, or a policy that the plugin would break. */
export interface PluginProblem {
  readonly kind: 'type' | 'value' | 'conflict';
  readonly plugin: string;
  readonly param: string;
  readonly message: string;
}

/** One run of a plugin for this request. */
export interface PipelineStage {
  readonly stage: string;
  readonly plugin: string;
  /** `scheduled`: runs once the answer has been given. */
  readonly status: string;
  readonly durationMs: number;
  readonly feeNanoUsd: bigint;
  /** The part of the fee that is on a provider's bill. */
  readonly bought?: Bought;
  readonly detail: Readonly<Record<string, string | number | boolean>>;
}

/** The least that a request needs, in both units: a limit counts one of them. */
export interface Least {
  readonly nanoUsd: bigint;
  readonly tokens: bigint;
}

/** Why nobody may call any more: `unknown` = accounts has no such key, `session-over` = the dashboard's session ended. */
export type CallerState = 'expired' | 'revoked' | 'disabled' | 'suspended' | 'unknown' | 'session-over';

/** Why a request got no answer; the wire turns it into a status and a body. */
export type Refusal =
  | { readonly kind: 'scope'; readonly scope: string }
  /** The key or session that the request came with was good on arrival, and is no more. */
  | { readonly kind: 'caller'; readonly state: CallerState }
  | { readonly kind: 'plugin-requires-paid'; readonly plugin: string }
  | { readonly kind: 'plugin-unavailable'; readonly plugin: string }
  | { readonly kind: 'plugin-problem'; readonly problem: PluginProblem }
  /** The plugin failed through no fault of the client, and the request cannot go on without its work. */
  | { readonly kind: 'plugin-failed'; readonly plugin: string }
  | { readonly kind: 'plugins-flooded'; readonly waitMs: number }
  | { readonly kind: 'unbounded-parts' }
  /** `param` refers to something only the account's own credential may reach, and no such credential is usable. */
  | { readonly kind: 'own-credential'; readonly param: string; readonly excludedBy: readonly string[] }
  | { readonly kind: 'routing'; readonly decision: DecideResponse__Output; readonly model: string }
  /** `least`: what the shortest request on the same plan needs, fees included. */
  | { readonly kind: 'admission'; readonly admission: AdmitResponse__Output; readonly least?: Least }
  /** `retryAfterMs`: where nothing was tried, until something may be; 0 or absent = unknown. `isCutShort`: others were left, and no retry was. */
  | { readonly kind: 'attempts'; readonly attempts: readonly AttemptReport[]; readonly retryAfterMs?: number | undefined; readonly isCutShort?: boolean }
  /** The drain is over. `isCharged`: of a stream that had begun, and whose worker did not say in time what it costs. `retryAfterMs`: where it cannot be asked again sooner. */
  | { readonly kind: 'stopping'; readonly isCharged: boolean; readonly retryAfterMs?: number | undefined }
  | { readonly kind: 'fault'; readonly fault: Fault };

/** Pre-flight figures, for headers that leave before the cost is known. */
export interface Estimate {
  readonly costNanoUsd: NanoUsd;
  readonly savingsNanoUsd: NanoUsd;
}

/** Of one attempt. */
export interface Route {
  readonly provider: string;
  readonly model: string;
  readonly decisionId: string;
  /** Attempts so far, with this one; undefined where more may follow once content was sent: a later round's. */
  attempts: number | undefined;
  /** `YYYY-MM-DD`: from that day on the endpoint that answers serves no more; empty = none is known. */
  readonly sunsetDate?: string | undefined;
  /** Fields of the request that its endpoint does not take, and is not sent; names within it that stand for nothing here. */
  readonly dropParams?: readonly string[] | undefined;
  /** Known once the attempt starts to answer. */
  head: Head__Output | undefined;
  /** Asked only where headers leave before the end. */
  readonly estimate: () => Estimate;
}

/** Known when it has ended. */
export interface Settlement {
  readonly provider: string;
  readonly model: string;
  readonly end: End__Output;
  readonly attempts: readonly AttemptReport[];
  readonly decisionId: string;
  /** As of a route. */
  readonly sunsetDate?: string | undefined;
  readonly dropParams?: readonly string[] | undefined;
  /** Repairs of the JSON that was asked for, `failed` alone where it is none; undefined = healing did not apply. */
  readonly healed?: readonly string[] | undefined;
  /** Of a request with plugins: what ran, in order. */
  readonly pipeline?: readonly PipelineStage[];
}

/** What an attempt hears of its client. */
export interface ClientListener {
  /** The client does not keep up: send nothing more until `onDrain`. `taken`: bytes that the client has read so far; undefined while another answer has its turn on the same connection. */
  onSlow(taken: () => number | undefined): void;
  /** The client reads again. */
  onDrain(): void;
  /** The client is gone before the answer was complete. `byItself`: it hung up, and was not cut off by us. Who pays may depend on it, so the worker is told. */
  onGone(byItself: boolean): void;
  /** The answer is complete and already told to workers as delivered, so `onStop` is asked although the client has seen nothing yet. Absent = false. */
  readonly isGiving?: boolean;
  /** The drain is over. True = the end of the answer follows soon: it is complete, or its worker has been asked to end it. False or absent = nothing follows, and the request is refused. */
  onStop?(): boolean;
}

export interface Answer {
  /** Sets the listener, replacing the one before. It is told at once when the client is gone already. */
  attend(listener: ClientListener): void;
  /** Streams: sends the headers if they have not left, and an SSE comment. Another attempt may still answer after it. */
  keepAlive(route: Route): void;
  /**
   * Streams, at the start of an attempt: says of each of its chunks in turn, before any was given here, whether the client
   * is to see nothing of it, so that another attempt may still answer. Absent or undefined = it sees all of them.
   */
  silence?(route: Route): ((choices: Uint8Array) => boolean) | undefined;
  /** Streams: one chunk of choices. Chunks of one event-loop turn may leave together. */
  chunk(route: Route, choices: Uint8Array): void;
  /** Streams: the last chunk, with usage; `choices` is the held finish chunk. */
  finish(route: Route, choices: Uint8Array, settlement: Settlement): void;
  /** Streams, after content: an error chunk, with what was delivered; of a worker that was lost only `attempts`, the cut one last, since what it is charged is found in its log. `finished`: choices whose own finish was given; absent = none. */
  cut(route: Route, failed: Failed__Output, settlement: Settlement | undefined, attempts: readonly AttemptReport[], finished?: ReadonlySet<number>): void;
  /** Not streamed: the whole answer. */
  body(body: Body__Output, settlement: Settlement): void;
  /** An error instead of an answer: a status if none has left, else an error chunk, with what was delivered if anything was. */
  refuse(refusal: Refusal, settlement?: Settlement): void;
  /** What routing decided; told only where the turn asks for an explanation. */
  decided(plan: DecideResponse__Output): void;
  /** Who calls, looked up as on arrival, for a request that has waited; or why it would not be let in any more. Throws a Fault while that is not known. Absent or undefined: whoever was let in still is. */
  callerNow?(): Promise<Caller | CallerState | undefined>;
  /** Figures for the rate-limit headers. */
  admitted(admission: AdmitResponse__Output): void;
  /** The client took nothing for too long: a stream ends with an error chunk behind what waits for it, which it has another minute to take up. One on whose connection others wait is cut off. */
  abandon(): void;
  /** True once the client has hung up. */
  isGone(): boolean;
}
