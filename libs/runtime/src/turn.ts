/**
 * Does the work of one event-loop turn in cohorts: first all sockets are read, then all requests run through the same code
 * one after the other, then their output is written together. Otherwise the processor would run each request from beginning
 * to end, and its caches and branch predictors would have lost a step's code by the time the next request needs it
 * (J. Larus and M. Parkes, Using Cohort Scheduling to Enhance Server Performance, USENIX 2002; figures in ADR 30).
 */

type Callback = () => void;

export class Turn {
  private cohort: Callback[] = [];
  private leftovers: Callback[] = [];
  private answers: Callback[] = [];
  private isArmed = false;

  /** `schedule` is setImmediate: calls back once the sockets of this turn are read, in the order of the calls, with microtasks run in between. */
  constructor(private readonly schedule: (callback: Callback) => void) {}

  together(callback: Callback): void {
    this.cohort.push(callback);
    this.arm();
  }

  afterTurn(callback: Callback): void {
    this.leftovers.push(callback);
    this.arm();
  }

  atTurnEnd(callback: Callback): void {
    this.answers.push(callback);
    this.arm();
  }

  private arm(): void {
    if (this.isArmed) return;
    this.isArmed = true;
    this.schedule(this.runCohort);
    this.schedule(this.runLeftovers);
    this.schedule(this.runAnswers);
  }

  private readonly runCohort = (): void => {
    const due = this.cohort;
    this.cohort = [];
    this.run(due, (left) => (this.cohort = [...left, ...this.cohort]));
  };

  private readonly runLeftovers = (): void => {
    const due = this.leftovers;
    this.leftovers = [];
    this.run(due, (left) => (this.leftovers = [...left, ...this.leftovers]));
  };

  private readonly runAnswers = (): void => {
    this.isArmed = false;
    const due = this.answers;
    this.answers = [];
    // Callbacks that were added after their phase of this turn.
    if (this.cohort.length > 0 || this.leftovers.length > 0) this.arm();
    this.run(due, (left) => {
      this.answers = [...left, ...this.answers];
      this.arm();
    });
  };

  /** `keep` receives the callbacks that were not called because an earlier one threw. */
  private run(due: readonly Callback[], keep: (left: readonly Callback[]) => void): void {
    let ran = 0;
    try {
      for (const callback of due) {
        ran += 1;
        callback();
      }
    } finally {
      if (ran < due.length) keep(due.slice(ran));
    }
  }
}

/** One per process, like the event loop. */
const turn = new Turn(setImmediate);

/** Calls back in this turn, once its sockets are read, together with all other such callbacks. If `callback` throws, it is an uncaught exception, and the others are still called. */
export function together(callback: Callback): void {
  turn.together(callback);
}

/** Calls back in this turn, after the cohort and everything that its promises settled. Exceptions as in `together`. */
export function afterTurn(callback: Callback): void {
  turn.afterTurn(callback);
}

/** Calls back at the very end of this turn, for output that other processes wait for and nothing here does. Exceptions as in `together`. */
export function atTurnEnd(callback: Callback): void {
  turn.atTurnEnd(callback);
}
