/** Proof of the ledger beside traffic: what was in the logs as the proof began must be booked in the end; what came since is under way. */
import type { WriterReport } from '@signalbox/ledger-core/close';
import type { Clock } from '@signalbox/kernel/clock';
import type { BooksStore, InvariantCheck } from './books.js';
import type { LedgerNow } from './ports.js';

/** Records that a writer told of and that are on their way: no violation yet. */
export interface WriterUnderWay {
  readonly writer: string;
  readonly records: bigint;
  /** Reservation of its oldest attempt that still runs; 0 = none. */
  readonly openSinceMs: number;
}

export interface Verified {
  readonly checks: readonly InvariantCheck[];
  readonly underWay: readonly WriterUnderWay[];
}

export interface Verification {
  /** Of one account, or of all when empty: then also of what the writers told, for which it waits. */
  verify(accountId: string): Promise<Verified>;
}

export interface VerificationDeps {
  readonly books: Pick<BooksStore, 'verify' | 'writerReports'>;
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  readonly ledgerNow: LedgerNow;
}

/** 15 s: a record is booked a second after it was written; what is not by then is no matter of traffic. */
const PATIENCE_MS = 15_000;
const LOOK_EVERY_MS = 200;
/** 60 s: a writer that is alive reports every 15. */
const ALIVE_MS = 60_000;
const EXAMPLES_MAX = 20;

/** Nothing of it is on its way. */
const isAtRest = ({ lastSeq, ledgerSeq, gaps }: WriterReport): boolean => ledgerSeq === lastSeq && gaps === 0n;

/** No log is further in the ledger than its writer ever was, whoever lost it. */
const isAhead = ({ lastSeq, ledgerSeq }: WriterReport): boolean => ledgerSeq > lastSeq;

/** All that the writer had told of at `mark` is booked: the ledger has it without a gap, and what was missing then has come. */
function isBooked(mark: WriterReport, now: WriterReport): boolean {
  return now.ledgerSeq >= mark.lastSeq && (mark.gaps === 0n || now.gaps === 0n || now.ledgerSeq > mark.ledgerSeq);
}

/** It lives, and has attempts under way: the beginnings of those travel with the next record that is to be booked. */
function isRunning({ gaps, openSinceMs, reportedAtMs }: WriterReport, nowMs: number): boolean {
  return gaps === 0n && openSinceMs !== 0 && nowMs - reportedAtMs < ALIVE_MS;
}

/** Nothing that is to be booked is missing, of what either told: what is, are beginnings of attempts that run. */
function hasOnlyBegun({ owedSeq: before }: WriterReport, now: WriterReport, nowMs: number): boolean {
  return [before, now.owedSeq].some((owedSeq) => owedSeq !== undefined && now.ledgerSeq >= owedSeq) && isRunning(now, nowMs);
}

export function createVerification({ books, clock, ledgerNow }: VerificationDeps): Verification {
  /** The writers as they are once all that was told by `marks` is booked, or patience has ended; and those of which it is not. */
  async function settled(marks: readonly WriterReport[], endMs: number): Promise<{ readonly writers: readonly WriterReport[]; readonly late: readonly WriterReport[] }> {
    const markOf = new Map(marks.map((mark) => [mark.writer, mark]));
    for (;;) {
      const writers = await books.writerReports();
      const nowMs = await ledgerNow();
      const late = writers.filter((now) => {
        const mark = markOf.get(now.writer);
        return isAhead(now) || (mark !== undefined && !now.isDeclaredLost && !isBooked(mark, now) && !hasOnlyBegun(mark, now, nowMs));
      });
      if (late.every(isAhead) || clock.monotonicMs() >= endMs) return { writers, late };
      await new Promise<void>((resolve) => void clock.setTimer(LOOK_EVERY_MS, resolve));
    }
  }

  return {
    verify: async (accountId) => {
      if (accountId !== '') return { checks: await books.verify(accountId), underWay: [] };
      const endMs = clock.monotonicMs() + PATIENCE_MS;
      const marks = await books.writerReports();
      const checks = await books.verify('');
      const { writers, late } = await settled(marks, endMs);
      const nowMs = await ledgerNow();
      // Of an older version, which does not say what is to be booked, it may be a beginning.
      const wrong = late.filter((writer) => isAhead(writer) || writer.owedSeq !== undefined || !isRunning(writer, nowMs)).map(({ writer }) => writer);
      const underWay = writers.filter((writer) => !isAtRest(writer) && !writer.isDeclaredLost && !wrong.includes(writer.writer));
      return {
        checks: checks.map((check) => (check.invariant === 'I6' ? { ...check, violations: BigInt(wrong.length), examples: wrong.slice(0, EXAMPLES_MAX) } : check)),
        underWay: underWay.map(({ writer, lastSeq, ledgerSeq, openSinceMs }) => ({ writer, records: lastSeq - ledgerSeq, openSinceMs })),
      };
    },
  };
}
