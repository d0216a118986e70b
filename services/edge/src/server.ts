/** The public port: one node:http server. Chat completions are served directly, all else through Express. */
import type { Express } from 'express';
import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '@signalbox/kernel/clock';
import type { IdSource } from '@signalbox/kernel/ids';
import { together } from '@signalbox/runtime/turn';
import { breakOff, BROKEN_BY_CLIENT, holdInvitation, LINGER_MS, waitingOn, watchReader } from './adapters/responses.js';
import type { ChatHandler } from './routes/chat-completions/handler.js';
import type { Gate } from './routes/gate.js';
import { apiError, renderErrorBody, type ApiError, type ApiErrorName } from './wire/errors.js';

/** Longest time for the headers, and for the whole request with its body; then 408. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than the idle timeout of common load balancers (60 s), so that they close an idle connection and not this server. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const CHAT_PATH = '/v1/chat/completions';
const HEADER_BYTES_MAX = 16 * 1_024;
/** Pipelined requests that may wait on one connection for earlier answers. node:http accepts all that arrive, and would keep their answers in memory even for a client that reads none. */
const PIPELINED_MAX = 32;
const CRLF_BYTES = 2;
const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT';
/** A client or proxy that speaks HTTP/2 without asking. */
const HTTP_2 = 'HPE_PAUSED_H2_UPGRADE';
/** What error codes of node:http's parser begin with. */
const OF_PARSER = 'HPE_';

