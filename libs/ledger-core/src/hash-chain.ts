/** The chain that makes a changed, missing or moved ledger row visible: each row's hash covers the row and the hash before it. */
import { hash } from 'node:crypto';

/** What stands before an account's first row. */
export const CHAIN_START = '0'.repeat(64);

/** The fields that the hash covers, in this order for ever; a new field may only be appended when it is not empty. */
export interface ChainedRow {
  readonly accountId: string;
  readonly seq: bigint;
  readonly kind: string;
  readonly requestId: string;
  readonly attempt: number;
  readonly amountNanoUsd: bigint;
  readonly tokens: bigint;
  readonly byokTokens: bigint;
  readonly source: string;
  readonly flags: readonly string[];
  readonly provider: string;
  readonly period: string;
  readonly atMs: bigint;
  readonly appliesTo: string;
  readonly cardId: string;
}

/** One text for one row: a JSON array without blanks, whole numbers as decimal text. */
export function canonicalText(row: ChainedRow): string {
  return JSON.stringify([
    row.accountId, String(row.seq), row.kind, row.requestId, row.attempt, String(row.amountNanoUsd), String(row.tokens), String(row.byokTokens),
    row.source, row.flags, row.provider, row.period, String(row.atMs), row.appliesTo, row.cardId,
  ]);
}

/** SHA-256 in hexadecimal of the hash before and the row's canonical text. */
export function chainHash(previousHash: string, row: ChainedRow): string {
  return hash('sha256', `${previousHash}\n${canonicalText(row)}`, 'hex');
}

/** Index of the first row that breaks the chain, or undefined when all of it verifies. Rows ascend by seq from `firstSeq`. */
export function brokenLink(rows: readonly (ChainedRow & { readonly prevHash: string; readonly hash: string })[], startHash: string = CHAIN_START, firstSeq = 1n): number | undefined {
  let previous = startHash;
  let seq = firstSeq;
  for (const [index, row] of rows.entries()) {
    if (row.seq !== seq || row.prevHash !== previous || chainHash(previous, row) !== row.hash) return index;
    previous = row.hash;
    seq += 1n;
  }
  return undefined;
}
