/** HTTP towards one provider: undici's dispatch with one pool, no redirects, no retries of its own. */
import type { Dialer } from '@signalbox/net-guard/dialer';
import { isOutOfDescriptors } from '@signalbox/runtime/descriptors';
import { Client, Pool, type Connector, type DispatchController, type DispatchHandler } from '@signalbox/runtime/http-client';
import { together } from '@signalbox/runtime/turn';
import type { Socket } from 'node:net';
import { Line, Seat, type Place, type Posted } from './connection-line.js';
import { Gunzipped, isGzip } from './gunzipped.js';
import type { ResponseHeaders, UpstreamRequest } from './provider.js';

export type { Place } from './connection-line.js';

const CONNECT_MS = 3_000;
/** How long an idle connection is kept, where its host says nothing of that: common servers close theirs after 5 s (uvicorn). */
const IDLE_MS = 4_000;
/** The same with TLS, where the next request saves the handshakes: less than balancers in front of providers wait (AWS 60 s, Cloudflare 400 s). */
const TLS_IDLE_MS = 50_000;
/** Most connections to an origin, and to one that an account gave, that are kept for the longer time; a burst leaves more. */
const KEPT_MAX = 32;
const GUARDED_KEPT_MAX = 2;
/** A host that had closed a connection says so within a round trip of the request on it. One that closes it later may have worked on the request. */
export const STALE_MS = 1_000;
/** As many as an edge handles requests at once. */
const CONNECTIONS_MAX = 4_096;
/** To one address that an account gave. */
const GUARDED_CONNECTIONS_MAX = 64;
const GUARDED_POOLS_MAX = 256;
/** Most requests that wait for such a connection, with their bodies in memory; more fail at once. */
const GUARDED_WAITING_MAX = 256;
/** Asks for an uncompressed answer; without it any coding would be acceptable (RFC 9110, section 12.5.3). If a host compresses anyway, gzip can be read. */
const PLAIN = ['accept-encoding', 'identity'];
/** Bytes accepted after the end of an answer: at most the rest of its last event and the end of the body are expected. */
const REST_BYTES_MAX = 4_096;

/** `connect`: not a byte of the request was sent. `unable`: nor was one, since this process has no file descriptor left for a connection. `stale`: the connection had served a request before, and was closed before the answer began, as by a host that takes it for idle. */
export type Loss = 'connect' | 'unable' | 'stale' | 'disconnected';

export interface UpstreamListener {
  /** There is a connection, and the request is on its way. */
  onSent?(): void;
  onHead(status: number, headers: ResponseHeaders): void;
  onData(bytes: Buffer): void;
  onEnd(): void;
  /** Called at most once, and never after `onEnd`. */
  onError(kind: Loss): void;
}

export interface UpstreamCall {
  pause(): void;
  resume(): void;
  /** The answer is complete: the listener is called no more, and the connection is reused once the few remaining bytes have been read. */
  release(): void;
  /** Closes the connection; the listener is called no more. Safe to call twice, and after `release`. */
  abort(): void;
  /** The provider has been sent the request: all of it was written to a connection that is still open. False once that is closed. */
  isSent(): boolean;
}

export interface Upstream {
  /** Takes a place. Connections are shared between accounts: one that has none comes before one that has many. Absent: there are always enough. */
  enter?(request: Pick<UpstreamRequest, 'origin' | 'isGuarded'>, accountId: string): Place;
  /** Sends a request; without a place, it takes one and waits for it. */
  post(request: UpstreamRequest, requestId: string, listener: UpstreamListener, place?: Place): UpstreamCall;
  close(): Promise<void>;
}

const NOBODY: UpstreamListener = { onHead: () => undefined, onData: () => undefined, onEnd: () => undefined, onError: () => undefined };

/** The place when no connection is allowed: the request will be told when it is posted. */
const NO_PLACE: Place = { turn: undefined, leave: () => undefined };

/** The present socket of one client of a pool. */
interface Wire {
  socket: Socket | undefined;
  /** A request was answered on it. */
  hasServed: boolean;
}

/** What an error says when the other side has closed the connection. */
const CLOSED: ReadonlySet<string | undefined> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

