/** Verifies the ledger during traffic: what was in the logs when the check began must be booked at its end; what was added since is under way. */
import type { WriterReport } from '@signalbox/ledger-core/close';
import type { Clock } from '@signalbox/kernel/clock';
import type { BooksStore, InvariantCheck, VerifiedPart } from './books.js';
import type { LedgerNow } from './ports.js';

/** Records of a writer that are still on their way to the ledger, which is no violation. */
export interface WriterUnderWay {
  readonly writer: string;
  readonly records: bigint;
  /** When its oldest running attempt was reserved; 0 = none runs. */
  readonly openSinceMs: number;
}

export interface Verified extends VerifiedPart {
  readonly underWay: readonly WriterUnderWay[];
}

export interface Verification {
  /** Verifies one account. */
  verify(accountId: string): Promise<readonly InvariantCheck[]>;
  /** Verifies accounts behind `after` for `forMs`, at least one; Infinity = all. If none is left, also the writers, and it waits for their records. */
  verifyFrom(after: string, forMs: number): Promise<Verified>;
}

export interface VerificationDeps {
  readonly books: Pick<BooksStore, 'verify' | 'verifyFrom' | 'writerReports'>;
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  readonly ledgerNow: LedgerNow;
}

/** 15 s: a record is booked about a second after it was written, so what is not booked by then is not merely on its way. */
const PATIENCE_MS = 15_000;
const LOOK_EVERY_MS = 200;
/** 60 s: a live writer reports every 15 s. */
const ALIVE_MS = 60_000;
const EXAMPLES_MAX = 20;

/** Nothing of its log is on its way. */
const isAtRest = ({ lastSeq, ledgerSeq, gaps }: WriterReport): boolean => ledgerSeq === lastSeq && gaps === 0n;

/** The ledger has more of a log than its writer ever reported, which is always a violation. */
const isAhead = ({ lastSeq, ledgerSeq }: WriterReport): boolean => ledgerSeq > lastSeq;

/** Everything that the writer had reported at `mark` is booked, without a gap. */
function isBooked(mark: WriterReport, now: WriterReport): boolean {
  return now.ledgerSeq >= mark.lastSeq && (mark.gaps === 0n || now.gaps === 0n || now.ledgerSeq > mark.ledgerSeq);
}

/** The writer is alive and has attempts under way. Their start records are sent with the next record that is to be booked. */
function isRunning({ gaps, openSinceMs, reportedAtMs }: WriterReport, nowMs: number): boolean {
  return gaps === 0n && openSinceMs !== 0 && nowMs - reportedAtMs < ALIVE_MS;
}

/** All records that are to be booked, by either report, are in the ledger: only start records of running attempts are missing. */
function hasOnlyBegun({ owedSeq: before }: WriterReport, now: WriterReport, nowMs: number): boolean {
  return [before, now.owedSeq].some((owedSeq) => owedSeq !== undefined && now.ledgerSeq >= owedSeq) && isRunning(now, nowMs);
}

export function createVerification({ books, clock, ledgerNow }: VerificationDeps): Verification {
  /** Waits until everything reported in `marks` is booked, or until `endMs`. Returns the writers as they are then, and those that are late. */
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
    verify: (accountId) => books.verify(accountId),
    verifyFrom: async (after, forMs) => {
      const beganMs = clock.monotonicMs();
      const endMs = beganMs + PATIENCE_MS;
      const marks = await books.writerReports();
      const { checks, accounts, next } = await books.verifyFrom(after, () => clock.monotonicMs() - beganMs >= forMs);
      if (next !== '') return { checks, accounts, next, underWay: [] };
      const { writers, late } = await settled(marks, endMs);
      const nowMs = await ledgerNow();
      // A worker of an older version does not say what is to be booked; what is missing may be start records.
      const wrong = late.filter((writer) => isAhead(writer) || writer.owedSeq !== undefined || !isRunning(writer, nowMs)).map(({ writer }) => writer);
      const underWay = writers.filter((writer) => !isAtRest(writer) && !writer.isDeclaredLost && !wrong.includes(writer.writer));
      return {
        accounts, next,
        checks: checks.map((check) => (check.invariant === 'I6' ? { ...check, violations: BigInt(wrong.length), examples: wrong.slice(0, EXAMPLES_MAX) } : check)),
        underWay: underWay.map(({ writer, lastSeq, ledgerSeq, openSinceMs }) => ({ writer, records: lastSeq - ledgerSeq, openSinceMs })),
      };
    },
  };
}
