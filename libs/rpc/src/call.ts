/** The RPC interface, the same over the Link, plain gRPC and within a process: what a handler gets, and what a caller holds. */
import type { Fault } from '@signalbox/kernel/fault';
import type { Span } from '@signalbox/runtime/span';

/** What a handler knows of its call beside the request. */
export interface CallInfo {
  /** Id of the client's request, empty for calls that serve none. */
  readonly requestId: string;
  /** W3C traceparent to pass on to calls that this one makes: of its own span if it has one, else as it came; empty without either. */
  readonly traceparent: string;
  /** The span of this call, to which its handler may add attributes; absent when it is not recorded. */
  readonly span?: Span | undefined;
  /** Aborted when the caller cancels, its deadline passes or its connection breaks. `reason` is a Fault: `cancelled` when the caller cancelled, `client_left` when it said that its client hung up, `link_lost` when the connection broke, `deadline_exceeded`. */
  readonly signal: AbortSignal;
  /** A cheaper `signal` for handlers on the hot path: calls `listener` once, with the reason, when `signal` would abort; at once when it has. There is one listener; a later one replaces it. */
  onAbort(listener: (reason: Fault) => void): void;
  /** Milliseconds left of the caller's deadline; Infinity without one. */
  remainingMs(): number;
}

/** Answers one request with one message. Throw a Fault for a fault; anything else thrown is a bug (`internal_error`). */
export type UnaryHandler<Request, Response> = (request: Request, call: CallInfo) => Promise<Response> | Response;

/** Where a streaming handler puts its messages. */
export interface Emitter<Message> {
  /**
   * Queues a message of at most 64 MB. False when the receiver has no credit left: stop reading the source and wait for
   * `drained`. Up to 256 KB may be written regardless; a message that begins beyond that throws a Fault `overloaded`.
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
   * For calls that may safely run twice. A replica that gives no sign of life for this long (time in which this process itself was held up does not
   * count) is taken to be frozen, and another is asked instead. Where there is no other, or it is silent too, the call ends with a Fault
   * `deadline_exceeded` after as long again. A replica that is merely busy answers pings, and is waited for until the deadline. Over plain gRPC
   * twice this value is the deadline; within one process it has no effect. Absent = the deadline alone.
   */
  readonly silenceMs?: number;
  /** The client's request. The tracer finds the parent span by it, unless `traceparent` names one. */
  readonly requestId?: string;
  readonly traceparent?: string;
  readonly signal?: AbortSignal;
  /** The `peer` of an earlier call of this client: only the replica that served it is asked, also where one address stands for several. Absent = any. */
  readonly peer?: object | undefined;
  /** The `peer` of an earlier call of this client that was lost: another replica is asked, or the same one over a newer connection. Honoured by the Link only, and ignored where `peer` is given. */
  readonly besides?: object | undefined;
}

export interface StreamListener<Message> {
  onMessage(message: Message): void;
  /** Called exactly once, last; `fault` is undefined when the stream ended well. */
  onEnd(fault: Fault | undefined): void;
}

/** A running server stream at its caller. */
export interface StreamCall {
  /** Stops; `onEnd` follows with a Fault `cancelled`. `client_left` tells the peer why (plain gRPC cannot say so). Safe to call twice and after the end. */
  cancel(why?: 'client_left'): void;
  /** Gives no credit back until `resume`: the server pauses in turn once it has sent 256 KB. Messages received already are still delivered. */
  pause(): void;
  resume(): void;
  /** The replica that serves this call, for `CallOptions.peer` and `besides`; undefined before it was sent, and where there is one peer only. */
  peer?(): object | undefined;
  /** True when another replica is connected, which could be asked `besides` this one. Always false over plain gRPC, which knows addresses only. */
  hasOthers?(): boolean;
}

/** One neighbour service, over whichever transport the client was made for. */
export interface RpcClient {
  unary<Request extends object, Response>(method: string, request: Request, options?: CallOptions): Promise<Response>;
  stream<Request extends object, Message>(method: string, request: Request, listener: StreamListener<Message>, options?: CallOptions): StreamCall;
  /** True while at least one connection answers. */
  isConnected(): boolean;
  close(): Promise<void>;
}
