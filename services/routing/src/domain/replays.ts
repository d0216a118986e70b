/** Replays decisions from their records: as they were, or under another policy. */
import type { Catalog } from '@signalbox/router-core/catalog';
import { replay, type Changes, type DecisionRecord } from '@signalbox/router-core/record';
import { whatIf, type Comparison } from '@signalbox/router-core/what-if';
import type { CatalogHolder } from './catalog-holder.js';

export interface Replayed {
  /** True if the catalog of that time is available. */
  readonly isSameSnapshot: boolean;
  readonly isSamePlan: boolean;
  readonly attempts: readonly string[];
}

/** Parses a stored record; undefined if the text is not a record. */
export function readRecord(text: Uint8Array): DecisionRecord | undefined {
  try {
    const json: unknown = JSON.parse(Buffer.from(text).toString('utf8'));
    return isRecord(json) ? json : undefined;
  } catch {
    return undefined;
  }
}

/** Records come from our own store, so this only checks enough to tell a record from something else. */
function isRecord(json: unknown): json is DecisionRecord {
  if (typeof json !== 'object' || json === null) return false;
  const record = json as Partial<DecisionRecord>;
  return typeof record.snapshotId === 'string' && typeof record.seed === 'number' && typeof record.request === 'object' && Array.isArray(record.attempts) && typeof record.live === 'object';
}

export interface Replays {
  /** Undefined without any catalog. */
  one(record: DecisionRecord): Promise<Replayed | undefined>;
  /** `after` undefined = the catalog in force. Undefined without any catalog. */
  compare(records: readonly DecisionRecord[], changes: Changes, after: Catalog | undefined): Promise<Comparison | undefined>;
}

export function createReplays(holder: CatalogHolder): Replays {
  return {
    one: async (record) => {
      const then = await holder.recall(record.snapshotId);
      const catalog = then ?? holder.current()?.catalog;
      if (catalog === undefined) return undefined;
      const result = replay(record, catalog);
      const attempts = result.kind === 'plan' ? result.attempts.map(({ endpoint }) => endpoint.id) : [];
      return { isSameSnapshot: then !== undefined, isSamePlan: attempts.length === record.attempts.length && attempts.every((id, index) => id === record.attempts[index]), attempts };
    },
    compare: async (records, changes, after) => {
      const now = holder.current()?.catalog;
      if (now === undefined) return undefined;
      const catalogs = new Map<string, Catalog>();
      for (const id of new Set(records.map(({ snapshotId }) => snapshotId))) catalogs.set(id, (await holder.recall(id)) ?? now);
      return whatIf(records, ({ snapshotId }) => catalogs.get(snapshotId) ?? now, after ?? now, changes);
    },
  };
}
