/** Bounds how many requests of one account have files read at once: their text arrives before anybody can know its size, and a few kilobytes of PDF may become megabytes. */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';

/** Requests of one account whose files are being read: as many as two replicas of plugins read at once. */
const PLACES_MAX = 4;
const WAITING_MAX = 20;
const WAIT_MS_MAX = 20_000;

export interface FileLine {
  /** Waits for a place and returns the function that gives it back, to be called once. Rejects with Fault `overloaded` if too many wait already, none is free within 20 s, or `signal` is aborted. */
  enter(accountId: string, signal: AbortSignal): Promise<() => void>;
}

interface Line {
  taken: number;
  /** In the order of arrival. */
  readonly waiting: Set<() => void>;
}

export function createFileLine(clock: Clock): FileLine {
  const lines = new Map<string, Line>(); // kept: of accounts whose files are being read.

  const leave = (accountId: string, line: Line): void => {
    const [next] = line.waiting;
    // The place passes on.
    if (next !== undefined) next();
    else if ((line.taken -= 1) === 0) lines.delete(accountId);
  };

  return {
    enter: (accountId, signal) => {
      const line = lines.get(accountId) ?? { taken: 0, waiting: new Set() };
      lines.set(accountId, line);
      const place = (): void => leave(accountId, line);
      if (line.taken < PLACES_MAX) {
        line.taken += 1;
        return Promise.resolve(place);
      }
      if (signal.aborted || line.waiting.size >= WAITING_MAX) return Promise.reject(new Fault('overloaded', 'too many requests of the account wait for files to be read'));
      return new Promise((resolve, reject) => {
        const end = (): void => {
          line.waiting.delete(go);
          timer.cancel();
          signal.removeEventListener('abort', giveUp);
        };
        const go = (): void => {
          end();
          resolve(place);
        };
        const giveUp = (): void => {
          end();
          reject(new Fault('overloaded', 'no place to have files read'));
        };
        const timer = clock.setTimer(WAIT_MS_MAX, giveUp, { unref: true });
        signal.addEventListener('abort', giveUp, { once: true });
        line.waiting.add(go);
      });
    },
  };
}
