/** Checks with a bare TCP connection whether anything listens at an address: a tenth of the cost of a failed attempt to open a link. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { connect } from 'node:net';

/**
 * `address` is `host:port` or `[address]:port`. Calls `onAnswer` once, never within this call: true if a connection was made (it is
 * closed at once), false if it failed or took longer than `patienceMs`. The timer returned cancels this; `onAnswer` is then not called.
 */
export function knock(address: string, patienceMs: number, clock: Clock, onAnswer: (isThere: boolean) => void): Timer {
  const colon = address.lastIndexOf(':');
  const socket = connect({ host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) });
  socket.unref();
  let isOver = false;
  const cancel = (): void => {
    isOver = true;
    timer.cancel();
    socket.destroy();
  };
  const end = (isThere: boolean): void => {
    if (isOver) return;
    cancel();
    onAnswer(isThere);
  };
  const timer = clock.setTimer(patienceMs, () => end(false), { unref: true });
  socket.once('connect', () => end(true));
  socket.on('error', () => end(false));
  return { cancel };
}
