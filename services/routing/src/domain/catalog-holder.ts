/** Holds the catalog in force. A bad one never replaces a good one. */
import type { Clock } from '@signalbox/kernel/clock';
import { cardFor } from '@signalbox/kernel/tokens';
import type { Catalog } from '@signalbox/router-core/catalog';
import type { CatalogSource, LoadedCatalog } from './ports.js';

/** A price that moves by more than this factor is told to the operator. */
const ALARM_FACTOR = 2n;
const WARNINGS_MAX = 50;
/** Catalogs kept in memory, for decisions to be made again. */
const RECALLED_MAX = 4;

export interface CatalogHolder {
  /** Undefined until the first good load. */
  current(): LoadedCatalog | undefined;
  /** Replaces the catalog when it is sound; answers the problems otherwise. */
  reload(): Promise<{ readonly problems: readonly string[]; readonly warnings: readonly string[] }>;
  /** What `reload` would say, without replacing anything; `loaded` is what it would take. */
  check(): Promise<{ readonly problems: readonly string[]; readonly warnings: readonly string[]; readonly loaded: LoadedCatalog | undefined }>;
  /** The catalog of that id, in force or earlier; undefined when it is not at hand. */
  recall(id: string): Promise<Catalog | undefined>;
}

function priceAlarms(before: Catalog, after: Catalog): string[] {
  const old = new Map(before.endpoints.map((endpoint) => [endpoint.id, cardFor(endpoint.prices, 0)]));
  const alarms: string[] = [];
  for (const endpoint of after.endpoints) {
    const was = old.get(endpoint.id);
    const now = cardFor(endpoint.prices, 0);
    if (was === undefined || now === undefined) continue;
    for (const [label, left, right] of [['input', was.inputUncached, now.inputUncached], ['output', was.outputText, now.outputText]] as const) {
      if (right > left * ALARM_FACTOR || left > right * ALARM_FACTOR) alarms.push(`${endpoint.id}: the price of ${label} moved from ${String(left)} to ${String(right)} nano-USD per 1M tokens.`);
    }
  }
  return alarms.slice(0, WARNINGS_MAX);
}

export function createCatalogHolder(source: CatalogSource, clock: Clock): CatalogHolder {
  let current: LoadedCatalog | undefined;
  const recalled = new Map<string, Catalog>();
  const remember = (catalog: Catalog): void => {
    recalled.delete(catalog.id);
    recalled.set(catalog.id, catalog);
    const [oldest] = recalled.keys();
    if (recalled.size > RECALLED_MAX && oldest !== undefined) recalled.delete(oldest);
  };
  const read = async () => {
    const { problems, loaded } = await source.read(new Date(clock.nowMs()).toISOString().slice(0, 10));
    return { problems, loaded, warnings: current === undefined || loaded === undefined ? [] : priceAlarms(current.catalog, loaded.catalog) };
  };
  return {
    current: () => current,
    reload: async () => {
      const { problems, loaded, warnings } = await read();
      if (loaded !== undefined) {
        current = loaded;
        remember(loaded.catalog);
        source.taken(loaded.catalog.id);
      }
      return { problems, warnings };
    },
    check: read,
    recall: async (id) => {
      const known = current?.catalog.id === id ? current.catalog : recalled.get(id);
      if (known !== undefined) return known;
      const kept = await source.recall(id);
      if (kept !== undefined) remember(kept);
      return kept;
    },
  };
}
