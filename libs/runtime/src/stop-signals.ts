/** What SIGTERM and Ctrl-C mean to a process that drains before it ends. */
import type { Clock } from '@signalbox/kernel/clock';

/** npm hands a Ctrl-C on to whom the terminal has told already: what comes so soon is the same one. */
const SAME_MS = 1_000;

export interface StopSignalsOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  /** Ends the process in good order. Called once. */
  readonly begin: () => void;
  /** Somebody at the terminal who begins to wait. */
  readonly onWait?: () => void;
  /** Somebody at the terminal will not wait: what is to be done at once, before the process is over. */
  readonly end: () => void;
  /** Sends the signals; `process` but in tests. */
  readonly source?: Pick<NodeJS.EventEmitter, 'on'>;
}

/** SIGTERM and SIGINT begin the end, and a second Ctrl-C (SIGINT) cuts it short. SIGTERM never does: supervisors repeat themselves. */
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

/** What a shell reports of a process that Ctrl-C ended. */
export const ENDED_BY_CTRL_C = 130;
