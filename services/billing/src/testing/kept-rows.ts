/** For in-memory stores: what a store returns for booked rows. */
import type { CheckedOutcome } from '../domain/check.js';
import type { LedgerEntry } from '../domain/open-account.js';
import type { AttemptDetail, ChargeDetail, StoredRow } from '../domain/request.js';

/** Rows in order, and outcomes that no row contains, in the form that `requestsOf` reads. */
export function keptRows(entries: readonly LedgerEntry[], outcomes: readonly CheckedOutcome[]): StoredRow[] {
  const told = outcomes.map(({ requestId, accountId, fact }): StoredRow => ({
    requestId, accountId, kind: 'outcome', attempt: fact.attempt, detail: { charged: [], outcomes: [[fact.attempt, fact.outcome, fact.toldByEdge]] },
    keyId: '', amountNanoUsd: 0n, tokens: 0n, byokTokens: 0n, source: '', provider: '', cardId: '', period: '', atMs: 0n, flags: [],
  }));
  // Cost corrections do not concern a request's charge.
  const rows = entries.filter(({ appliesTo }) => appliesTo !== 'cost').map((entry): StoredRow =>
    entry.kind === 'attempt' ? { ...entry, kind: 'attempt', detail: JSON.parse(String(entry.detail)) as AttemptDetail } : { ...entry, kind: entry.kind, detail: JSON.parse(String(entry.detail)) as ChargeDetail },
  );
  return [...told, ...rows];
}
