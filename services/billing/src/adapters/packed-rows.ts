/**
 * Two rows of the ledger in one of the table: an attempt that is charged in full as it is booked carries the hash of its
 * charge row, which repeats everything else. Most requests are of this kind, and half the table's rows are saved.
 */
import type { LedgerEntry } from '../domain/open-account.js';
import { plainChargeDetail } from '../domain/request.js';
import { BigintArray, IntegerArray, TextArray } from './arrays.js';

/** True when `next` says nothing that `row` does not say: all but kind, sequence, flags and hash. */
function isPlainCharge(row: LedgerEntry, next: LedgerEntry): boolean {
  return (
    row.kind === 'attempt' && next.kind === 'charge' && next.accountId === row.accountId && next.requestId === row.requestId && next.attempt === row.attempt && next.amountNanoUsd === row.amountNanoUsd
    && next.tokens === row.tokens && next.byokTokens === row.byokTokens && next.source === row.source && next.provider === row.provider && next.period === row.period && next.atMs === row.atMs
    && next.appliesTo === row.appliesTo && next.cardId === row.cardId && next.keyId === row.keyId && next.flags.length === 0 && next.detail === plainChargeDetail(row.attempt)
  );
}

/** Makes rows of the table from rows of the ledger, given in their order. */
export class RowPacker {
  private held: LedgerEntry | undefined;

  /** `write` gets each row of the table, with the hash of the charge row at the next sequence; null when there is none in this row. */
  constructor(private readonly write: (row: LedgerEntry, chargeHash: string | null) => void) {}

  add(row: LedgerEntry): void {
    const { held } = this;
    if (held !== undefined && isPlainCharge(held, row)) {
      this.held = undefined;
      this.write(held, row.hash);
      return;
    }
    this.end();
    this.held = row;
  }

  /** After the last row. */
  end(): void {
    const { held } = this;
    this.held = undefined;
    if (held !== undefined) this.write(held, null);
  }
}

/** A Postgres literal of an array of texts. */
function flagsLiteral(flags: readonly string[]): string {
  return flags.length === 0 ? '{}' : `{${flags.map((flag) => `"${flag.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}

const ID_BYTES = 32;
const NAME_BYTES = 16;
const HASH_BYTES = 64;
const DETAIL_BYTES = 512;

/** Rows of the ledger as columns of the table: of a row that was added only its bytes are held. */
export class PackedRows {
  private readonly accountId: TextArray;
  private readonly seq: BigintArray;
  private readonly kind: TextArray;
  private readonly requestId: TextArray;
  private readonly attempt: IntegerArray;
  private readonly amount: BigintArray;
  private readonly tokens: BigintArray;
  private readonly byokTokens: BigintArray;
  private readonly source: TextArray;
  private readonly flags: TextArray;
  private readonly provider: TextArray;
  private readonly period: TextArray;
  private readonly atMs: BigintArray;
  private readonly appliesTo: TextArray;
  private readonly cardId: TextArray;
  private readonly keyId: TextArray;
  private readonly detail: TextArray;
  private readonly hash: TextArray;
  private readonly chargeHash: TextArray;
  private readonly packer = new RowPacker((row, chargeHash) => this.write(row, chargeHash));

  /** With space for so many rows of the table; it takes more. */
  constructor(rows: number) {
    this.accountId = new TextArray(rows, ID_BYTES);
    this.seq = new BigintArray(rows);
    this.kind = new TextArray(rows, NAME_BYTES);
    this.requestId = new TextArray(rows, ID_BYTES);
    this.attempt = new IntegerArray(rows);
    this.amount = new BigintArray(rows);
    this.tokens = new BigintArray(rows);
    this.byokTokens = new BigintArray(rows);
    this.source = new TextArray(rows, NAME_BYTES);
    this.flags = new TextArray(rows, NAME_BYTES);
    this.provider = new TextArray(rows, NAME_BYTES);
    this.period = new TextArray(rows, NAME_BYTES);
    this.atMs = new BigintArray(rows);
    this.appliesTo = new TextArray(rows, NAME_BYTES);
    this.cardId = new TextArray(rows, ID_BYTES);
    this.keyId = new TextArray(rows, ID_BYTES);
    this.detail = new TextArray(rows, DETAIL_BYTES);
    this.hash = new TextArray(rows, HASH_BYTES);
    this.chargeHash = new TextArray(rows, HASH_BYTES);
  }

  add(row: LedgerEntry): void {
    this.packer.add(row);
  }

  /** Parameters in the order of the table's columns. Call it once, after the last row. */
  columns(): Buffer[] {
    this.packer.end();
    return [
      this.accountId, this.seq, this.kind, this.requestId, this.attempt, this.amount, this.tokens, this.byokTokens, this.source, this.flags, this.provider, this.period, this.atMs, this.appliesTo, this.cardId, this.keyId,
      this.detail, this.hash, this.chargeHash,
    ].map((column) => column.bytes());
  }

  private write(row: LedgerEntry, chargeHash: string | null): void {
    this.accountId.add(row.accountId);
    this.seq.add(row.seq);
    this.kind.add(row.kind);
    this.requestId.add(row.requestId);
    this.attempt.add(row.attempt);
    this.amount.add(row.amountNanoUsd);
    this.tokens.add(row.tokens);
    this.byokTokens.add(row.byokTokens);
    this.source.add(row.source);
    this.flags.add(flagsLiteral(row.flags));
    this.provider.add(row.provider);
    this.period.add(row.period);
    this.atMs.add(row.atMs);
    this.appliesTo.add(row.appliesTo);
    this.cardId.add(row.cardId);
    this.keyId.add(row.keyId);
    this.detail.add(row.detail);
    this.hash.add(row.hash);
    this.chargeHash.add(chargeHash);
  }
}
