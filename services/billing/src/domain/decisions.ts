/** Decisions of routing, kept for a while so that somebody may ask why. No money depends on them. */

export interface DecisionRow {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly atMs: number;
  /** The client left the choice of the model to routing. */
  readonly viaAuto: boolean;
  /** JSON as routing wrote it; never a prompt. */
  readonly record: string;
  /** The client's rating of the answer, from 0 to 1; undefined = none. */
  readonly score: number | undefined;
}

export interface DecisionsQuery {
  /** Empty = all accounts. */
  readonly accountId: string;
  /** `fromMs` inclusive, `toMs` exclusive; 0 = unbounded. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Id of the last row seen; empty = from the newest. */
  readonly after: string;
  readonly limit: number;
}

/** Every method rejects with a Fault `store_unavailable` when the store is away. */
export interface DecisionStore {
  /** Safe to repeat: a known decision is not changed. */
  add(rows: readonly DecisionRow[]): Promise<void>;
  /** By id, or by request when `id` is empty; of any account when `accountId` is empty. */
  find(query: { readonly accountId: string; readonly id: string; readonly requestId: string }): Promise<DecisionRow | undefined>;
  /** Decisions for `auto`, newest first. */
  list(query: DecisionsQuery): Promise<{ readonly rows: readonly DecisionRow[]; readonly hasMore: boolean }>;
  /** Stores the score with the decision; false if the account has no such decision. */
  rate(accountId: string, requestId: string, score: number): Promise<boolean>;
  /** Deletes older decisions, and the oldest ones beyond `keptMax`. */
  prune(beforeMs: number, keptMax: number): Promise<void>;
}
