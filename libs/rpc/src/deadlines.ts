/** The deadlines of many calls on one timer: nearly every call ends long before its deadline, and a timer for each would cost more than the rest of its bookkeeping. */
import type { Clock, Timer } from '@signalbox/kernel/clock';

/** Something that ends at an instant of the monotonic clock, unless it is over before. The list owns `previousDue` and `nextDue`. */
export interface Due {
  readonly deadlineAtMs: number;
  deadlinePassed(): void;
  previousDue: Due | undefined;
  nextDue: Due | undefined;
}

/** A timer that fires this late shows that the event loop was stalled: requests may not have been sent, and answers not been read. */
const LATE_MS = 20;
/** Extra time for calls that are due after such a stall, so that our own stall is not reported as an absent neighbour. */
const GRACE_MS = 50;
/** How many times in a row the extra time is granted if the loop keeps stalling. */
const GRACES_MAX = 3;

/** An unordered linked list: it is searched only when the timer fires. */
export class Deadlines {
  private first: Due | undefined = undefined;
  private timer: Timer | undefined = undefined;
  /** When the timer fires; Infinity while there is none. */
  private firesAtMs = Infinity;
  /** When the timer should have fired: not before it was set, even if a deadline had already passed when it was watched. */
  private expectedAtMs = 0;
  private graces = 0;

  constructor(private readonly clock: Clock) {}

  /** Adds `due`, which must not be watched yet. `deadlinePassed` is never called within this call, even when the deadline has passed. */
  watch(due: Due): void {
    const { first } = this;
    due.nextDue = first;
    if (first !== undefined) first.previousDue = due;
    this.first = due;
    if (due.deadlineAtMs < this.firesAtMs) this.arm(due.deadlineAtMs);
  }

  /** Safe to call for one that is no longer watched. */
  forget(due: Due): void {
    const { previousDue, nextDue } = due;
    if (previousDue !== undefined) previousDue.nextDue = nextDue;
    else if (this.first === due) this.first = nextDue;
    if (nextDue !== undefined) nextDue.previousDue = previousDue;
    due.previousDue = undefined;
    due.nextDue = undefined;
  }

  /** Stops the timer: `deadlinePassed` is no longer called, unless something is watched later. */
  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.firesAtMs = Infinity;
  }

  private arm(atMs: number): void {
    this.timer?.cancel();
    this.firesAtMs = atMs;
    const nowMs = this.clock.monotonicMs();
    this.expectedAtMs = Math.max(nowMs, atMs);
    this.timer = this.clock.setTimer(this.expectedAtMs - nowMs, this.fire, { unref: true });
  }

  private readonly fire = (): void => {
    const nowMs = this.clock.monotonicMs();
    const isLate = nowMs - this.expectedAtMs > LATE_MS;
    this.timer = undefined;
    this.firesAtMs = Infinity;
    if (isLate && this.graces < GRACES_MAX) {
      this.graces += 1;
      this.arm(nowMs + GRACE_MS);
      return;
    }
    this.graces = 0;
    const passed: Due[] = [];
    let earliestMs = Infinity;
    for (let due = this.first; due !== undefined; due = due.nextDue) {
      if (due.deadlineAtMs <= nowMs) passed.push(due);
      else if (due.deadlineAtMs < earliestMs) earliestMs = due.deadlineAtMs;
    }
    for (const due of passed) this.forget(due);
    if (earliestMs !== Infinity) this.arm(earliestMs);
    for (const due of passed) due.deadlinePassed();
  };
}
