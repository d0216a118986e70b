/** The attempts of a plan that are still to be made, in order, with those that are made a second time. */
import type { PlannedAttempt__Output } from '@signalbox/contracts/routing';
import { ATTEMPTS_MAX } from './admission.js';

/** Of one run of a plan. At most `ATTEMPTS_MAX` attempts are taken from it, second ones included. */
export class AttemptQueue {
  private readonly attempts: PlannedAttempt__Output[];
  private taken = 0;
  /** By attempt that is made again: the replica of its worker that was lost with it, or refused it. */
  private replicasToAvoid: Map<PlannedAttempt__Output, object> | undefined;

  constructor(planned: readonly PlannedAttempt__Output[]) {
    this.attempts = planned.slice(0, ATTEMPTS_MAX);
  }

  /** The attempt that `take` would answer; undefined when none is left. */
  peek(): PlannedAttempt__Output | undefined {
    return this.attempts[this.taken];
  }

  /** The next attempt, which is the present one from now on; undefined when none is left. */
  take(): PlannedAttempt__Output | undefined {
    const planned = this.attempts[this.taken];
    if (planned !== undefined) this.taken += 1;
    return planned;
  }

  /** The replica that an attempt must not be sent to; undefined when any will do. */
  replicaToAvoid(planned: PlannedAttempt__Output): object | undefined {
    return this.replicasToAvoid?.get(planned);
  }

  /** Makes the present attempt again, on another credential: once, as the very next. Of a full queue the last gives way. */
  retryOnOtherCredential(): void {
    const present = this.attempts[this.taken - 1];
    if (present === undefined || this.attempts.indexOf(present) !== this.taken - 1) return;
    this.attempts.splice(this.taken, 0, present);
    this.attempts.splice(ATTEMPTS_MAX);
  }

  /**
   * Makes the present attempt again, at another replica than `lost`: once, since a fault of ours says nothing of the
   * endpoint; and last, since the workers of the others are not known to fail. Not when the queue is full.
   */
  retryAtOtherReplica(lost: object): void {
    const present = this.attempts[this.taken - 1];
    if (present === undefined || this.replicasToAvoid?.has(present) === true) return;
    this.replicasToAvoid ??= new Map(); // kept: of one request, and dropped with it.
    this.replicasToAvoid.set(present, lost);
    if (this.attempts.length < ATTEMPTS_MAX) this.attempts.push(present);
  }

  /** Leaves those of the attempts to come that `choose` answers. */
  narrow(choose: (upcoming: readonly PlannedAttempt__Output[]) => readonly PlannedAttempt__Output[]): void {
    const upcoming = this.attempts.splice(this.taken);
    this.attempts.push(...choose(upcoming));
  }
}
