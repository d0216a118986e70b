/** Whether anybody listens at an address: a bare connection, which costs a tenth of what a link does that is begun in vain. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { connect } from 'node:net';

/**
 * `address` is `host:port` or `[address]:port`. Calls back once, never within this call: true when a connection came to be, which is
 * closed again; false when none did within `patienceMs`. Not at all once it is cancelled.
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
