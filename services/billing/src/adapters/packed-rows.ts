/**
 * Two rows of the ledger in one of the table: an attempt that is charged in full as it is booked carries the hash of its
 * charge row, which repeats everything else. Most requests are of this kind, and half the table's rows are saved.
 */
import type { LedgerEntry } from '../domain/open-account.js';
import { plainChargeDetail } from '../domain/request.js';

export interface PackedRow {
  readonly row: LedgerEntry;
  /** Of the charge row at the next sequence; null when there is none in this row. */
  readonly chargeHash: string | null;
}

/** True when `next` says nothing that `row` does not say: all but kind, sequence, flags and hash. */
function isPlainCharge(row: LedgerEntry, next: LedgerEntry): boolean {
  return (
    row.kind === 'attempt' && next.kind === 'charge' && next.accountId === row.accountId && next.requestId === row.requestId && next.attempt === row.attempt && next.amountNanoUsd === row.amountNanoUsd
    && next.tokens === row.tokens && next.byokTokens === row.byokTokens && next.source === row.source && next.provider === row.provider && next.period === row.period && next.atMs === row.atMs
    && next.appliesTo === row.appliesTo && next.cardId === row.cardId && next.keyId === row.keyId && next.flags.length === 0 && next.detail === plainChargeDetail(row.attempt)
  );
}

/** Rows of the table, from rows of the ledger in their order. */
export function packRows(rows: readonly LedgerEntry[]): PackedRow[] {
  const packed: PackedRow[] = [];
  for (let i = 0; i < rows.length; i += 1) {
    const row = rows[i];
    if (row === undefined) break;
    const next = rows[i + 1];
    if (next !== undefined && isPlainCharge(row, next)) {
      packed.push({ row, chargeHash: next.hash });
      i += 1;
    } else packed.push({ row, chargeHash: null });
  }
  return packed;
}
