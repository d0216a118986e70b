/** Which outcomes the workers of one plan have been told, and which not yet. They decide who ends the request's hold, and what is charged. */
import type { Outcome } from '@signalbox/contracts/worker';
import type { Admitted } from './admission.js';
import type { AttemptReport } from './answer.js';
import type { Reserve } from './dispatch.js';
import type { Neighbours } from './neighbours.js';
import { written } from './tellings.js';
import type { RoundStart } from './tool-rounds.js';
import type { Turn } from './turn.js';

const NO_REPORTS: readonly AttemptReport[] = [];
const NOBODY_TOLD: readonly Promise<boolean>[] = [];

interface UntoldAttempt {
  readonly provider: string;
  readonly number: number;
  /** It may have reached its provider. */
  readonly isTraced: boolean;
}

/** An answer that is not the JSON that was asked for, kept in case that no other attempt gives a better one. */
interface KeptAnswer {
  readonly number: number;
  readonly report: AttemptReport;
  readonly give: Reserve;
}

export interface SettledReserve {
  /** One promise for each worker told: true once it is in its log. */
  readonly told: readonly Promise<boolean>[];
  /** Gives the answer to the client. To be called at most once. */
  readonly give: () => void;
}

/**
 * For one run of a plan: the request's only one, or one round of several (`start`). Attempts are numbered from 1 over all
 * rounds. No method rejects.
 */
export class AttemptOutcomes {
  /** One for each attempt of this run, in order. */
  readonly reports: AttemptReport[] = [];
  /**
   * Failed attempts whose workers do not know the outcome. They are told "superseded" only once a later attempt is surely in
   * a journal: a superseded worker no longer ends the hold, and otherwise nobody would.
   */
  private untold: UntoldAttempt[] = [];
  private reserve: KeptAnswer | undefined;
  /** An attempt is in a worker's journal: that worker then ends the hold when it learns the outcome. */
  private isJournaled = false;
  /** For a request with an Idempotency-Key: the promises of all outcomes told. */
  private readonly allTold: Promise<boolean>[] = [];
  private readonly before: readonly AttemptReport[];

  constructor(
    private readonly neighbours: Pick<Neighbours, 'workers' | 'quota' | 'clock'>,
    private readonly turn: Turn,
    private readonly admitted: Admitted,
    private readonly start: RoundStart | undefined,
  ) {
    this.before = start?.before ?? NO_REPORTS;
  }

  /** The number of the attempt that comes next. */
  nextNumber(): number {
    return this.before.length + this.reports.length + 1;
  }

  /** The attempts of the rounds before, and of this run. */
  all(): readonly AttemptReport[] {
    return this.before.length === 0 ? this.reports : [...this.before, ...this.reports];
  }

  hasReserve(): boolean {
    return this.reserve !== undefined;
  }

  keepInReserve(number: number, report: AttemptReport, give: Reserve): void {
    this.reserve = { number, report, give };
  }

  noteFailed(number: number, report: AttemptReport, isTraced: boolean): void {
    this.reports.push(report);
    this.untold.push({ provider: report.provider, number, isTraced });
    if (isTraced) this.isJournaled = true;
  }

  /** Resolves with true when the worker has taken the outcome. `goesOn`: the attempt runs on for a while. */
  tell(provider: string, attempt: number, outcome: Outcome, goesOn = false): Promise<boolean> {
    const { neighbours: { workers }, turn: { requestId, keepClaim } } = this;
    // After an answered round, a failed attempt leaves the hold to the attempt that answered.
    const telling = workers.tellOutcome(provider, requestId, attempt, outcome, { isFollowed: this.before.length > 0 && outcome === 'DISCARDED', isReserve: attempt === this.reserve?.number, goesOn });
    if (keepClaim !== undefined) this.allTold.push(telling);
    return telling;
  }

  /** An answer is being given: tells the failed attempts, and the one in reserve, that they are superseded. */
  supersedeAll(): void {
    void this.tellUntold('SUPERSEDED');
  }

  /** A further attempt is in its worker's journal: tells the failed ones that they are superseded, but not the one in reserve, whose answer may still be given. */
  supersedeFailed(): void {
    void this.tellUntold('SUPERSEDED', this.reserve?.number);
  }

  /** Nothing of this run is charged, and its hold is released. Resolves with whether all workers have written that down, after at most two seconds. */
  discard(): Promise<boolean> {
    const { neighbours: { quota, clock }, turn: { caller, requestId }, admitted } = this;
    const tellings = this.tellUntold('DISCARDED');
    if (!this.isJournaled && this.before.length === 0) quota.release(caller.account.id, requestId, admitted.admission.draw);
    return written(this.isJournaled ? tellings : [], clock);
  }

  /**
   * No attempt gave a better answer: the one in reserve counts as delivered and is charged (without this message the workers
   * would charge the last attempt). Undefined when none is kept.
   */
  settleReserve(): SettledReserve | undefined {
    const { reserve, reports } = this;
    if (reserve === undefined) return undefined;
    const told = this.tell(reserve.report.provider, reserve.number, 'DELIVERED');
    this.untold = this.untold.filter(({ isTraced }) => isTraced);
    reports[reserve.number - 1] = reserve.report;
    return { told: [told, ...this.tellUntold('SUPERSEDED', reserve.number)], give: () => reserve.give(reports) };
  }

  /**
   * For a request that edge cut off: true once each of its workers has written down that its attempt is not charged, so that
   * the same request may safely run again. False for a stream (its client is told to wait), for rounds, and if an answer was
   * kept in reserve.
   */
  async isUncharged(): Promise<boolean> {
    const { turn: { keepClaim, request }, start, reserve, untold, allTold } = this;
    if (keepClaim === undefined || start !== undefined || request.stream || reserve !== undefined || untold.length > 0) return false;
    return written(allTold, this.neighbours.clock);
  }

  /** Tells all untold attempts except number `kept`. */
  private tellUntold(outcome: 'SUPERSEDED' | 'DISCARDED', kept?: number): readonly Promise<boolean>[] {
    if (this.untold.length === 0) return NOBODY_TOLD;
    const telling = this.untold.filter(({ number }) => number !== kept);
    this.untold = this.untold.filter(({ number }) => number === kept);
    return telling.map(({ provider, number }) => this.tell(provider, number, outcome));
  }
}
