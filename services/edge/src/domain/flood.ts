/** Limits, in memory of this process, how often one source may send bad requests, which never reach admission and its rates. */
import type { Clock } from '@signalbox/kernel/clock';

/** Sources counted at once; beyond it the oldest is forgotten. */
const SOURCES_MAX = 20_000;

export interface FloodGuard {
  /** Counts one bad request of a source. */
  note(source: string): void;
  /** Milliseconds until the source may try again; 0 = now. */
  waitMs(source: string): number;
}

/** After more than `limit` bad requests within a window of `windowMs`, the source must wait until the window ends. */
export function createFloodGuard(clock: Clock, limit: number, windowMs: number): FloodGuard {
  const windows = new Map<string, { startMs: number; count: number }>(); // kept: of bad requests alone.
  return {
    note: (source) => {
      const nowMs = clock.monotonicMs();
      const window = windows.get(source);
      if (window !== undefined && nowMs - window.startMs < windowMs) {
        window.count += 1;
        return;
      }
      windows.delete(source);
      if (windows.size >= SOURCES_MAX) {
        const [oldest] = windows.keys();
        if (oldest !== undefined) windows.delete(oldest);
      }
      windows.set(source, { startMs: nowMs, count: 1 });
    },
    waitMs: (source) => {
      const window = windows.get(source);
      if (window === undefined || window.count <= limit) return 0;
      return Math.max(0, window.startMs + windowMs - clock.monotonicMs());
    },
  };
}
