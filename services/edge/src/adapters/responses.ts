/** What node:http leaves to the application: clients that do not read, and pipelined answers that are aborted before their turn. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A client that takes nothing of its answer for this long is cut off. */
export const STALLED_READER_MS = 60_000;

/** The error of a connection that is destroyed because its client reads nothing. It counts as closed by the client, whose requests end (`hasLeft` of an answer). */
export const BROKEN_BY_CLIENT = new Error('the client takes no answer');

/** To be called once the whole answer was written: a client that takes nothing of the rest for a minute is cut off. */
export function watchRest(response: ServerResponse): void {
  if (response.writableLength > 0) response.setTimeout(STALLED_READER_MS, () => response.destroy(BROKEN_BY_CLIENT));
}

/**
 * Writes the whole answer. If the connection closes after it, the answer is ended only when the request's body has been
 * read to its end: node:http would close at once, and a client that is still sending would get a reset instead of the
 * answer. The server's request timeout bounds the wait. On a connection that stays open node:http discards the rest itself.
 */
export function endBehindBody(response: ServerResponse, body: Buffer): void {
  const { req } = response;
  if (response.shouldKeepAlive || req.complete || req.destroyed) {
    response.end(body);
    watchRest(response);
    return;
  }
  response.write(body);
  req.once('close', () => {
    response.end();
    watchRest(response);
  });
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
