/** The attempts of a plan that are still to be made, in order, repeated ones included. */
import type { PlannedAttempt__Output } from '@signalbox/contracts/routing';
import { ATTEMPTS_MAX } from './admission.js';

/** For one run of a plan. At most `ATTEMPTS_MAX` attempts are taken from it, repeated ones included. */
export class AttemptQueue {
  private readonly attempts: PlannedAttempt__Output[];
  private taken = 0;
  /** By repeated attempt: the replica of its worker that was lost or refused it. */
  private replicasToAvoid: Map<PlannedAttempt__Output, object> | undefined;

  constructor(planned: readonly PlannedAttempt__Output[]) {
    this.attempts = planned.slice(0, ATTEMPTS_MAX);
  }

  /** The attempt that `take` would return; undefined when none is left. */
  peek(): PlannedAttempt__Output | undefined {
    return this.attempts[this.taken];
  }

  /** Moves on to the next attempt and returns it; undefined when none is left. */
  take(): PlannedAttempt__Output | undefined {
    const planned = this.attempts[this.taken];
    if (planned !== undefined) this.taken += 1;
    return planned;
  }

  /** The replica that an attempt must not be sent to; undefined when any will do. */
  replicaToAvoid(planned: PlannedAttempt__Output): object | undefined {
    return this.replicasToAvoid?.get(planned);
  }

  /** Repeats the present attempt, on another credential or another connection, once, as the next one. If the queue is full, the last attempt is dropped. */
  retryNext(): void {
    const present = this.attempts[this.taken - 1];
    if (present === undefined || this.attempts.indexOf(present) !== this.taken - 1) return;
    this.attempts.splice(this.taken, 0, present);
    this.attempts.splice(ATTEMPTS_MAX);
  }

  /**
   * Repeats the present attempt at another replica than `lost`, once, since a fault of ours says nothing about the endpoint.
   * It comes last, since the other attempts' workers are not known to fail. Not when the queue is full.
   */
  retryAtOtherReplica(lost: object): void {
    const present = this.attempts[this.taken - 1];
    if (present === undefined || this.replicasToAvoid?.has(present) === true) return;
    this.replicasToAvoid ??= new Map(); // kept: of one request, and dropped with it.
    this.replicasToAvoid.set(present, lost);
    if (this.attempts.length < ATTEMPTS_MAX) this.attempts.push(present);
  }

  /** Replaces the attempts still to come by what `choose` returns. */
  narrow(choose: (upcoming: readonly PlannedAttempt__Output[]) => readonly PlannedAttempt__Output[]): void {
    const upcoming = this.attempts.splice(this.taken);
    this.attempts.push(...choose(upcoming));
  }
}
