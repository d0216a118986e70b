/** Closes an HTTP server gracefully: no client that has sent a request is cut off before its answer, within the drain. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { Server } from 'node:http';
import { Server as TcpServer } from 'node:net';

const LOOK_EVERY_MS = 100;
/** A connection without a request is left open for so long: one may be on its way, and would be answered by a reset. */
export const QUIET_MS = 1_000;
/** Of the loop, without a new connection: the first may be one that had looked for them before we asked. */
const QUIET_TURNS = 2;

/**
 * Stops accepting once those are seen that the system has taken, lets running answers finish, after `graceMs` has those that are left ended by `stop`, where it is given,
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
    let isOver = false;
    // Again and again: one whose last answer was begun before the drain stays open for reuse, and would hold us up till the cut.
    let idle: Timer = clock.setTimer(Math.min(QUIET_MS, graceMs), function closeIdle() {
      isOver = true;
      server.closeIdleConnections();
      idle = clock.setTimer(LOOK_EVERY_MS, closeIdle);
    });
    onceAllAreSeen(server, () => isOver, () => {
      // The close of node:http itself begins with what waits for a request.
      TcpServer.prototype.close.call(server, () => {
        cut.cancel();
        idle.cancel();
        resolve();
      });
    });
  });
}

/**
 * Calls back when no connection waits for us to see it, or when `isOver`. The system takes connections, and their requests,
 * before we do, and resets at the close those that we have not: on a busy process, whose turns are long, each of which
 * sees one, they are the requests of a second and more.
 */
function onceAllAreSeen(server: Server, isOver: () => boolean, then: () => void): void {
  let quietTurns = 0;
  const seen = (): void => {
    quietTurns = 0;
  };
  server.on('connection', seen);
  setImmediate(function look() {
    quietTurns += 1;
    if (quietTurns <= QUIET_TURNS && !isOver()) {
      setImmediate(look);
      return;
    }
    server.off('connection', seen);
    then();
  });
}
