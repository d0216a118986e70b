/** Decisions of routing, kept for a while so that somebody may ask why. No money depends on them. */

export interface DecisionRow {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly atMs: number;
  /** The choice of the model was left to routing. */
  readonly viaAuto: boolean;
  /** JSON as routing wrote it; never a prompt. */
  readonly record: string;
  /** What a client thought of the answer, from 0 to 1; undefined = nothing was told. */
  readonly score: number | undefined;
}

export interface DecisionsQuery {
  /** Empty = all accounts. */
  readonly accountId: string;
  /** Half open; 0 = open. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Id of the last row seen; empty = from the newest. */
  readonly after: string;
  readonly limit: number;
}

/** Every method rejects with a Fault `store_unavailable` when the store is away. */
export interface DecisionStore {
  /** Safe to repeat: a decision that is known stays as it is. */
  add(rows: readonly DecisionRow[]): Promise<void>;
  /** By id, or by request when `id` is empty; of any account when `accountId` is empty. */
  find(query: { readonly accountId: string; readonly id: string; readonly requestId: string }): Promise<DecisionRow | undefined>;
  /** Those for `auto`, newest first. */
  list(query: DecisionsQuery): Promise<{ readonly rows: readonly DecisionRow[]; readonly hasMore: boolean }>;
  /** Keeps the score beside the decision; false when there is none of that account. */
  rate(accountId: string, requestId: string, score: number): Promise<boolean>;
  /** Forgets what is older, and the oldest beyond `keptMax`. */
  prune(beforeMs: number, keptMax: number): Promise<void>;
}
