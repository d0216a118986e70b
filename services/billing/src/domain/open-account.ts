/** An account's end of the ledger while a batch adds to it: sequence, hash chain, sums. */
import { chainHash, CHAIN_START, type ChainedRow } from '@signalbox/ledger-core/hash-chain';
import type { Correction } from '@signalbox/ledger-core/fold';
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
  tokens: number;
  byokTokens: number;
}

/** A row whose place in the chain is not known yet: `append` sets `seq` and `hash`. */
export type DraftEntry = Omit<LedgerEntry, 'seq' | 'hash'> & { seq: bigint; hash: string };

/** An account's chain and sums while rows are added to it. */
export class OpenAccount {
  readonly #accountId: string;
  readonly #rows: LedgerEntry[];
  readonly #start: AccountHead;
  readonly #groups = new Map<string, Group[]>();
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

  append(draft: DraftEntry): void {
    draft.seq = this.#seq += 1n;
    draft.hash = this.#hash = chainHash(this.#hash, draft);
    this.#rows.push(draft);
  }

  charge(requestId: string, { keyId, periods }: RequestState, { amountNanoUsd, tokens, byokTokens }: Correction): void {
    this.#charged.push(requestId);
    const group = this.#groupOf(keyId, periods);
    group.chargeNanoUsd += amountNanoUsd;
    group.tokens += tokens;
    group.byokTokens += byokTokens;
  }

  #groupOf(keyId: string, periods: ChargePeriods): Group {
    let groups = this.#groups.get(keyId);
    if (groups === undefined) this.#groups.set(keyId, (groups = []));
    let group = groups.find((known) => known.periods.day === periods.day && known.periods.week === periods.week && known.periods.month === periods.month && known.periods.plan === periods.plan);
    if (group === undefined) groups.push((group = { keyId, periods, chargeNanoUsd: 0n, tokens: 0, byokTokens: 0 }));
    return group;
  }

  booked(): BookedAccount {
    const totalsSeq = this.#charged.length === 0 ? this.#start.totalsSeq : this.#seq;
    return {
      accountId: this.#accountId,
      head: { seq: this.#seq, hash: this.#hash, totalsSeq },
      previousTotalsSeq: this.#start.totalsSeq,
      deltas: sumDeltas([...this.#groups.values()].flat().flatMap((group) => totalDeltas({ ...group, tokens: BigInt(group.tokens), byokTokens: BigInt(group.byokTokens) }))),
      chargedRequestIds: this.#charged,
    };
  }
}
