/** What the domain needs of the world. */
import type { Catalog } from '@signalbox/router-core/catalog';

export interface LoadedCatalog {
  readonly catalog: Catalog;
  readonly schemaVersion: string;
}

export interface CatalogSource {
  /** Where it comes from, for people. */
  readonly location: string;
  /** The catalog as of that day (ISO date), or what is wrong with it; all or nothing. Never rejects. */
  read(today: string): Promise<{ readonly problems: readonly string[]; readonly loaded?: LoadedCatalog }>;
}
