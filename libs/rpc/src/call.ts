/** The RPC interface of handlers and callers, the same over the Link, plain gRPC and within a process. */
import type { Fault } from '@signalbox/kernel/fault';
import type { Span } from '@signalbox/runtime/span';

/** What a handler knows about its call besides the request. */
export interface CallInfo {
  /** Id of the client's request, empty for calls that serve none. */
  readonly requestId: string;
  /** W3C traceparent for calls that the handler makes: of this call's own span if it has one, else the one that was received; empty without either. */
  readonly traceparent: string;
  /** The span of this call, to which its handler may add attributes; absent when it is not recorded. */
  readonly span?: Span | undefined;
  /** Aborted when the caller cancels, its deadline passes or its connection breaks. `reason` is a Fault: `cancelled` when the caller cancelled, `client_left` when it said that its client hung up, `link_lost` when the connection broke, `deadline_exceeded`. */
  readonly signal: AbortSignal;
  /** A cheaper `signal` for handlers on the hot path: calls `listener` once, with the reason, when `signal` would abort; immediately if it has aborted already. There is one listener; a later one replaces it. */
  onAbort(listener: (reason: Fault) => void): void;
  /** Milliseconds until the caller's deadline; Infinity without one. */
  remainingMs(): number;
}

/** Answers one request with one message. Throw a Fault for a fault; anything else thrown is a bug (`internal_error`). */
export type UnaryHandler<Request, Response> = (request: Request, call: CallInfo) => Promise<Response> | Response;

/** Takes the messages of a streaming handler. */
export interface Emitter<Message> {
  /**
   * Queues a message of at most 64 MB. Returns false when the credit is used up: stop reading the source and wait for
   * `drained`. Up to 256 KB more may still be written; the first message after that throws a Fault `overloaded`.
   */
  write(message: Message): boolean;
  /** Resolves when there is credit again; rejects with a Fault when the call is over. */
  drained(): Promise<void>;
}

/** Answers one request with any number of messages; the stream ends when the promise settles. */
export type StreamHandler<Request, Message> = (request: Request, call: CallInfo, emit: Emitter<Message>) => Promise<void>;

// Handlers of one service, keyed by RPC name. Types are checked where the table is written.
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a table of handlers of different messages has no better common type
export type AnyUnaryHandler = UnaryHandler<any, any>;
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- see above
export type AnyStreamHandler = StreamHandler<any, any>;
export interface Handlers {
  readonly unary: Readonly<Record<string, AnyUnaryHandler>>;
  readonly stream?: Readonly<Record<string, AnyStreamHandler>>;
}

export interface CallOptions {
  /** 0 or absent = the client's default deadline. */
  readonly deadlineMs?: number;
  /**
   * For calls that may safely run twice. A replica that sends nothing for this long counts as frozen, and the call is sent to another one.
   * Time in which this process itself was stalled does not count. If there is no other replica, or that one is silent too, the call ends
   * with a Fault `deadline_exceeded` after the same time again. A replica that is merely busy answers pings, so the call waits for it until
   * the deadline. Over plain gRPC, twice this value is the deadline; within one process it has no effect. Absent = only the deadline counts.
   */
  readonly silenceMs?: number;
  /** The client's request. The tracer finds the parent span by this id, unless `traceparent` names one. */
  readonly requestId?: string;
  readonly traceparent?: string;
  readonly signal?: AbortSignal;
  /** The `peer` of an earlier call of this client: the call goes only to the replica that served that one, even if several share an address. Absent = any. */
  readonly peer?: object | undefined;
  /** The `peer` of an earlier call of this client that was lost: the call goes to another replica, or to the same one over a newer connection. Only the Link honours this; ignored if `peer` is given. */
  readonly besides?: object | undefined;
}

export interface StreamListener<Message> {
  onMessage(message: Message): void;
  /** Called exactly once, last; `fault` is undefined when the stream ended well. */
  onEnd(fault: Fault | undefined): void;
}

/** A running server stream, on its caller's side. */
export interface StreamCall {
  /** Cancels; `onEnd` follows with a Fault `cancelled`. `client_left` tells the peer the reason (plain gRPC cannot carry it). Safe to call twice and after the end. */
  cancel(why?: 'client_left'): void;
  /** Grants no more credit until `resume`, so the server pauses too once it has sent 256 KB. Messages received already are still delivered. */
  pause(): void;
  resume(): void;
  /** The replica that serves this call, for `CallOptions.peer` and `besides`; undefined until the call is sent, and if there is only one peer. */
  peer?(): object | undefined;
  /** True if another replica is connected, which a call `besides` this one could use. Always false over plain gRPC, which knows only addresses. */
  hasOthers?(): boolean;
}

/**
 * What stands for the replica behind a `peer`. Calls that went over different links have different peers: of one replica, as far as that is
 * known, this is the same object while a link to it is open.
 */
export function replicaOf(peer: object): object {
  return 'replica' in peer && typeof peer.replica === 'object' && peer.replica !== null ? peer.replica : peer;
}

/** A neighbour service, over the transport that the client was created for. */
export interface RpcClient {
  unary<Request extends object, Response>(method: string, request: Request, options?: CallOptions): Promise<Response>;
  stream<Request extends object, Message>(method: string, request: Request, listener: StreamListener<Message>, options?: CallOptions): StreamCall;
  /** True while at least one connection answers. */
  isConnected(): boolean;
  close(): Promise<void>;
}