/** Error codes of node:http's parser that have an error of their own; all others are invalid HTTP. */
const REFUSED_BY_PARSER: Readonly<Record<string, ApiErrorName>> = { HPE_HEADER_OVERFLOW: 'headers_too_large', HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large', [TIMED_OUT]: 'request_timeout' };

/** For errors of writes after the client left. */
const ignore = (): void => undefined;

export interface PublicServerOptions {
  readonly chat: ChatHandler;
  readonly site: Express;
  readonly gate: Gate;
  readonly makeId: IdSource;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  /** True while no further request is accepted. */
  readonly isFull: () => boolean;
  /** False while draining. */
  readonly isOpen: () => boolean;
  readonly isHealthy: () => boolean;
}

export function createPublicServer({ chat, site, gate, makeId, clock, isFull, isOpen, isHealthy }: PublicServerOptions): Server {
  // The latest answer on each connection: a refusal by the parser must not be written into the middle of it.
  const answering = new WeakMap<Socket, ServerResponse>();
  /** Connections that end with an answer under way, and whose parser has lost its place in what comes behind. */
  const deaf = new WeakSet<Socket>();
  /** Connections whose bytes are all known to belong to requests that were read: how many there were at the end of the latest. */
  const heardBytes = new WeakMap<Socket, number>();
  /**
   * No other protocol is spoken here. node:http drops what arrives together with the end of a request that offers one. So its
   * answer ends the connection, unless the count of bytes shows that nothing was dropped.
   */
  const declineUpgrade = (request: IncomingMessage, response: ServerResponse, bytesBefore: number | undefined): void => {
    const { socket } = request;
    const mayStay = response.shouldKeepAlive;
    response.shouldKeepAlive = false;
    deaf.add(socket);
    const ownBytes = bytesOf(request);
    if (bytesBefore === undefined || ownBytes === undefined) return;
    request.once('end', () => {
      if (socket.bytesRead !== bytesBefore + ownBytes || response.headersSent) return;
      deaf.delete(socket);
      heardBytes.set(socket, socket.bytesRead);
      response.shouldKeepAlive = mayStay && isOpen();
    });
  };
  /** False when too many requests wait already. */
  const mayWait = ({ socket }: IncomingMessage, response: ServerResponse): boolean => {
    const waiting = waitingOn(socket);
    if (waiting.size === PIPELINED_MAX) return false;
    waiting.add(response);
    response.once('socket', () => {
      waiting.delete(response);
      // Broken off while it waited. Node 24, unlike 20 and 22, leaves the connection open, and nothing on it would ever be answered.
      if (response.destroyed) socket.destroy();
      // Removes the timeout that was set for the answer before it.
      socket.setTimeout(0);
    });
    return true;
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const isBehindLast = response.socket === null && answering.get(request.socket)?.shouldKeepAlive === false;
    const bytesBefore = answering.has(request.socket) ? heardBytes.get(request.socket) : 0;
    heardBytes.delete(request.socket);
    answering.set(request.socket, response);
    response.on('error', ignore);
    // The header alone would have node:http close before the body is through.
    if (isBehindLast || !isOpen()) response.shouldKeepAlive = false;
    if (request.headers.upgrade !== undefined) declineUpgrade(request, response, bytesBefore);
    if (response.socket === null && !mayWait(request, response)) {
      gate.fail(response, makeId('call'), apiError('overloaded', { retryAfterMs: 1_000 }));
      return;
    }
    if (isBehindLast) {
      // The connection ends with the answer before it: nobody would be given its own. It is not run, and may be sent again.
      request.resume();
      return;
    }
    if (!namesOneHost(request)) {
      response.shouldKeepAlive = false;
      gate.fail(response, makeId('call'), apiError('bad_json', { message: 'A request needs one Host header.' }));
      return;
    }
    // What reads no chunks sees its body end elsewhere: nothing is read behind it (RFC 9112, section 6.1).
    if (request.httpVersion === '1.0' && request.headers['transfer-encoding'] !== undefined) response.shouldKeepAlive = false;
    const path = pathOf(request.url ?? '');
    if (request.method !== 'POST' || (path !== CHAT_PATH && path !== `${CHAT_PATH}/`)) {
      watchReader(response, gate.readers);
      site(request, response);
      return;
    }
    together(() => {
      if (isFull() || !isHealthy()) gate.fail(response, makeId('request'), apiError('overloaded', { retryAfterMs: 1_000 }));
      else chat(request, response).catch(() => response.destroy());
    });
  };
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX, headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS, noDelay: true, connectionsCheckingInterval: 2_000, requireHostHeader: false }, listener);
  // By default, header lines above about a thousand are silently dropped; the limit of bytes bounds them instead.
  server.maxHeadersCount = 0;
  // Without a listener node:http answers these events itself, or not at all; it would ask for a body before anybody had looked at the head.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    holdInvitation(response);
    listener(request, response);
  });
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    answering.set(request.socket, response);
    response.on('error', ignore);
    // It is unknown whether the body follows, so the connection cannot be reused.
    holdInvitation(response);
    response.shouldKeepAlive = false;
    gate.fail(response, makeId('call'), apiError('expectation_failed'));
  });
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    socket.on('error', ignore);
    const response = answering.get(socket);
    if (response === undefined || response.writableFinished) answerRaw(apiError('method_not_allowed', { message: 'The method CONNECT is not allowed here.' }), { socket, clock }, makeId('call'));
    else socket.destroy(BROKEN_BY_CLIENT);
  });
  const endBadly = (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code === TIMED_OUT && socket.bytesRead === 0) {
      closeUnused(socket);
      return;
    }
    const response = answering.get(socket);
    // It said that it would ask nothing more, or was not heard to the end: what comes behind is read by nobody, and the answer stands until the client leaves.
    const isUnread = error.code === 'HPE_CLOSED_CONNECTION' || (deaf.has(socket) && error.code?.startsWith(OF_PARSER) === true);
    if (isUnread && response?.writableFinished === false && (response.req.complete || response.socket === null) && !socket.readableEnded) return;
    if (error.code === TIMED_OUT && response !== undefined && isBehindAnother(response)) {
      // Earlier answers end first. An incomplete request is given up and ends the connection when its turn comes; so does incomplete data after a complete one.
      if (!response.req.complete && !response.writableEnded) breakOff(response);
      else {
        const isWhole = response.req.complete;
        // Nothing to do if the missing part has arrived meanwhile.
        response.once('close', () => answering.get(socket) === response && response.req.complete === isWhole && !socket.destroyed && endBadly(error, socket));
      }
      return;
    }
    // A complete request may have reached a provider, so its connection is closed without the refusal of another request.
    // A response without a socket waits for an earlier one on the same connection.
    if (response !== undefined && !response.writableFinished && (response.headersSent || response.req.complete || response.socket === null)) socket.destroy(error.code === TIMED_OUT ? undefined : error);
    // An error in the rest of a body whose request was answered already: there is no second answer.
    else if (response !== undefined && response.writableFinished && !response.req.complete) closeBehind(undefined, { socket, clock }, error.code === TIMED_OUT);
    else answerBadRequest(error, { socket, clock }, makeId('call'));
  };
  server.on('clientError', endBadly);
  return server;
}

