/** The ledger's rows and the providers' own bills, prepared for the checks. */
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
  /** All rows of each request, in order. */
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
/** Sum of their charges. */
export const netOf = (rows: readonly LedgerEntry[]): bigint => sum(rows.filter(isCharge).map(({ amountNanoUsd }) => amountNanoUsd));

/** Plugin fees in the price card of an attempt. */
export const feeOf = ({ cardId }: LedgerEntry): bigint => BigInt(/\+plugins\.(\d+)$/.exec(cardId)?.[1] ?? 0);
