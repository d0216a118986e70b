/** A fake clock for this library's own tests; other packages use the one in testkit, which depends on this library. */
import type { Clock } from '@signalbox/kernel/clock';

export interface HandClock extends Clock {
  advance(ms: number): void;
  pendingTimers(): number;
}

/** Advanced by the test. Each timer fires late by the next value of `lateMs`, or 0 if there are no more. */
export function handClock(lateMs: number[] = []): HandClock {
  let nowMs = 0;
  const timers = new Map<number, { readonly atMs: number; readonly fire: () => void }>();
  let made = 0;
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    setTimer: (delayMs, fire) => {
      const id = (made += 1);
      timers.set(id, { atMs: nowMs + delayMs + (lateMs.shift() ?? 0), fire });
      return { cancel: () => void timers.delete(id) };
    },
    advance: (ms) => {
      const untilMs = nowMs + ms;
      for (;;) {
        const next = [...timers].filter(([, { atMs }]) => atMs <= untilMs).sort(([, a], [, b]) => a.atMs - b.atMs)[0];
        if (next === undefined) break;
        timers.delete(next[0]);
        nowMs = next[1].atMs;
        next[1].fire();
      }
      nowMs = untilMs;
    },
    pendingTimers: () => timers.size,
  };
}
