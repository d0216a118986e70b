/** What node:http leaves to the application: clients that do not read, and pipelined answers that are broken off before their turn. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** FAILURES, slow reader. */
export const STALLED_READER_MS = 60_000;

/** A connection that ends with an error was broken by its client, whose requests are given up (`hasLeft` of an answer). */
export const BROKEN_BY_CLIENT = new Error('the client takes no answer');

/** To be called once all of an answer was given: a client that leaves its end untouched for a minute is cut off. */
export function watchRest(response: ServerResponse): void {
  if (response.writableLength > 0) response.setTimeout(STALLED_READER_MS, () => response.destroy(BROKEN_BY_CLIENT));
}

/**
 * Gives the whole answer, and ends it where its connection is to close behind it only once the request's body is through:
 * node:http closes at once, and a client that still sends would meet a reset in the answer's place. The server's request
 * timeout bounds it. On a connection that stays open node:http throws the rest away by itself.
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

/** What net.Socket itself looks at to tell a slow reader from one that reads nothing: the rest of one large write counts, piece by piece. */
interface WrittenHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

/** Bytes on its connection that the client's end, or the kernel on the way there, has taken; undefined while it is not this answer's turn. */
export function takenBytes({ socket }: ServerResponse): number | undefined {
  if (socket === null) return undefined;
  const { _handle: handle } = socket as unknown as { readonly _handle: WrittenHandle | null };
  return handle === null ? socket.bytesWritten - socket.writableLength : handle.bytesWritten - handle.writeQueueSize;
}

const pipelined = new WeakMap<Socket, Set<ServerResponse>>();

/** Answers that wait on a connection for those before them, to be kept up to date by whoever serves it; those left when it closes are broken off. */
export function waitingOn(socket: Socket): Set<ServerResponse> {
  const known = pipelined.get(socket);
  if (known !== undefined) return known;
  const waiting = new Set<ServerResponse>();
  pipelined.set(socket, waiting);
  socket.once('close', () => waiting.forEach(breakOff));
  return waiting;
}

/** True while others wait on its connection for this answer to end. */
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
