/** When a period may close: once no further event of it is to be expected (docs/billing.md). */

/** What is known of one writer. Times are milliseconds since the epoch by the ledger's own clock. */
export interface WriterReport {
  readonly writer: string;
  /** Newest sequence that the writer told of. */
  readonly lastSeq: bigint;
  /** Newest record that is to be booked, as of its last report: after it stood only beginnings of attempts. Absent = it did not say. */
  readonly owedSeq?: bigint | undefined;
  readonly ledgerSeq: bigint;
  readonly gaps: bigint;
  /** When it last reported; 0 = never. */
  readonly reportedAtMs: number;
  /** Reservation of its oldest attempt without an end, as of that report; 0 = none. */
  readonly openSinceMs: number;
  /** Declared lost by the operator, and not heard of since. */
  readonly isDeclaredLost: boolean;
}

export interface CloseInput {
  /** End of the period. */
  readonly boundaryMs: number;
  readonly nowMs: number;
  /** A reservation made just before the boundary may still be on its way to a writer for this long. */
  readonly graceMs: number;
  readonly writers: readonly WriterReport[];
  /** Events kept aside that nobody has looked at. */
  readonly deadEvents: number;
}

export interface CloseBlocker {
  readonly reason: 'not_over' | 'writer_behind' | 'writer_silent' | 'reservation_open' | 'dead_events';
  /** The writer, where one stands in the way. */
  readonly writer: string;
}

/** A writer that says nothing for this long is declared lost: what it brings later is booked to the open period. */
export const WRITER_LOST_MS = 15 * 60_000;

/** What stands in the way, empty when the period may close. */
export function closeBlockers({ boundaryMs, nowMs, graceMs, writers, deadEvents }: CloseInput): readonly CloseBlocker[] {
  const blockers: CloseBlocker[] = [];
  if (nowMs < boundaryMs + graceMs) blockers.push({ reason: 'not_over', writer: '' });
  if (deadEvents > 0) blockers.push({ reason: 'dead_events', writer: '' });
  for (const { writer, lastSeq, ledgerSeq, gaps, reportedAtMs, openSinceMs, isDeclaredLost } of writers) {
    const isLost = isDeclaredLost || nowMs - reportedAtMs >= WRITER_LOST_MS;
    if (isLost) continue;
    if (gaps > 0n || ledgerSeq < lastSeq) blockers.push({ reason: 'writer_behind', writer });
    else if (reportedAtMs < boundaryMs + graceMs) blockers.push({ reason: 'writer_silent', writer });
    else if (openSinceMs !== 0 && openSinceMs < boundaryMs) blockers.push({ reason: 'reservation_open', writer });
  }
  return blockers;
}
