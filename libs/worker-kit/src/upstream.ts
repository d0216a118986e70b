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

class Exchange implements DispatchHandler, UpstreamCall {
  /** Of the client that serves it, as soon as there is one. */
  wire: Wire | undefined;
  private controller: DispatchController | undefined;
  /** What the request is written to, from the moment that it is. */
  private socket: Socket | undefined;
  private isOver = false;
  /** Bytes that may follow what was complete. */
  private restBytes = Infinity;

  constructor(private listener: UpstreamListener) {}

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
    if (this.isOver) return;
    this.isOver = true;
    together(() => this.listener.onEnd());
  }

  onResponseError(): void {
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
    this.controller?.abort(new Error('aborted'));
  }

  isSent(): boolean {
    // What is left of the body waits in the socket until the kernel has taken it.
    return this.socket !== undefined && !this.socket.destroyed && this.socket.writableLength === 0;
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

/** `dialer` connects to origins that clients gave; without one, requests to those fail to connect. */
export function createUpstream(origin: string, dialer?: Dialer): Upstream {
  const open = (at: string): Pool => new Pool(at, { factory: openConnection, connections: CONNECTIONS_MAX, connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0, pipelining: 1 });
  const pool = open(origin);
  /** By origin: those that an adapter names beside its own, a handful. */
  const others = new Map<string, Pool>();
  const poolOf = (at: string): Pool => {
    let other = others.get(at);
    if (other === undefined) others.set(at, (other = open(at)));
    return other;
  };
  /** By origin, the one used longest ago first. */
  const guarded = new Map<string, Pool>();
  const guardedPoolOf = (at: string): Pool | undefined => {
    if (dialer === undefined) return undefined;
    const pool = guarded.get(at) ?? new Pool(at, { factory: openConnection, connections: GUARDED_CONNECTIONS_MAX, connect: dialer.connect, headersTimeout: 0, bodyTimeout: 0, pipelining: 1 });
    guarded.delete(at);
    guarded.set(at, pool);
    const oldest = guarded.size > GUARDED_POOLS_MAX ? guarded.entries().next().value : undefined;
    if (oldest !== undefined) {
      guarded.delete(oldest[0]);
      // What runs on it is let run out.
      oldest[1].close().catch(() => undefined);
    }
    return pool;
  };
  return {
    post: ({ path, headers, body, origin: other, isGuarded }, requestId, listener) => {
      const exchange = new Exchange(listener);
      // Also where the origin is the provider's own: its pool would not look at the address.
      const at = isGuarded === true ? guardedPoolOf(other ?? origin) : other === undefined || other === origin ? pool : poolOf(other);
      if (at === undefined || (isGuarded === true && at.stats.queued >= GUARDED_WAITING_MAX)) {
        exchange.onResponseError();
        return exchange;
      }
      const posted: Posted = { path, method: 'POST', headers: [...headers, 'x-request-id', requestId], body, exchange };
      at.dispatch(posted, exchange);
      return exchange;
    },
    close: async () => {
      await Promise.all([pool, ...others.values(), ...guarded.values()].map((each) => each.destroy()));
    },
  };
}
