/** The end of an HTTP server: nobody who has sent a request is cut off for it. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { Server } from 'node:http';
import { Server as TcpServer } from 'node:net';

const LOOK_EVERY_MS = 100;
/** A connection without a request is left open for so long: one may be on its way, and would be answered by a reset. */
export const QUIET_MS = 1_000;

/**
 * Stops accepting, lets running answers finish, after `graceMs` has those that are left ended by `stop`, where it is given,
 * and a second later cuts what is left then. Connections that wait for their
 * next request are closed a second after the beginning, not at once: on one in use that request may be under way, and
 * its answer is where a client learns not to send another.
 */
export function closeServer(server: Server, graceMs: number, clock: Pick<Clock, 'setTimer'>, stop?: () => void): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) {
      resolve();
      return;
    }
    let cut = clock.setTimer(graceMs, () => {
      if (stop === undefined) {
        server.closeAllConnections();
        return;
      }
      stop();
      cut = clock.setTimer(QUIET_MS, () => server.closeAllConnections());
    });
    // Again and again: one whose last answer was begun before the drain stays open for reuse, and would hold us up till the cut.
    let idle: Timer = clock.setTimer(Math.min(QUIET_MS, graceMs), function closeIdle() {
      server.closeIdleConnections();
      idle = clock.setTimer(LOOK_EVERY_MS, closeIdle);
    });
    // The close of node:http itself begins with what waits for a request.
    TcpServer.prototype.close.call(server, () => {
      cut.cancel();
      idle.cancel();
      resolve();
    });
  });
}