class Exchange implements DispatchHandler, UpstreamCall {
  /** Socket holder of the client that serves this exchange, once there is one. */
  wire: Wire | undefined;
  private controller: DispatchController | undefined;
  /** The socket the request is written to, once writing has begun. */
  private socket: Socket | undefined;
  /** That socket has served a request before. */
  private isReused = false;
  private hasHead = false;
  private isOver = false;
  /** The connection ended before the answer did. */
  private isBroken = false;
  /** Bytes that may still follow a complete answer. */
  private restBytes = Infinity;
  /** Unpacks an answer that is compressed. */
  private gunzipped: Gunzipped | undefined;

  /** `seat`: its place among the connections. */
  constructor(
    private listener: UpstreamListener,
    private readonly seat: Seat | undefined,
  ) {}

  onRequestStart(controller: DispatchController): void {
    this.controller = controller;
    this.socket = this.wire?.socket;
    this.isReused = this.wire?.hasServed === true;
    if (this.isOver) controller.abort(new Error('aborted'));
    else this.listener.onSent?.();
  }

  onResponseStart(_controller: DispatchController, status: number, headers: ResponseHeaders): void {
    this.hasHead = true;
    if (this.isOver || status < 200) return;
    if (isGzip(headers)) this.gunzipped = this.gunzip();
    this.listener.onHead(status, headers);
  }

  onResponseData(_controller: DispatchController, chunk: Buffer): void {
    if (this.isOver) return;
    this.restBytes -= chunk.length;
    if (this.restBytes < 0) this.abort();
    else if (this.gunzipped === undefined) this.listener.onData(chunk);
    else this.gunzipped.push(chunk);
  }

  onResponseEnd(): void {
    if (this.wire !== undefined) this.wire.hasServed = true;
    this.seat?.giveBack();
    if (this.isOver) return;
    this.isOver = true;
    if (this.gunzipped === undefined) together(() => this.listener.onEnd());
    else this.gunzipped.end();
  }

  onResponseError(_controller?: DispatchController, error?: NodeJS.ErrnoException): void {
    this.seat?.giveBack();
    if (this.isOver) return;
    this.isOver = true;
    this.isBroken = true;
    // What arrived before the error is delivered first.
    if (this.gunzipped === undefined) this.listener.onError(this.lossOf(error));
    else this.gunzipped.end();
  }

  pause(): void {
    if (this.gunzipped === undefined) this.controller?.pause();
    else this.gunzipped.pause();
  }

  resume(): void {
    if (this.gunzipped === undefined) this.controller?.resume();
    else this.gunzipped.resume();
  }

  release(): void {
    this.stopGunzip();
    if (this.isOver) return;
    this.listener = NOBODY;
    this.restBytes = REST_BYTES_MAX;
    this.controller?.resume();
  }

  abort(): void {
    // The call of `onEnd` may still be pending.
    this.listener = NOBODY;
    this.stopGunzip();
    if (this.isOver) return;
    this.isOver = true;
    // Waiting requests are in our own queue and can leave it. In undici's queue, the body would be held until its turn and the connection then closed.
    if (this.seat?.state === 'waiting') this.seat.giveBack();
    this.controller?.abort(new Error('aborted'));
  }

  isSent(): boolean {
    // What the kernel has not taken yet is still buffered in the socket.
    return this.socket !== undefined && !this.socket.destroyed && this.socket.writableLength === 0;
  }

  private lossOf(error: NodeJS.ErrnoException | undefined): Loss {
    if (this.controller === undefined) return isOutOfDescriptors(error) ? 'unable' : 'connect';
    return this.isReused && !this.hasHead && CLOSED.has(error?.code) ? 'stale' : 'disconnected';
  }

  private gunzip(): Gunzipped {
    return new Gunzipped({
      onData: (bytes) => this.listener.onData(bytes),
      onEnd: () => {
        if (this.isBroken) this.listener.onError('disconnected');
        else this.listener.onEnd();
      },
      onBroken: () => {
        const { listener } = this;
        this.abort();
        listener.onError('disconnected');
      },
      pauseSource: () => this.controller?.pause(),
      resumeSource: () => this.controller?.resume(),
    });
  }

  private stopGunzip(): void {
    this.gunzipped?.stop();
    this.gunzipped = undefined;
  }
}

/** What a connection is given. */
type Exchanged = Posted & { readonly exchange: Exchange };

/** One connection of a pool. It tells the exchange which socket it uses, since undici's pool and handler wrappers hide that. */
class Connection extends Client {
  constructor(
    origin: URL,
    options: object,
    private readonly wire: Wire,
  ) {
    super(origin, options);
  }

