/** HTTP towards one provider: undici's dispatch with one pool, no redirects, no retries of its own. */
import type { Dialer } from '@signalbox/net-guard/dialer';
import { Client, Pool, type Connector, type DispatchController, type DispatchHandler, type DispatchOptions } from '@signalbox/runtime/http-client';
import { together } from '@signalbox/runtime/turn';
import type { Socket } from 'node:net';
import type { ResponseHeaders, UpstreamRequest } from './provider.js';

const CONNECT_MS = 3_000;
const CONNECTIONS_MAX = 1_024;
/** To an address that a client gave. */
const GUARDED_CONNECTIONS_MAX = 64;
const GUARDED_POOLS_MAX = 256;
/** Requests that wait for one of those connections, with their bodies; more fail at once. */
const GUARDED_WAITING_MAX = 256;
/** After the end of an answer: the rest of its last event and the end of the body, or nothing. */
const REST_BYTES_MAX = 4_096;

export interface UpstreamListener {
  /** A connection has been had, and the request is on its way. */
  onSent?(): void;
  onHead(status: number, headers: ResponseHeaders): void;
  onData(bytes: Buffer): void;
  onEnd(): void;
  /** `connect`: not a byte of the request left. Called at most once, and never after `onEnd`. */
  onError(kind: 'connect' | 'disconnected'): void;
}

export interface UpstreamCall {
  pause(): void;
  resume(): void;
  /** The answer is complete: the listener hears nothing more, and the connection serves again once the little that may follow has been read. */
  release(): void;
  /** Cuts the connection; the listener hears nothing more. Safe to call twice, and after `release`. */
  abort(): void;
  /** The provider has been given the request: all of it is written to a connection that stands. False once that is cut. */
  isSent(): boolean;
}

export interface Upstream {
  post(request: UpstreamRequest, requestId: string, listener: UpstreamListener): UpstreamCall;
  close(): Promise<void>;
}

const NOBODY: UpstreamListener = { onHead: () => undefined, onData: () => undefined, onEnd: () => undefined, onError: () => undefined };

/** What one client of a pool is connected by at present. */
interface Wire {
  socket: Socket | undefined;
}

/** Where an exchange stands that waits for a connection. */
interface Queue {
  /** False when it did not wait there. */
  leave(exchange: Exchange): boolean;
  /** A request that was dispatched is over. */
  next(): void;
}

class Exchange implements DispatchHandler, UpstreamCall {
  /** Of the client that serves it, as soon as there is one. */
  wire: Wire | undefined;
  private controller: DispatchController | undefined;
  /** What the request is written to, from the moment that it is. */
  private socket: Socket | undefined;
  private isOver = false;
  /** Bytes that may follow what was complete. */
  private restBytes = Infinity;
  /** Of the connections that it waits for, or has one of; undefined once it has none any more. */
  private queue: Queue | undefined;

  constructor(private listener: UpstreamListener) {}

  enter(queue: Queue): void {
    this.queue = queue;
  }

  /** Waiting is over without a connection. */
  forsake(): void {
    this.queue = undefined;
    this.onResponseError();
  }

  onRequestStart(controller: DispatchController): void {
    this.controller = controller;
    this.socket = this.wire?.socket;
    if (this.isOver) controller.abort(new Error('aborted'));
    else this.listener.onSent?.();
  }

  onResponseStart(_controller: DispatchController, status: number, headers: ResponseHeaders): void {
    if (!this.isOver && status >= 200) this.listener.onHead(status, headers);
  }

  onResponseData(_controller: DispatchController, chunk: Buffer): void {
    if (this.isOver) return;
    this.restBytes -= chunk.length;
    if (this.restBytes < 0) this.abort();
    else this.listener.onData(chunk);
  }

  onResponseEnd(): void {
    this.giveBack();
    if (this.isOver) return;
    this.isOver = true;
    together(() => this.listener.onEnd());
  }

  onResponseError(): void {
    this.giveBack();
    if (this.isOver) return;
    this.isOver = true;
    this.listener.onError(this.controller === undefined ? 'connect' : 'disconnected');
  }

  pause(): void {
    this.controller?.pause();
  }

  resume(): void {
    this.controller?.resume();
  }

  release(): void {
    if (this.isOver) return;
    this.listener = NOBODY;
    this.restBytes = REST_BYTES_MAX;
    this.controller?.resume();
  }

  abort(): void {
    // An end may wait for its turn.
    this.listener = NOBODY;
    if (this.isOver) return;
    this.isOver = true;
    // undici knows no way out of its own queue: it would hold the body until the turn came, and cut that connection then.
    if (this.queue?.leave(this) === true) this.queue = undefined;
    this.controller?.abort(new Error('aborted'));
  }

  isSent(): boolean {
    // What is left of the body waits in the socket until the kernel has taken it.
    return this.socket !== undefined && !this.socket.destroyed && this.socket.writableLength === 0;
  }

