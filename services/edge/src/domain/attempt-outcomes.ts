/** What the workers of one plan have been told of their attempts, and what they are still to be told: on it depends who ends the request's hold, and what is charged. */
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

/** An answer that is not the JSON that was asked for, kept for the case that nobody gives a better one. */
interface KeptAnswer {
  readonly number: number;
  readonly report: AttemptReport;
  readonly give: Reserve;
}

export interface SettledReserve {
  /** Of those who were told of it: true once it is written down. */
  readonly told: readonly Promise<boolean>[];
  /** Gives the answer to the client. To be called at most once. */
  readonly give: () => void;
}

/**
 * Of one run of a plan: the request's only one, or one round of several (`start`). Attempts are numbered from 1 over all
 * rounds. Nothing here rejects.
 */
export class AttemptOutcomes {
  /** One for each attempt of this run, in order. */
  readonly reports: AttemptReport[] = [];
  /**
   * Failed attempts whose workers do not know what became of them. One is told that it is superseded only when a later one
   * is surely in a journal: it gives up its say over the hold, which otherwise nobody would end.
   */
  private untold: UntoldAttempt[] = [];
  private reserve: KeptAnswer | undefined;
  /** An attempt is in a worker's journal: that worker then ends the hold when it learns the outcome. */
  private isJournaled = false;
  /** Of a request under an Idempotency-Key: what its workers were told. */
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

  /** Resolves with true when the worker has written it down, if that is needed. */
  tell(provider: string, attempt: number, outcome: Outcome): Promise<boolean> {
    const { neighbours: { workers }, turn: { requestId, keepClaim } } = this;
    // What failed after a round was answered leaves the hold to the attempt that answered.
    const telling = workers.tellOutcome(provider, requestId, attempt, outcome, { isFollowed: this.before.length > 0 && outcome === 'DISCARDED', isReserve: attempt === this.reserve?.number });
    if (keepClaim !== undefined) this.allTold.push(telling);
    return telling;
  }

  /** A better answer is being given: tells the failed attempts, and the one in reserve, that it took their place. */
  supersedeAll(): void {
    void this.tellUntold('SUPERSEDED');
  }

  /** Another attempt is in its worker's journal: tells the failed ones, but not yet the one in reserve, whose answer may still be given. */
  supersedeFailed(): void {
    void this.tellUntold('SUPERSEDED', this.reserve?.number);
  }

  /** Nothing of this run is charged, and its hold is free. Resolves once the workers have that written down, at most two seconds later. */
  discard(): Promise<boolean> {
    const { neighbours: { quota, clock }, turn: { caller, requestId }, admitted } = this;
    const tellings = this.tellUntold('DISCARDED');
    if (!this.isJournaled && this.before.length === 0) quota.release(caller.account.id, requestId, admitted.admission.draw);
    return written(this.isJournaled ? tellings : [], clock);
  }

  /**
   * Nobody gave a better answer: the one in reserve is what the client gets, or would have got, and pays. The workers alone
   * would conclude that it pays for the last attempt. Undefined when none is kept.
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
   * Of a request that edge cut off: true once each of its workers has written down that its attempt is not charged, so that,
   * whatever they conclude or book, the same request may be run again. False for a stream, whose client is told to wait, for
   * rounds, and where an answer was kept in reserve.
   */
  async isUncharged(): Promise<boolean> {
    const { turn: { keepClaim, request }, start, reserve, untold, allTold } = this;
    if (keepClaim === undefined || start !== undefined || request.stream || reserve !== undefined || untold.length > 0) return false;
    return written(allTold, this.neighbours.clock);
  }

  /** All but the attempt number `kept`. */
  private tellUntold(outcome: 'SUPERSEDED' | 'DISCARDED', kept?: number): readonly Promise<boolean>[] {
    if (this.untold.length === 0) return NOBODY_TOLD;
    const telling = this.untold.filter(({ number }) => number !== kept);
    this.untold = this.untold.filter(({ number }) => number === kept);
    return telling.map(({ provider, number }) => this.tell(provider, number, outcome));
  }
}
