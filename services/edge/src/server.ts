/** The public door: one node:http server; the chat route on its own, all else through express. */
import type { Express } from 'express';
import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '@signalbox/kernel/clock';
import type { IdSource } from '@signalbox/kernel/ids';
import { together } from '@signalbox/runtime/turn';
import { breakOff, BROKEN_BY_CLIENT, STALLED_READER_MS, waitingOn } from './adapters/responses.js';
import type { ChatHandler } from './routes/chat-completions/handler.js';
import type { Gate } from './routes/gate.js';
import { apiError, renderErrorBody, type ApiError, type ApiErrorName } from './wire/errors.js';

/** FAILURES: slow headers 10 s, slow body 30 s. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Above the idle cut of common load balancers (60 s), so that they, not we, close an idle connection. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const CHAT_PATH = '/v1/chat/completions';
const HEADER_BYTES_MAX = 16 * 1_024;
/** A client whose connection ends with a refusal is given so long to read it and to close its side. */
const LINGER_MS = 1_000;
/** Requests that wait on one connection for the answer before theirs: node:http takes all that one read brings, and keeps their answers for a client that may read none. */
const PIPELINED_MAX = 32;
const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT';

/** Codes of node:http's parser that mean more than that a request is not one. */
const REFUSED_BY_PARSER: Readonly<Record<string, ApiErrorName>> = { HPE_HEADER_OVERFLOW: 'headers_too_large', HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large', [TIMED_OUT]: 'request_timeout' };

/** A write after the client left is no fault of ours. */
const ignore = (): void => undefined;

export interface PublicServerOptions {
  readonly chat: ChatHandler;
  readonly site: Express;
  readonly gate: Gate;
  readonly makeId: IdSource;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  /** Nothing more is let in. */
  readonly isFull: () => boolean;
  /** False while draining. */
  readonly isOpen: () => boolean;
  readonly isHealthy: () => boolean;
}

export function createPublicServer({ chat, site, gate, makeId, clock, isFull, isOpen, isHealthy }: PublicServerOptions): Server {
  // The newest that is to be answered on each connection: a refusal of the parser must not fall into the middle of an answer.
  const answering = new WeakMap<Socket, ServerResponse>();
  /** False when too many wait already. */
  const mayWait = ({ socket }: IncomingMessage, response: ServerResponse): boolean => {
    const waiting = waitingOn(socket);
    if (waiting.size === PIPELINED_MAX) return false;
    waiting.add(response);
    response.once('socket', () => {
      waiting.delete(response);
      // Broken off while it waited. Node 24, unlike 20 and 22, leaves the connection open, and nothing on it would ever be answered.
      if (response.destroyed) socket.destroy();
      // What the answer before it was given.
      socket.setTimeout(0);
    });
    return true;
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    answering.set(request.socket, response);
    response.on('error', ignore);
    if (!isOpen()) response.setHeader('connection', 'close');
    if (response.socket === null && !mayWait(request, response)) {
      gate.fail(response, makeId('call'), apiError('overloaded', { retryAfterMs: 1_000 }));
      return;
    }
    if (!namesOneHost(request)) {
      response.setHeader('connection', 'close');
      gate.fail(response, makeId('call'), apiError('bad_json', { message: 'A request needs one Host header.' }));
      return;
    }
    const path = pathOf(request.url ?? '');
    if (request.method !== 'POST' || (path !== CHAT_PATH && path !== `${CHAT_PATH}/`)) {
      response.setTimeout(STALLED_READER_MS, () => response.destroy(BROKEN_BY_CLIENT));
      site(request, response);
      return;
    }
    together(() => {
      if (isFull() || !isHealthy()) gate.fail(response, makeId('request'), apiError('overloaded', { retryAfterMs: 1_000 }));
      else chat(request, response).catch(() => response.destroy());
    });
  };
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX, headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS, noDelay: true, connectionsCheckingInterval: 2_000, requireHostHeader: false }, listener);
  // Header lines past about a thousand are dropped in silence by default; the byte limit bounds them instead.
  server.maxHeadersCount = 0;
  // Without a listener node:http answers these itself, or not at all.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    answering.set(request.socket, response);
    response.on('error', ignore);
    // Its body may come or not.
    response.setHeader('connection', 'close');
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
    if (error.code === TIMED_OUT && response !== undefined && isBehindAnother(response)) {
      // The answers before it end first. It is given up, and ends the connection when its turn comes; so does a refusal of the half of a head.
      if (!response.req.complete && !response.writableEnded) breakOff(response);
      else {
        const isWhole = response.req.complete;
        // Unless what was missing came meanwhile.
        response.once('close', () => answering.get(socket) === response && response.req.complete === isWhole && !socket.destroyed && endBadly(error, socket));
      }
      return;
    }
    // A whole request may have reached a provider by now: it is told of a closed connection, never of a refusal that is another's.
    // One without a socket waits for that before it on the same connection.
    if (response !== undefined && !response.writableFinished && (response.headersSent || response.req.complete || response.socket === null)) socket.destroy(error.code === TIMED_OUT ? undefined : error);
    // What was wrong with the rest of a body whose request has its answer: it gets no second one.
    else if (response !== undefined && response.writableFinished && !response.req.complete) closeBehind(undefined, { socket, clock }, error.code === TIMED_OUT);
    else answerBadRequest(error, { socket, clock }, makeId('call'));
  };
  server.on('clientError', endBadly);
  return server;
}