  private giveBack(): void {
    this.queue?.next();
    this.queue = undefined;
  }
}

/** What a request is dispatched with. */
type Posted = DispatchOptions & { readonly exchange: Exchange };

/** One connection of a pool, which tells an exchange what it is written to: its pool and the handler's wrapping hide it. */
class Connection extends Client {
  constructor(
    origin: URL,
    options: object,
    private readonly wire: Wire,
  ) {
    super(origin, options);
  }

  override dispatch(options: Posted, handler: DispatchHandler): boolean {
    options.exchange.wire = this.wire;
    return super.dispatch(options, handler);
  }
}

/** Opens one connection of a pool; `connect` is the pool's connector. */
function openConnection(origin: URL, options: object): Connection {
  const wire: Wire = { socket: undefined };
  const { connect } = options as { readonly connect: Connector };
  const remembering: Connector = (target, callback) =>
    connect(target, (...result) => {
      wire.socket = result[1] ?? undefined;
      callback(...result);
    });
  return new Connection(origin, { ...options, connect: remembering }, wire);
}

/** The connections to one origin, and who waits for one of them, the longest first. */
class Line implements Queue {
  private readonly waiting = new Map<Exchange, Posted>();
  private taken = 0;
  private isClosed = false;

  constructor(
    private readonly pool: Pool,
    private readonly connectionsMax: number,
    private readonly waitingMax = Infinity,
  ) {}

  /** False when too many wait. */
  post(posted: Posted): boolean {
    const { exchange } = posted;
    if (this.taken < this.connectionsMax) {
      exchange.enter(this);
      this.dispatch(posted);
      return true;
    }
    if (this.waiting.size >= this.waitingMax) return false;
    exchange.enter(this);
    this.waiting.set(exchange, posted);
    return true;
  }

  leave(exchange: Exchange): boolean {
    return this.waiting.delete(exchange);
  }

  next(): void {
    this.taken -= 1;
    const first = this.waiting.entries().next().value;
    if (first === undefined || this.isClosed) return;
    this.waiting.delete(first[0]);
    this.dispatch(first[1]);
  }

  /** What runs, or waits, is let run out. */
  async retire(): Promise<void> {
    for (const [exchange, posted] of this.waiting) {
      this.waiting.delete(exchange);
      this.dispatch(posted);
    }
    await this.pool.close();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    for (const exchange of this.waiting.keys()) exchange.forsake();
    this.waiting.clear();
    await this.pool.destroy();
  }

  private dispatch(posted: Posted): void {
    this.taken += 1;
    this.pool.dispatch(posted, posted.exchange);
  }
}

/** `dialer` connects to origins that clients gave; without one, requests to those fail to connect. */
export function createUpstream(origin: string, dialer?: Dialer): Upstream {
  const open = (at: string): Line => new Line(new Pool(at, { factory: openConnection, connections: CONNECTIONS_MAX, connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0, pipelining: 1 }), CONNECTIONS_MAX);
  const own = open(origin);
  /** By origin: those that an adapter names beside its own, a handful. */
  const others = new Map<string, Line>();
  const otherOf = (at: string): Line => {
    let other = others.get(at);
    if (other === undefined) others.set(at, (other = open(at)));
    return other;
  };
  /** By origin, the one used longest ago first. */
  const guarded = new Map<string, Line>();
  const guardedOf = (at: string): Line | undefined => {
    if (dialer === undefined) return undefined;
    const line = guarded.get(at) ?? new Line(new Pool(at, { factory: openConnection, connections: GUARDED_CONNECTIONS_MAX, connect: dialer.connect, headersTimeout: 0, bodyTimeout: 0, pipelining: 1 }), GUARDED_CONNECTIONS_MAX, GUARDED_WAITING_MAX);
    guarded.delete(at);
    guarded.set(at, line);
    const oldest = guarded.size > GUARDED_POOLS_MAX ? guarded.entries().next().value : undefined;
    if (oldest !== undefined) {
      guarded.delete(oldest[0]);
      oldest[1].retire().catch(() => undefined);
    }
    return line;
  };
  return {
    post: ({ path, headers, body, origin: other, isGuarded }, requestId, listener) => {
      const exchange = new Exchange(listener);
      // Also where the origin is the provider's own: its pool would not look at the address.
      const line = isGuarded === true ? guardedOf(other ?? origin) : other === undefined || other === origin ? own : otherOf(other);
      const posted: Posted = { path, method: 'POST', headers: [...headers, 'x-request-id', requestId], body, exchange };
      if (line?.post(posted) !== true) exchange.forsake();
      return exchange;
    },
    close: async () => {
      await Promise.all([own, ...others.values(), ...guarded.values()].map((line) => line.close()));
    },
  };
}
