/** Holds the catalog in force. An invalid catalog never replaces a valid one. */
import type { Clock } from '@signalbox/kernel/clock';
import { formatUsdJson } from '@signalbox/kernel/money';
import { cardFor, type PriceCard } from '@signalbox/kernel/tokens';
import type { Catalog, Endpoint } from '@signalbox/router-core/catalog';
import type { CatalogSource, LoadedCatalog } from './ports.js';

/** A price that changes by more than this factor is reported to the operator. */
const ALARM_FACTOR = 2n;
const WARNINGS_MAX = 50;
/** Most catalogs kept in memory for replays. */
const RECALLED_MAX = 4;

/** A catalog that was read. */
export interface FoundCatalog {
  readonly problems: readonly string[];
  /** Prices that would change by more than a factor of two. */
  readonly warnings: readonly string[];
  /** Undefined if there are problems. */
  readonly loaded: LoadedCatalog | undefined;
  /** Puts `loaded` in force, if there is one. */
  take(): void;
}

/** `renewed`: rebuilt as of today; `current`: it was already; `changed`: its files have changed, and nobody has asked for a reload yet. */
export type Renewal = 'renewed' | 'current' | 'changed';

export interface CatalogHolder {
  /** Undefined until the first good load. */
  current(): LoadedCatalog | undefined;
  /** Replaces the catalog if the new one is valid; else returns the problems. */
  reload(): Promise<Pick<FoundCatalog, 'problems' | 'warnings'>>;
  /** Reads like `reload`, but replaces nothing until `take` is called. */
  check(): Promise<FoundCatalog>;
  /** Call when the date has changed: rebuilds the catalog in force as of today, since models and endpoints have shutdown dates. */
  renew(): Promise<Renewal>;
  /** The current or an earlier catalog with that id; undefined if it is not available. */
  recall(id: string): Promise<Catalog | undefined>;
}

const FIGURES = {
  inputUncached: 'input', cacheRead: 'cached input', cacheWrite: 'input to a cache', outputText: 'output', outputReasoning: 'reasoning', audio: 'audio', image: 'images', requestNanoUsd: 'a request',
} as const satisfies Partial<Record<keyof PriceCard, string>>;

/** Describes price changes, for prompts of any length. Equal changes are described once: a host without an audio price charges its input price, so both move together. */
function movesOf(before: Endpoint, after: Endpoint): string[] {
  const lengths = [...new Set([...before.prices, ...after.prices].map(({ fromPromptTokens }) => fromPromptTokens))].sort((a, b) => a - b);
  const told = new Set<string>();
  return lengths.flatMap((length) => {
    const was = cardFor(before.prices, length);
    const now = cardFor(after.prices, length);
    if (was === undefined || now === undefined) return [];
    return (Object.keys(FIGURES) as (keyof typeof FIGURES)[]).flatMap((figure) => {
      const [left, right] = [was[figure], now[figure]];
      const move = `moved from $${formatUsdJson(left)} to $${formatUsdJson(right)}${figure === 'requestNanoUsd' ? '' : ' per 1M tokens'}.`;
      if ((right <= left * ALARM_FACTOR && left <= right * ALARM_FACTOR) || told.has(move)) return [];
      told.add(move);
      return [`${after.id}: ${length === 0 ? '' : `from ${String(length)} tokens of prompt on `}the price of ${FIGURES[figure]} ${move}`];
    });
  });
}

function priceAlarms(before: Catalog, after: Catalog): string[] {
  const old = new Map(before.endpoints.map((endpoint) => [endpoint.id, endpoint]));
  return after.endpoints
    .flatMap((endpoint) => {
      const was = old.get(endpoint.id);
      return was === undefined ? [] : movesOf(was, endpoint);
    })
    .slice(0, WARNINGS_MAX);
}

export function createCatalogHolder(source: CatalogSource, clock: Clock): CatalogHolder {
  let current: LoadedCatalog | undefined;
  /** ISO date for which the current catalog was built. */
  let currentDay = '';
  const recalled = new Map<string, Catalog>(); // kept: by catalog, a few.
  const remember = (catalog: Catalog): void => {
    recalled.delete(catalog.id);
    recalled.set(catalog.id, catalog);
    const [oldest] = recalled.keys();
    if (recalled.size > RECALLED_MAX && oldest !== undefined) recalled.delete(oldest);
  };
  const today = (): string => new Date(clock.nowMs()).toISOString().slice(0, 10);
  const take = (loaded: LoadedCatalog, day: string): void => {
    current = loaded;
    currentDay = day;
    remember(loaded.catalog);
    source.taken(loaded.catalog.id);
  };
  const check = async (): Promise<FoundCatalog> => {
    const day = today();
    const { problems, loaded } = await source.read(day);
    return {
      problems, loaded,
      warnings: current === undefined || loaded === undefined ? [] : priceAlarms(current.catalog, loaded.catalog),
      take: () => {
        if (loaded !== undefined) take(loaded, day);
      },
    };
  };
  return {
    current: () => current,
    reload: async () => {
      const { problems, warnings, take: takeIt } = await check();
      takeIt();
      return { problems, warnings };
    },
    check,
    renew: async () => {
      const day = today();
      if (current === undefined || day === currentDay) return 'current';
      const { loaded } = await source.read(day);
      if (loaded?.digest !== current.digest) return 'changed';
      take(loaded, day);
      return 'renewed';
    },
    recall: async (id) => {
      const known = current?.catalog.id === id ? current.catalog : recalled.get(id);
      if (known !== undefined) return known;
      const kept = await source.recall(id);
      if (kept !== undefined) remember(kept);
      return kept;
    },
  };
}
