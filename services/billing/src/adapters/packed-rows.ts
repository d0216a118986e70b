/**
 * Packs two rows of the ledger into one of the table. An attempt that is charged in full when it is booked also holds the hash
 * of its charge row, which repeats everything else. Most requests are of this kind, which saves half of the table's rows.
 */
import type { LedgerEntry } from '../domain/open-account.js';
import { plainChargeDetail } from '../domain/request.js';
import { BigintArray, IntegerArray, TextArray } from './arrays.js';

/** True if `next` repeats `row` in everything but kind, sequence, flags and hash. */
function isPlainCharge(row: LedgerEntry, next: LedgerEntry): boolean {
  return (
    row.kind === 'attempt' && next.kind === 'charge' && next.accountId === row.accountId && next.requestId === row.requestId && next.attempt === row.attempt && next.amountNanoUsd === row.amountNanoUsd
    && next.tokens === row.tokens && next.byokTokens === row.byokTokens && next.source === row.source && next.provider === row.provider && next.period === row.period && next.atMs === row.atMs
    && next.appliesTo === row.appliesTo && next.cardId === row.cardId && next.keyId === row.keyId && next.flags.length === 0 && next.detail === plainChargeDetail(row.attempt)
  );
}

/** Turns rows of the ledger, in their order, into rows of the table. */
export class RowPacker {
  private held: LedgerEntry | undefined;

  /** `write` is called for each row of the table. `chargeHash` is the hash of the charge row at the next sequence if that is packed into this row, else null. */
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

  /** To be called after the last row. */
  end(): void {
    const { held } = this;
    this.held = undefined;
    if (held !== undefined) this.write(held, null);
  }
}

/** A Postgres literal for a text array. */
function flagsLiteral(flags: readonly string[]): string {
  return flags.length === 0 ? '{}' : `{${flags.map((flag) => `"${flag.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}

const ID_BYTES = 32;
const NAME_BYTES = 16;
const HASH_BYTES = 64;
const DETAIL_BYTES = 512;

/** Encodes rows of the ledger as columns of the table. Of a row that was added, only its bytes are kept. */
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

  /** Reserves space for this many rows of the table; grows if necessary. */
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

  /** The parameters, in the order of the table's columns. To be called once, after the last row. */
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
    if (typeof row.detail === 'string') this.detail.add(row.detail);
    else this.detail.addText(row.detail);
    this.hash.add(row.hash);
    this.chargeHash.add(chargeHash);
  }
}
