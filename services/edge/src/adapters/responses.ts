/** What node:http leaves to whoever answers: clients that take nothing, and answers that are broken off before their turn. */
import type { ServerResponse } from 'node:http';

/** FAILURES, slow reader. */
export const STALLED_READER_MS = 60_000;

/** A connection that ends with an error was broken by its client, whose requests are given up (`hasLeft` of an answer). */
export const BROKEN_BY_CLIENT = new Error('the client takes no answer');

/** To be called once all of an answer was given: a client that leaves its end untouched for a minute is cut off. */
export function watchRest(response: ServerResponse): void {
  if (response.writableLength > 0) response.setTimeout(STALLED_READER_MS, () => response.destroy(BROKEN_BY_CLIENT));
}

/** Breaks an answer off. One that waits on its connection for that before it hears no `close` of node:http's, neither now nor when the connection closes. */
export function breakOff(response: ServerResponse): void {
  const isWaiting = response.socket === null && !response.destroyed;
  response.destroy();
  if (isWaiting) response.emit('close');
}
