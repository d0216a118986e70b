/** The client's side of a request, as the domain sees it: no wire format, no sockets. */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Body__Output, End__Output, Failed__Output, Head__Output } from '@signalbox/contracts/worker';
import type { Bought } from '@signalbox/kernel/card-fees';
import type { Fault } from '@signalbox/kernel/fault';
import type { NanoUsd } from '@signalbox/kernel/money';
import type { Caller } from './ports.js';
import type { Unread } from './reader-pace.js';

export interface AttemptReport {
  readonly provider: string;
  readonly model: string;
  /** Undefined for the attempt that answered. */
  readonly failed: Failed__Output | undefined;
  /** Why the rest is missing, if it answered only in part. */
  readonly cut?: Failed__Output;
  /** The round that this attempt belongs to, from 1; undefined where the model was asked once. */
  readonly round?: number | undefined;
  /** It ran on the account's own credential. */
  readonly byok: boolean;
}

/** A client's error in the use of a plugin: an invalid option or file, or a policy that the plugin would violate. */
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

/** Why the caller may not call any more: `unknown` = accounts has no such key, `session-over` = the dashboard's session ended. */
export type CallerState = 'expired' | 'revoked' | 'disabled' | 'suspended' | 'unknown' | 'session-over';

/** Why a request got no answer; the wire turns it into a status and a body. */
export type Refusal =
  | { readonly kind: 'scope'; readonly scope: string }
  /** The request's key or session was valid on arrival, and no longer is. */
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
  /** `retryAfterMs`: if nothing was tried, the time until an endpoint may be tried; else that of one with more room for the prompt, which is down; 0 or absent = unknown, or none. `isCutShort`: further attempts were planned, but the retry budget is used up. */
  | { readonly kind: 'attempts'; readonly attempts: readonly AttemptReport[]; readonly retryAfterMs?: number | undefined; readonly isCutShort?: boolean }
  /** The drain is over. `isCharged`: the stream had begun, and its worker did not say in time what it costs. `retryAfterMs`: how long the request cannot be repeated. */
  | { readonly kind: 'stopping'; readonly isCharged: boolean; readonly retryAfterMs?: number | undefined }
  | { readonly kind: 'fault'; readonly fault: Fault };

/** Estimates for headers that are sent before the cost is known. */
export interface Estimate {
  readonly costNanoUsd: NanoUsd;
  readonly savingsNanoUsd: NanoUsd;
}

/** Of one attempt. */
export interface Route {
  readonly provider: string;
  readonly model: string;
  readonly decisionId: string;
  /** Attempts so far, this one included; undefined for requests with rounds, where more may follow after content was sent. */
  attempts: number | undefined;
  /** `YYYY-MM-DD`: from that day on the endpoint no longer serves; empty = none is known. */
  readonly sunsetDate?: string | undefined;
  /** Fields of the request that the endpoint does not take and is not sent, and names in `provider` and such lists that mean nothing here (ADR 60). */
  readonly dropParams?: readonly string[] | undefined;
  /** Known once the attempt starts to answer. */
  head: Head__Output | undefined;
  /** Called only when headers are sent before the end. */
  readonly estimate: () => Estimate;
}

/** What is known when an attempt has ended. */
export interface Settlement {
  readonly provider: string;
  readonly model: string;
  readonly end: End__Output;
  readonly attempts: readonly AttemptReport[];
  readonly decisionId: string;
  /** As in `Route`. */
  readonly sunsetDate?: string | undefined;
  readonly dropParams?: readonly string[] | undefined;
  /** Repairs made to the JSON that was asked for; only `failed` if it could not be healed; undefined = healing did not apply. */
  readonly healed?: readonly string[] | undefined;
  /** The plugins that ran, in order; absent without plugins. */
  readonly pipeline?: readonly PipelineStage[];
}

/** What an attempt is told about its client. */
export interface ClientListener {
  /** The client reads too slowly: send nothing more until `onDrain`. `taken`: bytes that the client has read so far; undefined while another answer has its turn on the same connection. */
  onSlow(taken: () => number | undefined): void;
  /** The client reads again. */
  onDrain(): void;
  /** The connection closed before the answer was complete. `byItself`: the client closed it, and not this edge. Who pays may depend on it, so the worker is told. */
  onGone(byItself: boolean): void;
  /** The answer is complete and its workers have been told that it is delivered, so `onStop` is called although nothing was sent yet. Absent = false. */
  readonly isGiving?: boolean;
  /** The drain is over. True = the answer ends soon by itself: it is complete, or its worker has been asked to end it. False or absent = the request is refused. */
  onStop?(): boolean;
}

export interface Answer {
  /** Sets the listener, replacing the previous one. Its `onGone` is called at once if the client has left already, its `onSlow` if the client still reads too slowly. */
  attend(listener: ClientListener): void;
  /** Streams: sends the headers, if not yet sent, and an SSE comment. Another attempt may still answer after it. */
  keepAlive(route: Route): void;
  /**
   * Streams, at the start of an attempt: a function that tells for each of its chunks in order, before any is passed to
   * `chunk`, whether it is hidden from the client, so that another attempt may still answer. Absent or undefined = none is hidden.
   */
  silence?(route: Route): ((choices: Uint8Array) => boolean) | undefined;
  /** Streams: characters of the answer so far that are kept until its end. Absent = none. */
  heldChars?(): number;
  /** Streams: one chunk of choices. Chunks of one event-loop turn may leave together. */
  chunk(route: Route, choices: Uint8Array): void;
  /** Streams: the last chunk, with usage; `choices` is the held finish chunk. */
  finish(route: Route, choices: Uint8Array, settlement: Settlement): void;
  /** Streams, after content: an error chunk with the figures of what was delivered. If the worker was lost, `settlement` is undefined (the charge is in the worker's log) and only `attempts` are known, the cut one last. `finished`: choices whose finish chunk was sent; absent = none. */
  cut(route: Route, failed: Failed__Output, settlement: Settlement | undefined, attempts: readonly AttemptReport[], finished?: ReadonlySet<number>): void;
  /** Not streamed: the whole answer. */
  body(body: Body__Output, settlement: Settlement): void;
  /** An error instead of an answer: an error status if no headers were sent, else an error chunk with the figures of what was delivered. */
  refuse(refusal: Refusal, settlement?: Settlement): void;
  /** What routing decided; called only if the turn asks for an explanation. */
  decided(plan: DecideResponse__Output): void;
  /** For a request that has waited: the caller, looked up again as on arrival, or why it may not call any more. Throws a Fault if accounts cannot be asked. Absent or undefined: the caller as on arrival. */
  callerNow?(): Promise<Caller | CallerState | undefined>;
  /** Figures for the rate-limit headers. */
  admitted(admission: AdmitResponse__Output): void;
  /** The client read nothing for too long. A stream ends with an error chunk after what is buffered, which the client has another minute to read; if other answers wait on its connection, the connection is cut at once. */
  abandon(unread: Unread): void;
  /** True once the client has hung up. */
  isGone(): boolean;
}
