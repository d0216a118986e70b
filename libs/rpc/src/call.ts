/** The shapes that both doors share: what a handler gets, and what a caller holds. */
import type { Fault } from '@signalbox/kernel/fault';
import type { Span } from '@signalbox/runtime/span';

/** Trace and identity that ride on each call. */
export interface CallInfo {
  /** Id of the client's request, empty for calls that serve none. */
  readonly requestId: string;
  /** W3C traceparent for what follows from this call: of its own span, else as it came; empty without one. */
  readonly traceparent: string;
  /** The span of this call, for what its handler knows of it; absent when it is not recorded. */
  readonly span?: Span | undefined;
  /** Aborted when the caller cancels, its deadline passes or its connection breaks. `reason` is a Fault: `cancelled` when the caller meant it, `client_left` when it said that its client hung up, `link_lost` when the connection broke, `deadline_exceeded`. */
  readonly signal: AbortSignal;
  /** Calls `listener` once with the reason when `signal` would abort, at once when it has: what a hot handler takes instead of an AbortSignal. One listener; a later one replaces it. */
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
   * `drained`. Messages written on regardless may come to 256 KB, the last of them beyond it; then throws a Fault `overloaded`.
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
   * For a call that may run twice. When its replica has given no sign of life for so long, counted while this process could have heard it, another
   * one is asked instead; where there is none, or that is silent too, the call ends with a Fault `deadline_exceeded` after as long again. One that
   * is frozen is given up so, and one that only has much to do at the deadline. Through the plain door twice as long is the deadline; within one
   * process nobody is frozen alone. Absent = the deadline alone.
   */
  readonly silenceMs?: number;
  /** Whoever traces finds the call's parent by it, unless `traceparent` names one. */
  readonly requestId?: string;
  readonly traceparent?: string;
  readonly signal?: AbortSignal;
  /** The `peer` of another call of this client: the replica that served it is asked, or nobody, also where one address stands for several. Absent = any. */
  readonly peer?: object | undefined;
  /** The `peer` of another call of this client, with which that was lost: another replica is asked, or the same over a connection made since. The Link alone looks at it, where `peer` is absent. */
  readonly besides?: object | undefined;
}

export interface StreamListener<Message> {
  onMessage(message: Message): void;
  /** Called exactly once, last; `fault` is undefined when the stream ended well. */
  onEnd(fault: Fault | undefined): void;
}

/** A running server stream at its caller. */
export interface StreamCall {
  /** Stops; `onEnd` follows with a Fault `cancelled`. `client_left` tells the peer why, where the door can say it (the plain one cannot). Safe to call twice and after the end. */
  cancel(why?: 'client_left'): void;
  /** No credit is given back while paused: the server's source pauses in turn (256 KB). Messages already here still arrive. */
  pause(): void;
  resume(): void;
  /** Who serves it, for calls that are about it; undefined before it was sent, and where there is one peer only. */
  peer?(): object | undefined;
  /** Whether another replica than that is linked, which could be asked `besides` it. False through the plain door, which knows addresses only, and where there is one peer. */
  hasOthers?(): boolean;
}

/** One neighbour, over whichever door the client was made for. */
export interface RpcClient {
  unary<Request extends object, Response>(method: string, request: Request, options?: CallOptions): Promise<Response>;
  stream<Request extends object, Message>(method: string, request: Request, listener: StreamListener<Message>, options?: CallOptions): StreamCall;
  /** True while at least one connection answers. */
  isConnected(): boolean;
  close(): Promise<void>;
}