/**
 * A connection on which nothing was asked is closed without a word: its client would take a 408 for the answer to what it
 * asks next. Timers fire before sockets are read, so what had come to a process that stood still is read first.
 */
function closeUnused(socket: Socket): void {
  const close = (): void => {
    if (socket.bytesRead === 0) socket.destroy();
  };
  together(() => together(close));
}

/** What came too late on the connection of `newest` follows other requests, whose answers are under way. */
function isBehindAnother({ req, socket, writableFinished, destroyed }: ServerResponse): boolean {
  return !destroyed && !writableFinished && (req.complete || socket === null);
}

interface Ending {
  readonly socket: Socket;
  readonly clock: PublicServerOptions['clock'];
}

/** What the parser of node:http refuses gets an error of the contract's shape too. */
function answerBadRequest(error: NodeJS.ErrnoException, ending: Ending, requestId: string): void {
  if (error.code === 'ECONNRESET') {
    ending.socket.destroy();
    return;
  }
  const name = REFUSED_BY_PARSER[error.code ?? ''];
  answerRaw(name === undefined ? apiError('bad_json', { message: 'The request is not valid HTTP.' }) : apiError(name), ending, requestId, error.code === TIMED_OUT);
}

/** Where there is no ServerResponse to answer with. `isReading` as of `closeBehind`. */
function answerRaw(shown: ApiError, ending: Ending, requestId: string, isReading = false): void {
  const body = renderErrorBody(shown);
  const headers = { date: new Date(ending.clock.nowMs()).toUTCString(), 'content-type': 'application/json; charset=utf-8', 'content-length': String(body.length), 'x-request-id': requestId, connection: 'close', ...shown.headers };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  closeBehind(Buffer.concat([Buffer.from(`HTTP/1.1 ${shown.status} ${STATUS_CODES[shown.status] ?? 'Error'}\r\n${head.join('')}\r\n`), body]), ending, isReading);
}

/**
 * Sends the last words and closes both sides, soon and whatever the client does: one that never closes its own would hold
 * the connection, its body and its place for ever. `isReading`: the parser goes on. It is cut off at once then, since a
 * body that ends after its refusal would reach a provider, and be charged.
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

/** HTTP/1.1 wants one Host header; of several, those before us may have believed another (RFC 9112, section 3.2). */
function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count === 1 || (count === 0 && httpVersion === '1.0');
}

/** The path of a request target, which may be a whole URL. */
function pathOf(url: string): string {
  const query = url.indexOf('?');
  const target = query < 0 ? url : url.slice(0, query);
  return target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/]*/i, '');
}