  override dispatch(options: Exchanged, handler: DispatchHandler): boolean {
    options.exchange.wire = this.wire;
    return super.dispatch(options, handler);
  }
}

/** Opens one connection of a pool; `connect` is the pool's connector. */
function openConnection(origin: URL, options: object, keepAliveTimeout: number): Connection {
  const wire: Wire = { socket: undefined, hasServed: false };
  const { connect } = options as { readonly connect: Connector };
  const remembering: Connector = (target, callback) =>
    connect(target, (...result) => {
      wire.socket = result[1] ?? undefined;
      wire.hasServed = false;
      callback(...result);
    });
  return new Connection(origin, { ...options, connect: remembering, keepAliveTimeout }, wire);
}

/**
 * How long a pool keeps its connection number `place` (from 0) while that is idle, in milliseconds. Of free connections it uses the
 * one with the lowest number, and opens that again if it was closed, so who tries again after a stale one gets a new one.
 */
export function idleMsOf({ protocol }: URL, place: number, isGuarded: boolean): number {
  return protocol === 'https:' && place < (isGuarded ? GUARDED_KEPT_MAX : KEPT_MAX) ? TLS_IDLE_MS : IDLE_MS;
}

/** One connection serves one request at a time. */
function openPool(at: string, connections: number, connect: Connector | { readonly timeout: number }, isGuarded: boolean): Pool {
  let count = 0;
  const factory = (origin: URL, options: object): Connection => openConnection(origin, options, idleMsOf(origin, count++, isGuarded));
  return new Pool(at, { factory, connections, connect, headersTimeout: 0, bodyTimeout: 0, pipelining: 1 });
}

/** `dialer` connects to origins that accounts gave; without one, requests to those fail to connect. */
export function createUpstream(origin: string, dialer?: Dialer, connectionsMax = CONNECTIONS_MAX): Required<Upstream> {
  const open = (at: string): Line => new Line(openPool(at, connectionsMax, { timeout: CONNECT_MS }, false), connectionsMax);
  const own = open(origin);
  /** Other origins that an adapter names, a handful. */
  const others = new Map<string, Line>(); // kept: by origin.
  const otherOf = (at: string): Line => {
    let other = others.get(at);
    if (other === undefined) others.set(at, (other = open(at)));
    return other;
  };
  /** Origins that accounts gave, the one used longest ago first. */
  const guarded = new Map<string, Line>(); // kept: by origin, the latest.
  const guardedOf = (at: string): Line | undefined => {
    if (dialer === undefined) return undefined;
    const line = guarded.get(at) ?? new Line(openPool(at, GUARDED_CONNECTIONS_MAX, dialer.connect, true), GUARDED_CONNECTIONS_MAX, GUARDED_WAITING_MAX);
    guarded.delete(at);
    guarded.set(at, line);
    const oldest = guarded.size > GUARDED_POOLS_MAX ? guarded.entries().next().value : undefined;
    if (oldest !== undefined) {
      guarded.delete(oldest[0]);
      oldest[1].retire();
    }
    return line;
  };
  // An origin that an account gave uses the guarded dialer even if it equals the provider's own: the provider's pool would not check the address.
  const lineOf = ({ origin: other, isGuarded }: Pick<UpstreamRequest, 'origin' | 'isGuarded'>): Line | undefined => (isGuarded === true ? guardedOf(other ?? origin) : other === undefined || other === origin ? own : otherOf(other));
  return {
    enter: (request, accountId) => {
      const seat = lineOf(request)?.seat(accountId);
      if (seat === undefined) return NO_PLACE;
      if (seat.state === 'waiting') {
        seat.turn = new Promise((resolve) => {
          seat.onTurn = resolve;
        });
      }
      return seat;
    },
    post: (request, requestId, listener, place) => {
      const seat = place instanceof Seat ? place : lineOf(request)?.seat('');
      const exchange = new Exchange(listener, seat);
      const { path, headers, body } = request;
      if (seat === undefined) exchange.onResponseError();
      else seat.line.post({ path, method: 'POST', headers: [...headers, ...PLAIN, 'x-request-id', requestId], body, exchange }, seat);
      return exchange;
    },
    close: async () => {
      await Promise.all([own, ...others.values(), ...guarded.values()].map((line) => line.close()));
    },
  };
}
