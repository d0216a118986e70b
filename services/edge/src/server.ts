/** The public door: one node:http server; the chat route on its own, all else through express. */
import type { Express } from 'express';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { IdSource } from '@signalbox/kernel/ids';
import type { ChatHandler } from './routes/chat-completions/handler.js';
import type { Gate } from './routes/gate.js';
import { apiError, renderErrorBody } from './wire/errors.js';

/** FAILURES: slow headers 10 s, slow body 30 s. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Above the idle cut of common load balancers (60 s), so that they, not we, close an idle connection. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const CHAT_PATH = '/v1/chat/completions';
const HEADER_BYTES_MAX = 16 * 1_024;

/** A write after the client left is no fault of ours. */
const ignore = (): void => undefined;

export interface PublicServerOptions {
  readonly chat: ChatHandler;
  readonly site: Express;
  readonly gate: Gate;
  readonly makeId: IdSource;
  readonly inFlight: () => number;
  readonly inFlightMax: number;
  /** False while draining. */
  readonly isOpen: () => boolean;
  readonly isHealthy: () => boolean;
}

export function createPublicServer({ chat, site, gate, makeId, inFlight, inFlightMax, isOpen, isHealthy }: PublicServerOptions): Server {
  // What is being answered on each connection: a refusal of the parser must not fall into the middle of an answer.
  const answering = new WeakMap<Socket, ServerResponse>();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    answering.set(request.socket, response);
    response.on('error', ignore);
    if (!isOpen()) response.setHeader('connection', 'close');
    const url = request.url ?? '';
    const query = url.indexOf('?');
    const path = query < 0 ? url : url.slice(0, query);
    if (request.method !== 'POST' || (path !== CHAT_PATH && path !== `${CHAT_PATH}/`)) {
      site(request, response);
      return;
    }
    if (inFlight() >= inFlightMax || !isHealthy()) {
      gate.fail(response, makeId('request'), apiError('overloaded', { retryAfterMs: 1_000 }));
      return;
    }
    chat(request, response).catch(() => response.destroy());
  };
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX, headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS, noDelay: true, connectionsCheckingInterval: 2_000 }, listener);
  // Header lines past about a thousand are dropped in silence by default; the byte limit bounds them instead.
  server.maxHeadersCount = 0;
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const response = answering.get(socket);
    // A whole request may have reached a provider by now: it is told of a closed connection, never of a refusal that is another's.
    if (response !== undefined && !response.writableFinished && (response.headersSent || response.req.complete)) socket.destroy();
    else answerBadRequest(error, socket, makeId('call'));
  });
  return server;
}

/** What the parser of node:http refuses gets an error of the contract's shape too. */
function answerBadRequest(error: NodeJS.ErrnoException, socket: Socket, requestId: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const shown = error.code === 'HPE_HEADER_OVERFLOW' ? apiError('headers_too_large') : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? apiError('request_timeout') : apiError('bad_json', { message: 'The request is not valid HTTP.' });
  const body = renderErrorBody(shown);
  const headers = { 'content-type': 'application/json; charset=utf-8', 'content-length': String(body.length), 'x-request-id': requestId, connection: 'close', ...shown.headers };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(Buffer.concat([Buffer.from(`HTTP/1.1 ${shown.status} Error\r\n${head.join('')}\r\n`), body]));
}
