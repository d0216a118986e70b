/** Rate-limited warnings, for what requests cause or an absent store repeats: neither may fill the log. */
import type { Clock } from '@signalbox/kernel/clock';
import type { Log, LogFields } from './log.js';

/** One minute. */
export const WARNING_INTERVAL_MS = 60_000;

/** Logs the text at once and then at most once a minute. The next line gives the number of suppressed ones as `untold`. */
export function rareWarning(log: Pick<Log, 'warn'>, clock: Pick<Clock, 'monotonicMs'>, text: string): (fields: LogFields) => void {
  let nextMs = -Infinity;
  let untold = 0;
  return (fields) => {
    const nowMs = clock.monotonicMs();
    if (nowMs < nextMs) {
      untold += 1;
      return;
    }
    log.warn(text, untold === 0 ? fields : { ...fields, untold });
    nextMs = nowMs + WARNING_INTERVAL_MS;
    untold = 0;
  };
}
