/** Warnings that requests cause, and accounts may cause at will: each is one text, and a log that they cannot fill. */
import type { Clock } from '@signalbox/kernel/clock';
import type { Log, LogFields } from '@signalbox/runtime/log';

/** A minute. */
export const WARNING_INTERVAL_MS = 60_000;

/** Says the text at once, and then at most once a minute: of those between, the next line tells the number as `untold`. */
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
