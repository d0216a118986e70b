/** Handling of SIGTERM and Ctrl-C in a process that drains before it ends. */
import type { Clock } from '@signalbox/kernel/clock';

/** npm forwards a Ctrl-C that the terminal has already sent to the process: a second SIGINT within this time is the same one. */
const SAME_MS = 1_000;

export interface StopSignalsOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  /** Begins the orderly shutdown. Called once. */
  readonly begin: () => void;
  /** Called when somebody at the terminal begins to wait for the shutdown. */
  readonly onWait?: () => void;
  /** Called when somebody at the terminal does not want to wait: does what must happen before the process ends now. */
  readonly end: () => void;
  /** Source of signals; `process`, except in tests. */
  readonly source?: Pick<NodeJS.EventEmitter, 'on'>;
}

/** SIGTERM and SIGINT begin the shutdown, and a second Ctrl-C (SIGINT) ends the process at once. A second SIGTERM does not, since supervisors may repeat it. */
export function onStopSignals({ clock, begin, onWait, end, source = process }: StopSignalsOptions): void {
  let begunMs: number | undefined;
  let isOver = false;
  const stop = (): void => {
    if (begunMs !== undefined) return;
    begunMs = clock.monotonicMs();
    begin();
  };
  source.on('SIGTERM', stop);
  source.on('SIGINT', () => {
    if (begunMs === undefined) {
      if (onWait !== undefined) clock.setTimer(SAME_MS, onWait, { unref: true });
      stop();
    } else if (!isOver && clock.monotonicMs() - begunMs >= SAME_MS) {
      isOver = true;
      end();
    }
  });
}

/** Exit code of a process ended by Ctrl-C, by shell convention. */
export const ENDED_BY_CTRL_C = 130;
