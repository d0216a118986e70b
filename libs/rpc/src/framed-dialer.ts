/** Opens a link as a connection of its own (ADR 103). */
import type { Clock, RandomBytes, Timer } from '@signalbox/kernel/clock';
import type { RpcTls } from '@signalbox/runtime/tls-files';
import { lookup as resolve } from 'node:dns';
import { connect as connectTcp, type LookupFunction, type Socket } from 'node:net';
import type { Keepalive } from './channel.js';
import { FramedConnection } from './framed-connection.js';
import { greeting, PROTOCOL, readGreeting } from './frames.js';
import type { LinkListener, LinkTransport } from './link-transport.js';
import { connectSecure } from './tls.js';

export interface FramedDialOptions {
  /** `host:port` or `[address]:port`. */
  readonly address: string;
  /** gRPC path of the area's Link. */
  readonly path: string;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly keepalive: Keepalive;
  readonly tls: RpcTls;
  /** `onClosed` is not called if `onRefused` was. */
  readonly listener: LinkListener;
  /** Called at most once, before any batch. */
  readonly onReady: (instance: string) => void;
  /** Somebody is there, but speaks another protocol, or not at all. */
  readonly onRefused: () => void;
}

/** A peer that lets itself be connected and then says nothing for so long is asked over gRPC: proxies exist that take any line and wait for HTTP/2. */
const ANSWER_MS = 2_000;
/** Turns of the event loop in which the socket is read before the peer counts as silent: this process may itself have stood still. */
const HEARING_TURNS = 2;

/** Where a read's bytes arrive; they are copied at once. The kernel is asked and the callback called in one go, so that one place is enough for all sockets. */
const landing = Buffer.allocUnsafe(64 * 1024);

/** If a name has several addresses, spreads the links over them. */
function shuffledLookup(randomBytes: RandomBytes): LookupFunction {
  return (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      const keys = randomBytes(found?.length ?? 0);
      const addresses = (found ?? []).map((address, at) => ({ address, key: keys[at] ?? 0 })).sort((a, b) => a.key - b.key).map(({ address }) => address);
      const [first] = addresses;
      if (error !== null || first === undefined || options.all === true) callback(error, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

/** The transport may be written to once `onReady` was called. */
export function dialFramed({ address, path, clock, randomBytes, keepalive, tls, listener, onReady, onRefused }: FramedDialOptions): LinkTransport {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  const port = Number(address.slice(colon + 1));
  const lookup = shuffledLookup(randomBytes);
  let connection: FramedConnection | undefined;
  let head: Buffer = Buffer.alloc(0);
  let isConnected = false;
  let isOver = false;
  let answerTimer: Timer | undefined;

  const greet = (bytes: Buffer): void => {
    head = head.length === 0 ? bytes : Buffer.concat([head, bytes]);
    const read = readGreeting(head);
    if (read === 'more') return;
    if (read === 'other') {
      fail();
      return;
    }
    const rest = head.subarray(read.length);
    answerTimer?.cancel();
    connection = new FramedConnection({ socket, clock, keepalive, listener });
    onReady(read.word);
    if (rest.length > 0) connection.hear(rest);
  };
  const hear = (bytes: Buffer): void => {
    if (connection !== undefined) connection.hear(bytes);
    else if (!isOver) greet(bytes);
  };
  /** Before the link was ready. */
  const fail = (): void => {
    if (isOver || connection !== undefined) return;
    give();
    if (isConnected) onRefused();
    else listener.onClosed();
  };
  const give = (): void => {
    isOver = true;
    answerTimer?.cancel();
    socket.destroy();
  };
  const judge = (turns: number): void => {
    if (turns > 0) setImmediate(() => judge(turns - 1));
    else fail();
  };
  const failWith = (one: Socket): Socket => one.on('error', fail).on('end', fail).on('close', fail);
  const say = (): void => void socket.write(greeting(path));
  const take = (length: number, bytes: Uint8Array): boolean => {
    hear(Buffer.from(bytes.subarray(0, length)));
    return true;
  };

  const isPlain = tls === undefined || tls === 'off';
  let socket = failWith(connectTcp({ host, port, lookup, ...(isPlain ? { onread: { buffer: landing, callback: take } } : {}) }));
  socket.once('connect', () => {
    isConnected = true;
    answerTimer = clock.setTimer(ANSWER_MS, () => judge(HEARING_TURNS), { unref: true });
    if (isPlain) {
      say();
      return;
    }
    // Only now: certificates cost more than all the rest, and most neighbours that are dialled again and again are not there.
    const secure = connectSecure({ socket, host, protocol: PROTOCOL, tls });
    socket = failWith(secure);
    secure.on('data', hear);
    secure.once('secureConnect', say);
    secure.once('error', () => {
      // Its type says Error, and it is the code; absent when the handshake failed otherwise.
      const reason: unknown = secure.authorizationError;
      if (typeof reason === 'string') tls.refused(reason, address);
    });
  });
  const close = (): void => {
    if (connection !== undefined) connection.close();
    else if (!isOver) {
      give();
      listener.onClosed();
    }
  };
  return { write: (items) => connection?.write(items) ?? true, end: () => connection?.end(), close };
}
