/** The deadlines of many calls under one timer: nearly every call is over long before its own, and a timer each costs more than the call's table entry. */
import type { Clock, Timer } from '@signalbox/kernel/clock';

/** Something that ends at a moment of the monotonic clock, unless it is over before. The links are the list's own. */
export interface Due {
  readonly deadlineAtMs: number;
  deadlinePassed(): void;
  previousDue: Due | undefined;
  nextDue: Due | undefined;
}

/** An unordered list: nothing is looked for until the timer fires, which is at most once for each deadline that was the earliest. */
export class Deadlines {
  private first: Due | undefined = undefined;
  private timer: Timer | undefined = undefined;
  /** When the timer fires; Infinity while there is none. */
  private firesAtMs = Infinity;

  constructor(private readonly clock: Clock) {}

  /** `due` is watched by nobody yet. Its deadline may have passed: it is told of it later, never within this call. */
  watch(due: Due): void {
    const { first } = this;
    due.nextDue = first;
    if (first !== undefined) first.previousDue = due;
    this.first = due;
    if (due.deadlineAtMs < this.firesAtMs) this.arm(due.deadlineAtMs);
  }

  /** Safe to call for one that is not watched any more. */
  forget(due: Due): void {
    const { previousDue, nextDue } = due;
    if (previousDue !== undefined) previousDue.nextDue = nextDue;
    else if (this.first === due) this.first = nextDue;
    if (nextDue !== undefined) nextDue.previousDue = previousDue;
    due.previousDue = undefined;
    due.nextDue = undefined;
  }

  /** Nobody is told of anything any more, unless it is watched later. */
  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.firesAtMs = Infinity;
  }

  private arm(atMs: number): void {
    this.timer?.cancel();
    this.firesAtMs = atMs;
    this.timer = this.clock.setTimer(Math.max(0, atMs - this.clock.monotonicMs()), this.fire, { unref: true });
  }

  private readonly fire = (): void => {
    this.timer = undefined;
    this.firesAtMs = Infinity;
    const nowMs = this.clock.monotonicMs();
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
