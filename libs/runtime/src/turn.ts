/**
 * Work of one turn of the event loop, done in cohorts: first the sockets are read, then all that came of it is run, one
 * request after another through the same code, and then what they leave is written, once for all. A processor that goes
 * from one request's whole story to the next one's has lost code, branches and pages by the time it needs them again
 * (J. Larus and M. Parkes, Using Cohort Scheduling to Enhance Server Performance, USENIX 2002; figures in ADR 30).
 */

type Callback = () => void;

export class Turn {
  private cohort: Callback[] = [];
  private leftovers: Callback[] = [];
  private answers: Callback[] = [];
  private isArmed = false;

  /** `schedule` is setImmediate: calls back once the sockets of this turn are read, in the order in which it was asked, with the microtasks run between. */
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
    // What came too late for its part of this turn.
    if (this.cohort.length > 0 || this.leftovers.length > 0) this.arm();
    this.run(due, (left) => {
      this.answers = [...left, ...this.answers];
      this.arm();
    });
  };

  /** `keep` gets those that are not called because one before them threw. */
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

/** A process has one event loop. */
const turn = new Turn(setImmediate);

/** Calls back in this turn, once its sockets are read, with all others that wait for that. What `callback` throws is an uncaught exception, and keeps no other from being called. */
export function together(callback: Callback): void {
  turn.together(callback);
}

/** Calls back in this turn, after the cohort and all that its promises settled. What `callback` throws is as in `together`. */
export function afterTurn(callback: Callback): void {
  turn.afterTurn(callback);
}

/** Calls back last of all in this turn: for what others wait for and nothing here does. What `callback` throws is as in `together`. */
export function atTurnEnd(callback: Callback): void {
  turn.atTurnEnd(callback);
}
