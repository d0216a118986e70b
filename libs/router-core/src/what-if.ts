/** Compares recorded decisions with those of another policy, price list or catalog, without prompts and without calls (docs/auto.md). */
import type { Catalog } from './catalog.js';
import { expectedOf, replay, type Changes, type DecisionRecord, type Expected } from './record.js';

/** Sums of expectations in nano-USD, never billed, over the decisions that both sides have a plan for. */
export interface Side {
  readonly cost: number;
  readonly quality: number;
  /** Relative to each side's own reference. */
  readonly savings: number;
  /** Number of requests by the first model of the plan. */
  readonly models: ReadonlyMap<string, number>;
}

export interface Comparison {
  readonly compared: number;
  /** Decisions whose first model changes. */
  readonly moved: number;
  /** Decisions for which only the changed side has no plan. */
  readonly refused: number;
  /** Decisions for pinned models, and requests that were refused then. */
  readonly skipped: number;
  readonly recorded: Side;
  readonly changed: Side;
}

interface OpenSide {
  cost: number;
  quality: number;
  savings: number;
  readonly models: Map<string, number>;
}

function add(side: OpenSide, expected: Expected): void {
  side.cost += expected.cost ?? 0;
  side.quality += expected.quality ?? 0;
  side.savings += expected.savings ?? 0;
  if (expected.model !== undefined) side.models.set(expected.model, (side.models.get(expected.model) ?? 0) + 1);
}

/**
 * Replays each record unchanged in `before`, and with the changes in `after`. Both sides use the prediction in the record,
 * so only the policy or the catalog makes the difference.
 */
export function whatIf(records: Iterable<DecisionRecord>, before: (record: DecisionRecord) => Catalog, after: Catalog, changes: Changes): Comparison {
  const recorded: OpenSide = { cost: 0, quality: 0, savings: 0, models: new Map() };
  const changed: OpenSide = { cost: 0, quality: 0, savings: 0, models: new Map() };
  let [compared, moved, refused, skipped] = [0, 0, 0, 0];
  for (const record of records) {
    const then = expectedOf(replay(record, before(record)));
    if (then.model === undefined) {
      skipped += 1;
      continue;
    }
    const now = expectedOf(replay(record, after, changes));
    if (now.model === undefined) {
      refused += 1;
      continue;
    }
    compared += 1;
    if (now.model !== then.model) moved += 1;
    add(recorded, then);
    add(changed, now);
  }
  return { compared, moved, refused, skipped, recorded, changed };
}
