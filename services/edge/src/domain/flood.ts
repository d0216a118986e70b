/** The cheap local limiter against floods of requests that never reach admission (contract, section 1). */
import type { Clock } from '@signalbox/kernel/clock';

/** Callers watched at once; the oldest is forgotten beyond it. */
const SOURCES_MAX = 20_000;

export interface FloodGuard {
  /** Counts one bad request of a source. */
  note(source: string): void;
  /** Milliseconds until the source may try again; 0 = now. */
  waitMs(source: string): number;
}

/** More than `limit` bad requests within a window of `windowMs` close the source until the window ends. */
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
