/** An account's end of the ledger while a batch adds to it: sequence, hash chain, sums. */
import { chainHash, CHAIN_START, type ChainedRow } from '@signalbox/ledger-core/hash-chain';
import { sumDeltas, totalDeltas, type ChargePeriods, type TotalDelta } from '@signalbox/ledger-core/totals';
import type { RequestState } from './request.js';

/** The end of an account's chain. */
export interface AccountHead {
  readonly seq: bigint;
  readonly hash: string;
  /** Sequence at which totals were last announced. */
  readonly totalsSeq: bigint;
}

export const NEW_HEAD: AccountHead = { seq: 0n, hash: CHAIN_START, totalsSeq: 0n };

export interface LedgerEntry extends ChainedRow {
  readonly kind: 'attempt' | 'charge' | 'adjustment';
  readonly keyId: string;
  readonly hash: string;
  /** A JSON object, AttemptDetail or ChargeDetail; not part of the hash. */
  readonly detail: string;
}

export interface BookedAccount {
  readonly accountId: string;
  readonly head: AccountHead;
  readonly previousTotalsSeq: bigint;
  readonly deltas: readonly TotalDelta[];
  /** Requests with a new charge or adjustment; when there are none the totals have not moved. */
  readonly chargedRequestIds: readonly string[];
}

/** What one key and one set of periods are charged in this batch: most requests of an account share both. */
interface Group {
  readonly keyId: string;
  readonly periods: ChargePeriods;
  chargeNanoUsd: bigint;
  tokens: bigint;
  byokTokens: bigint;
}

export type NewRow = Omit<LedgerEntry, 'accountId' | 'seq' | 'hash'>;

/** An account's chain and sums while rows are added to it. */
export class OpenAccount {
  readonly #accountId: string;
  readonly #rows: LedgerEntry[];
  readonly #start: AccountHead;
  readonly #groups = new Map<string, Group>();
  readonly #charged: string[] = [];
  #seq: bigint;
  #hash: string;

  constructor(accountId: string, start: AccountHead, rows: LedgerEntry[]) {
    this.#accountId = accountId;
    this.#rows = rows;
    this.#start = start;
    this.#seq = start.seq;
    this.#hash = start.hash;
  }

  append(row: NewRow): void {
    this.#seq += 1n;
    // Field by field: a spread of so many costs more than the hash.
    const entry = {
      accountId: this.#accountId, seq: this.#seq, kind: row.kind, requestId: row.requestId, attempt: row.attempt, amountNanoUsd: row.amountNanoUsd, tokens: row.tokens, byokTokens: row.byokTokens,
      source: row.source, flags: row.flags, provider: row.provider, period: row.period, atMs: row.atMs, appliesTo: row.appliesTo, cardId: row.cardId, keyId: row.keyId, detail: row.detail, hash: '',
    };
    entry.hash = this.#hash = chainHash(this.#hash, entry);
    this.#rows.push(entry);
  }

  charge(requestId: string, { keyId, periods }: RequestState, chargeNanoUsd: bigint, tokens: bigint, byokTokens: bigint): void {
    this.#charged.push(requestId);
    const name = `${keyId} ${periods.day} ${periods.week} ${periods.month} ${periods.plan}`;
    let group = this.#groups.get(name);
    if (group === undefined) this.#groups.set(name, (group = { keyId, periods, chargeNanoUsd: 0n, tokens: 0n, byokTokens: 0n }));
    group.chargeNanoUsd += chargeNanoUsd;
    group.tokens += tokens;
    group.byokTokens += byokTokens;
  }

  booked(): BookedAccount {
    const totalsSeq = this.#charged.length === 0 ? this.#start.totalsSeq : this.#seq;
    return {
      accountId: this.#accountId,
      head: { seq: this.#seq, hash: this.#hash, totalsSeq },
      previousTotalsSeq: this.#start.totalsSeq,
      deltas: sumDeltas([...this.#groups.values()].flatMap(totalDeltas)),
      chargedRequestIds: this.#charged,
    };
  }
}
