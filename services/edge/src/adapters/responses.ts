/** What node:http leaves to the application: bodies that wait to be invited, clients that do not read, and pipelined answers that are aborted before their turn. */
import type { Clock } from '@signalbox/kernel/clock';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { READER_LOOK_MS, ReaderPace, STALLED_READER_MS, type Unread } from '../domain/reader-pace.js';

/** The error of a connection that is destroyed because its client reads nothing. It counts as closed by the client, whose requests end (`hasLeft` of an answer). */
export const BROKEN_BY_CLIENT = new Error('the client does not read its answer');

export interface ReaderWatch {
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  /** Called before a client is cut off that left part of its answer unread. */
  readonly onUnread?: ((unread: Unread) => void) | undefined;
}

/** To be called once the whole answer was written: a client that takes nothing of the rest for a minute, or too little in the long run, is cut off. */
export function watchRest(response: ServerResponse, watch: ReaderWatch): void {
  if (response.writableLength > 0) watchReader(response, watch);
}

/** The same from the start of an answer on, which may also be written in parts; it is cut off, too, if it makes no progress for a minute for another reason. */
export function watchReader(response: ServerResponse, { clock, onUnread }: ReaderWatch): void {
  const giveUp = (unread: Unread): void => {
    if (response.destroyed) return;
    if (response.writableLength > 0) onUnread?.(unread);
    response.destroy(BROKEN_BY_CLIENT);
  };
  // Also where nothing waits, since nothing is written.
  response.setTimeout(STALLED_READER_MS, () => giveUp('stalled'));
  let pace: ReaderPace | undefined;
  const look = (): void => {
    // Node 20 closes no answer that still waits for those before it when their connection closes.
    if (response.req.socket.destroyed) return;
    const { writableLength } = response;
    if (writableLength > 0) {
      const nowMs = clock.monotonicMs();
      if (pace === undefined) {
        pace = new ReaderPace(writableLength);
        pace.begin(takenBytes(response), nowMs);
      } else {
        const unread = pace.look(takenBytes(response), nowMs);
        if (unread !== undefined) giveUp(unread);
      }
    } else pace = undefined;
    if (!response.destroyed && !response.writableFinished) timer = clock.setTimer(READER_LOOK_MS, look, { unref: true });
  };
  let timer = clock.setTimer(READER_LOOK_MS, look, { unref: true });
  response.once('close', () => timer.cancel());
}

/** A client whose connection ends with a refusal is given so long to read it and to close its side, or to send a body that nobody invited. */
export const LINGER_MS = 1_000;

/** Requests whose clients wait for a word before they send the body, with what answers them. */
const uninvited = new WeakMap<IncomingMessage, ServerResponse>();

/** Of a request with an expectation: nothing is said to its client before `inviteBody`. Refused first, it has its connection closed, since its body may come or not. */
export function holdInvitation(response: ServerResponse): void {
  uninvited.set(response.req, response);
}

/** To be called once everything that needs no body has passed: a client that waits to be asked for the body is asked, once. */
export function inviteBody(request: IncomingMessage): void {
  if (request.headers.expect === undefined) return;
  const response = uninvited.get(request);
  uninvited.delete(request);
  if (response === undefined) return;
  if (response.socket !== null) {
    response.writeContinue();
    return;
  }
  // node:http would put it behind the head of an answer that waits for those before it, and close behind one without it.
  (response as unknown as AskedResponse)._sent100 = true;
  response.once('socket', () => response.headersSent || response.writeContinue());
}

/** What node:http itself looks at to tell whether a body was asked for. */
interface AskedResponse {
  _sent100: boolean;
}

/**
 * Writes the whole answer. If the connection closes after it, the answer is ended only when the request's body has been
 * read to its end: node:http would close at once, and a client that is still sending would get a reset instead of the
 * answer. The server's request timeout bounds the wait; a body that
 * was not invited and does not begin is waited for one second. On a connection that stays open node:http discards the rest itself.
 */
export function endBehindBody(response: ServerResponse, body: Buffer, watch: ReaderWatch): void {
  const { req } = response;
  if (response.shouldKeepAlive || req.complete || req.destroyed) {
    response.end(body);
    watchRest(response, watch);
    return;
  }
  response.write(body);
  const end = (): void => {
    if (response.writableEnded) return;
    response.end();
    watchRest(response, watch);
  };
  req.once('close', end);
  if (uninvited.has(req)) {
    const linger = watch.clock.setTimer(LINGER_MS, end, { unref: true });
    for (const heard of ['data', 'close']) req.once(heard, () => linger.cancel());
  }
  req.resume();
}

/** The figures by which net.Socket tells a slow reader from one that reads nothing. They also advance within one large write. */
interface WrittenHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

/** Bytes of its connection that the kernel has taken to send; undefined while it is not this answer's turn. */
export function takenBytes({ socket }: ServerResponse): number | undefined {
  if (socket === null) return undefined;
  const { _handle: handle } = socket as unknown as { readonly _handle: WrittenHandle | null };
  return handle === null ? socket.bytesWritten - socket.writableLength : handle.bytesWritten - handle.writeQueueSize;
}

const pipelined = new WeakMap<Socket, Set<ServerResponse>>();

/** Pipelined answers that wait on a connection for those before them. The server adds and removes them; those left when the connection closes are aborted. */
export function waitingOn(socket: Socket): Set<ServerResponse> {
  const known = pipelined.get(socket);
  if (known !== undefined) return known;
  const waiting = new Set<ServerResponse>();
  pipelined.set(socket, waiting);
  socket.once('close', () => waiting.forEach(breakOff));
  return waiting;
}

/** True while other answers wait on its connection for this one to end. */
export function othersWait({ req: { socket } }: ServerResponse): boolean {
  return (pipelined.get(socket)?.size ?? 0) > 0;
}

/**
 * Breaks an answer off. Node 20 emits no `close` for one that waits on its connection for that before it, neither now nor when
 * the connection closes; Node 24 does.
 */
export function breakOff(response: ServerResponse): void {
  const isWaiting = response.socket === null && !response.destroyed;
  let isClosed = false;
  if (isWaiting) {
    response.once('close', () => (isClosed = true));
    process.nextTick(() => process.nextTick(() => !isClosed && response.emit('close')));
  }
  response.destroy();
}
