/** Time that moves by hand. */
import type { Clock, EpochMs, Timer } from '@signalbox/kernel/clock';

export interface FakeClock extends Clock {
  /** Moves time, firing due timers in order of their moment (ties: in order of setting), each at its own moment. */
  advance(ms: number): void;
  /** As `advance`, and lets promises settle before, between and after the timers. */
  advanceAsync(ms: number): Promise<void>;
  /** Moves time as an event loop that is held up does: timers that fall due meanwhile fire behind it, late. */
  stall(ms: number): void;
  /** Lets promises settle without moving time. */
  settle(): Promise<void>;
  /** Timers neither fired nor cancelled. */
  pendingTimers(): number;
  /** Jumps the wall clock alone, as a clock correction does. */
  jumpWall(ms: number): void;
}

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly fire: () => void;
}

/** Starts at `startMs` (default 2026-01-01T00:00:00Z); the monotonic clock starts at 0. */
export function createFakeClock(startMs: EpochMs = 1_767_225_600_000): FakeClock {
  let elapsed = 0;
  let wallShift = startMs;
  let order = 0;
  const timers = new Set<Entry>();

  const nextDue = (until: number): Entry | undefined => {
    let next: Entry | undefined;
    for (const entry of timers) {
      if (entry.at <= until && (next === undefined || entry.at < next.at || (entry.at === next.at && entry.order < next.order))) next = entry;
    }
    return next;
  };
  const fire = (entry: Entry): void => {
    timers.delete(entry);
    elapsed = Math.max(elapsed, entry.at);
    entry.fire();
  };
  // Real I/O aside, a few turns of the event loop settle any chain of promises.
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  };

  return {
    nowMs: () => Math.floor(wallShift + elapsed),
    monotonicMs: () => elapsed,
    setTimer: (delayMs, callback): Timer => {
      const entry: Entry = { at: elapsed + Math.max(0, delayMs), order: order++, fire: callback };
      timers.add(entry);
      return { cancel: () => void timers.delete(entry) };
    },
    advance: (ms) => {
      const until = elapsed + ms;
      for (let entry = nextDue(until); entry !== undefined; entry = nextDue(until)) fire(entry);
      elapsed = until;
    },
    stall: (ms) => {
      elapsed += ms;
      for (let entry = nextDue(elapsed); entry !== undefined; entry = nextDue(elapsed)) fire(entry);
    },
    advanceAsync: async (ms) => {
      const until = elapsed + ms;
      await settle();
      for (let entry = nextDue(until); entry !== undefined; entry = nextDue(until)) {
        fire(entry);
        await settle();
      }
      elapsed = until;
      await settle();
    },
    settle,
    pendingTimers: () => timers.size,
    jumpWall: (ms) => {
      wallShift += ms;
    },
  };
}
