/** The ledger's rows beside the providers' own bills, as the checks look at them. */
import type { LedgerEntry } from '@signalbox/billing/proof';
import type { BillLine } from './provider.js';
import type { World } from './world.js';

export const sum = (amounts: Iterable<bigint>): bigint => {
  let total = 0n;
  for (const amount of amounts) total += amount;
  return total;
};

export const isCharge = ({ kind }: LedgerEntry): boolean => kind !== 'attempt';

export interface Books {
  readonly world: World;
  readonly rows: readonly LedgerEntry[];
  /** By request: all its rows, in order. */
  readonly byRequest: ReadonlyMap<string, readonly LedgerEntry[]>;
  readonly bill: ReadonlyMap<string, BillLine>;
}

export function booksOf(world: World): Books {
  const rows = world.callers.flatMap(({ account }) => world.ledger.rowsOf(account.id));
  const byRequest = new Map<string, LedgerEntry[]>();
  for (const row of rows) {
    const known = byRequest.get(row.requestId);
    if (known === undefined) byRequest.set(row.requestId, [row]);
    else known.push(row);
  }
  return { world, rows, byRequest, bill: new Map(world.workers.flatMap(({ provider }) => [...provider.bill])) };
}

export const rowsOf = ({ byRequest }: Books, requestId: string): readonly LedgerEntry[] => byRequest.get(requestId) ?? [];
/** What they charge together. */
export const netOf = (rows: readonly LedgerEntry[]): bigint => sum(rows.filter(isCharge).map(({ amountNanoUsd }) => amountNanoUsd));

/** Fees of plugins that the card of an attempt holds. */
export const feeOf = ({ cardId }: LedgerEntry): bigint => BigInt(/\+plugins\.(\d+)$/.exec(cardId)?.[1] ?? 0);