/** Bytes of a whole request as clients usually write it, one space behind each colon; undefined for a body in chunks, whose sizes are not told. */
function bytesOf({ method = '', url = '', httpVersion, headers, rawHeaders }: IncomingMessage): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  const lines = [`${method} ${url} HTTP/${httpVersion}`, ''];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i] ?? ''}: ${rawHeaders[i + 1] ?? ''}`);
  return lines.reduce((sum, line) => sum + line.length + CRLF_BYTES, 0) + Number(headers['content-length'] ?? 0);
}

/**
 * Closes a connection without any request silently: its client would take a 408 for the answer to its next request. Timers
 * fire before sockets are read, so what arrived while this process was stopped is read first.
 */
function closeUnused(socket: Socket): void {
  const close = (): void => {
    if (socket.bytesRead === 0) socket.destroy();
  };
  together(() => together(close));
}

/** True if the data that timed out follows other requests on the connection, whose answers are under way. */
function isBehindAnother({ req, socket, writableFinished, destroyed }: ServerResponse): boolean {
  return !destroyed && !writableFinished && (req.complete || socket === null);
}

interface Ending {
  readonly socket: Socket;
  readonly clock: PublicServerOptions['clock'];
}

/** Errors of node:http's parser are answered in the API's form, too. */
function answerBadRequest(error: NodeJS.ErrnoException, ending: Ending, requestId: string): void {
  if (error.code === 'ECONNRESET') {
    ending.socket.destroy();
    return;
  }
  const name = REFUSED_BY_PARSER[error.code ?? ''];
  const message = error.code === HTTP_2 ? 'Only HTTP/1.1 is spoken here, not HTTP/2.' : 'The request is not valid HTTP.';
  answerRaw(name === undefined ? apiError('bad_json', { message }) : apiError(name), ending, requestId, error.code === TIMED_OUT);
}

/** Writes an error to the socket when there is no ServerResponse. `isReading`: as in `closeBehind`. */
function answerRaw(shown: ApiError, ending: Ending, requestId: string, isReading = false): void {
  const body = renderErrorBody(shown);
  const headers = { date: new Date(ending.clock.nowMs()).toUTCString(), 'content-type': 'application/json; charset=utf-8', 'content-length': String(body.length), 'x-request-id': requestId, connection: 'close', ...shown.headers };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  closeBehind(Buffer.concat([Buffer.from(`HTTP/1.1 ${shown.status} ${STATUS_CODES[shown.status] ?? 'Error'}\r\n${head.join('')}\r\n`), body]), ending, isReading);
}

/**
 * Sends `words`, if any, and closes both sides after at most `LINGER_MS`: a client that never closes its own would hold the
 * connection, its body and its place without end. `isReading`: the parser still reads. The connection is then cut right
 * after the write, since a body that becomes complete after its refusal would reach a provider and be charged.
 */
function closeBehind(words: Buffer | undefined, { socket, clock }: Ending, isReading: boolean): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.on('error', ignore);
  const linger = clock.setTimer(LINGER_MS, () => socket.destroy(), { unref: true });
  socket.once('close', () => linger.cancel());
  const cut = isReading ? (): unknown => socket.destroy() : ignore;
  if (words === undefined) socket.end(cut);
  else socket.end(words, cut);
}

/** HTTP/1.1 requires exactly one Host header; with several, a proxy may have used another one (RFC 9112, section 3.2). */
function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count === 1 || (count === 0 && httpVersion === '1.0');
}

/** The path of a request target, which may be a whole URL, as express reads it. */
function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  const target = end < 0 ? url : url.slice(0, end);
  return target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '');
}
