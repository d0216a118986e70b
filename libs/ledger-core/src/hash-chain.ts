/** The chain that makes a changed, missing or moved ledger row visible: each row's hash covers the row and the hash before it. */
import { hash } from 'node:crypto';
import { DIGITS_MAX, hasDigits, writeDigits } from './digits.js';

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

/** Rows of longer texts are rare. */
const SPACE_BYTES = 1_024;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const LINE_FEED = 0x0a;
const OPEN = 0x5b;
const CLOSE = 0x5d;

/** What is hashed of most rows, put together as bytes in space that is used again. Not whole once anything did not fit or would be escaped. */
class PlainText {
  private readonly space = Buffer.alloc(SPACE_BYTES);
  /** The beginning of the space, by length: a view costs more than the hash's own text, and lengths are few. */
  private readonly views: Buffer[] = [];
  private at = 0;
  isWhole = true;

  begin(): void {
    this.at = 0;
    this.isWhole = true;
  }

  bytes(): Buffer {
    return (this.views[this.at] ??= this.space.subarray(0, this.at));
  }

  raw(text: string): void {
    const { space, at } = this;
    const { length } = text;
    if (at + length > SPACE_BYTES) {
      this.isWhole = false;
      return;
    }
    for (let i = 0; i < length; i += 1) {
      const code = text.charCodeAt(i);
      if (code < 0x20 || code > 0x7e || code === QUOTE || code === BACKSLASH) this.isWhole = false;
      space[at + i] = code;
    }
    this.at = at + length;
  }

  byte(code: number): void {
    if (this.at < SPACE_BYTES) this.space[this.at] = code;
    else this.isWhole = false;
    this.at += 1;
  }

  quoted(text: string): void {
    this.byte(QUOTE);
    this.raw(text);
    this.byte(QUOTE);
  }

  /** One more element of a JSON array. */
  next(text: string): void {
    this.byte(COMMA);
    this.quoted(text);
  }

  whole(value: bigint | number): void {
    const number = Number(value);
    if (this.at + DIGITS_MAX > SPACE_BYTES) this.isWhole = false;
    else if (hasDigits(number)) this.at = writeDigits(this.space, this.at, number);
    else this.raw(String(value));
  }

  /** One more element of a JSON array: a whole number as text. */
  nextWhole(value: bigint): void {
    this.byte(COMMA);
    this.byte(QUOTE);
    this.whole(value);
    this.byte(QUOTE);
  }
}

const plain = new PlainText();

/** Whether `plain` holds what is hashed of the row, byte for byte. */
function isPlain(previousHash: string, row: ChainedRow): boolean {
  plain.begin();
  plain.raw(previousHash);
  plain.byte(LINE_FEED);
  plain.byte(OPEN);
  plain.quoted(row.accountId);
  plain.nextWhole(row.seq);
  plain.next(row.kind);
  plain.next(row.requestId);
  plain.byte(COMMA);
  plain.whole(row.attempt);
  plain.nextWhole(row.amountNanoUsd);
  plain.nextWhole(row.tokens);
  plain.nextWhole(row.byokTokens);
  plain.next(row.source);
  plain.byte(COMMA);
  plain.byte(OPEN);
  for (let i = 0; i < row.flags.length; i += 1) {
    if (i > 0) plain.byte(COMMA);
    plain.quoted(row.flags[i] ?? '');
  }
  plain.byte(CLOSE);
  plain.next(row.provider);
  plain.next(row.period);
  plain.nextWhole(row.atMs);
  plain.next(row.appliesTo);
  plain.next(row.cardId);
  plain.byte(CLOSE);
  return plain.isWhole;
}

/** SHA-256 in hexadecimal of the hash before and the row's canonical text, a line feed between them. */
export function chainHash(previousHash: string, row: ChainedRow): string {
  return hash('sha256', isPlain(previousHash, row) ? plain.bytes() : `${previousHash}\n${canonicalText(row)}`, 'hex');
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
