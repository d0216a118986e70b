/** Closes an HTTP server gracefully: no client that has sent a request is cut off before its answer, within the drain. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { together } from '@signalbox/runtime/turn';
import type { Server } from 'node:http';
import { Server as TcpServer } from 'node:net';

const LOOK_EVERY_MS = 100;
/** A connection without a request is left open this long: a request may be on its way, and closing would reset it. */
export const QUIET_MS = 1_000;
/** Turns of the event loop without a new connection after which all are seen. Two, since the first may have looked for connections before this was called. */
const QUIET_TURNS = 2;

/**
 * Stops accepting once the connections that the system has already accepted are seen, and lets running answers finish. After
 * `graceMs` it calls `stop`, where given, to end the rest, and cuts what is left a second later (without `stop`: at once).
 * Idle connections are closed a second after the beginning, not at once: a request may be under way, and only its answer
 * tells the client that the connection closes.
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
    // Repeated: a connection whose answer began before the drain becomes idle later, and would stay open until the cut.
    let idle: Timer = clock.setTimer(Math.min(QUIET_MS, graceMs), function closeIdle() {
      isOver = true;
      // Timers fire before sockets are read: a request that arrived while this process stood still is read first.
      together(() => server.closeIdleConnections());
      idle = clock.setTimer(LOOK_EVERY_MS, closeIdle);
    });
    onceAllAreSeen(server, () => isOver, () => {
      // Not `http.Server.close`, which would close idle connections first.
      TcpServer.prototype.close.call(server, () => {
        cut.cancel();
        idle.cancel();
        resolve();
      });
    });
  });
}

/**
 * Calls back when no accepted connection is left to be seen, or when `isOver`. The system accepts connections, and receives
 * their requests, before this process sees them, and resets the unseen ones when the listener closes. A busy process sees
 * one connection in a turn of its loop, so a second's requests and more can be waiting.
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
