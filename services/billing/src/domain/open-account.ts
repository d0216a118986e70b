/** The state of an account while a batch adds rows to it: sequence, hash chain, sums. */
import { chainHash, CHAIN_START, type ChainedRow } from '@signalbox/ledger-core/hash-chain';
import { sumDeltas, totalDeltas, type ChargePeriods, type TotalDelta } from '@signalbox/ledger-core/totals';
import type { KeptText } from './json-text.js';
import { AttemptTally, dayOf, UsageTally, type AttemptDelta, type UsageDelta, type UsageFigures } from './usage.js';

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
  /** A JSON object, AttemptDetail or ChargeDetail; not covered by the hash. */
  readonly detail: string | KeptText;
}

export interface BookedAccount {
  readonly accountId: string;
  readonly head: AccountHead;
  readonly previousTotalsSeq: bigint;
  readonly deltas: readonly TotalDelta[];
  /** What the new charges and adjustments add to the sums for reports. */
  readonly usage: readonly UsageDelta[];
  /** What the new attempts add to the sums that are compared with the providers' figures. */
  readonly attempts: readonly AttemptDelta[];
  /** Requests with a new charge or adjustment. */
  readonly chargedRequestIds: readonly string[];
  /** Requests that are charged, now or before, and of which no round is still to be reported: quota need not hold anything for them any more. */
  readonly settledRequestIds: readonly string[];
}

/** What is charged in this batch for one key and one set of periods; most requests of an account share both. */
interface Group {
  readonly keyId: string;
  readonly periods: ChargePeriods;
  chargeNanoUsd: bigint;
  tokens: number;
  byokTokens: number;
}

/** A row that is not in the chain yet; `append` sets `seq` and `hash`. */
export type DraftEntry = Omit<LedgerEntry, 'seq' | 'hash'> & { seq: bigint; hash: string };

function isSamePeriods(a: ChargePeriods, b: ChargePeriods): boolean {
  return a.day === b.day && a.week === b.week && a.month === b.month && a.plan === b.plan;
}

/** An account's chain and sums while rows are added to it. */
export class OpenAccount {
  readonly #accountId: string;
  readonly #addRow: (row: LedgerEntry) => void;
  readonly #start: AccountHead;
  readonly #groups = new Map<string, Group[]>();
  readonly #charged: string[] = [];
  readonly #settled: string[] = [];
  readonly #usage = new UsageTally();
  readonly #attempts = new AttemptTally();
  #seq: bigint;
  #hash: string;

  /** `addRow` is called with each row, in order. */
  constructor(accountId: string, start: AccountHead, addRow: (row: LedgerEntry) => void) {
    this.#accountId = accountId;
    this.#addRow = addRow;
    this.#start = start;
    this.#seq = start.seq;
    this.#hash = start.hash;
  }

  append(draft: DraftEntry): void {
    draft.seq = this.#seq += 1n;
    draft.hash = this.#hash = chainHash(this.#hash, draft);
    this.#addRow(draft);
  }

  /** `byok`: the account's own key paid, so the attempt is not on the provider's bill to us. */
  attempt(row: DraftEntry, byok: boolean): void {
    this.append(row);
    if (!byok) this.#attempts.add(dayOf(row.atMs), row);
  }

  /** Appends a cost correction; it counts on the day of the attempt. */
  cost(row: DraftEntry): void {
    this.append(row);
    this.#attempts.learn(dayOf(row.atMs), row.provider, row.amountNanoUsd);
  }

  /** Everything reported about the request is in the sums, and no round of it is still to come. */
  settled(requestId: string): void {
    this.#settled.push(requestId);
  }

  /** Like `settled`, if the latest facts do not change the charge. The sums that contain the request are announced with it. */
  settledAsBooked(requestId: string, keyId: string, periods: ChargePeriods): void {
    this.#groupOf(keyId, periods);
    this.#settled.push(requestId);
  }

  /** Adds a charge or adjustment row, already appended, to the sums; `periods` are those it is booked to. */
  charge({ requestId, keyId, period, provider, atMs, amountNanoUsd }: DraftEntry, periods: ChargePeriods, model: string, figures: UsageFigures): void {
    this.#charged.push(requestId);
    this.#usage.add({ period, day: dayOf(atMs), model, provider, keyId }, figures);
    const group = this.#groupOf(keyId, periods);
    group.chargeNanoUsd += amountNanoUsd;
    group.tokens += figures.tokens;
    group.byokTokens += figures.byokTokens;
  }

  #groupOf(keyId: string, periods: ChargePeriods): Group {
    let groups = this.#groups.get(keyId);
    if (groups === undefined) this.#groups.set(keyId, (groups = []));
    for (const known of groups) if (known.periods === periods || isSamePeriods(known.periods, periods)) return known;
    const group = { keyId, periods, chargeNanoUsd: 0n, tokens: 0, byokTokens: 0 };
    groups.push(group);
    return group;
  }

  booked(): BookedAccount {
    const totalsSeq = this.#charged.length + this.#settled.length === 0 ? this.#start.totalsSeq : this.#seq;
    return {
      accountId: this.#accountId,
      head: { seq: this.#seq, hash: this.#hash, totalsSeq },
      previousTotalsSeq: this.#start.totalsSeq,
      deltas: sumDeltas([...this.#groups.values()].flat().flatMap((group) => totalDeltas({ ...group, tokens: BigInt(group.tokens), byokTokens: BigInt(group.byokTokens) }))),
      usage: this.#usage.deltas(),
      attempts: this.#attempts.deltas(),
      chargedRequestIds: this.#charged,
      settledRequestIds: this.#settled,
    };
  }
}
