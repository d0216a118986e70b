/** Private stores that end by themselves are begun again: whoever uses one asks again, and finds it where it was. */
import type { Log } from '@signalbox/runtime/log';
import { pause, type StoreProcess } from './child.js';

/** A store that ended by itself, and does not start again, is tried again after this. */
const AGAIN_MS = 1_000;

export interface KeepOptions {
  /** As a person calls it. */
  readonly name: string;
  readonly first: StoreProcess;
  /** Begins it anew, at the same address; resolves once it answers. */
  readonly begin: () => Promise<StoreProcess>;
  readonly log: Log;
}

/**
 * Begins the store again whenever a crash or a kill ended it, for as long as it takes.
 * One that was told to stop by somebody else stays stopped.
 */
export function keepRunning({ name, first, begin, log }: KeepOptions): Pick<StoreProcess, 'stop'> {
  let child = first;
  let isStopping = false;
  const keep = async (): Promise<void> => {
    // One that came up while it was told to stop is `stop`'s to end: nobody else would, and its end is not waited for.
    while (!isStopping && (await child.exited) !== 0 && !isStopping) {
      log.error(`${name} ended by itself; it is started again.`, { pid: child.pid });
      while (!child.isRunning() && !isStopping) {
        try {
          child = await begin();
          log.warn(`${name} answers again.`, { pid: child.pid });
        } catch (error) {
          log.error(`${name} does not start again; it is tried on.`, {}, error);
          await pause(AGAIN_MS);
        }
      }
    }
    if (!isStopping) log.error(`${name} was stopped by somebody else, and is missing until this process is started again.`, { pid: child.pid });
  };
  const keeping = keep();
  return {
    stop: async (signal, graceMs) => {
      isStopping = true;
      await child.stop(signal, graceMs);
      await keeping;
      // It may have been on its way up.
      await child.stop(signal, graceMs);
    },
  };
}
