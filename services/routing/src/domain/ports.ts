/** Interfaces that the domain needs from outside. */
import type { Catalog } from '@signalbox/router-core/catalog';
import type { ParsedArtefact } from '@signalbox/router-core/quality-artefact';

export interface LoadedCatalog {
  readonly catalog: Catalog;
  readonly schemaVersion: string;
  /** Ids of all its providers, with or without models, and the simulator's id. */
  readonly providers: ReadonlySet<string>;
  /** Digest of the files' content, independent of the day on which they are read. */
  readonly digest: string;
  /** Notices about a valid catalog that an operator should look at. */
  readonly notices: readonly string[];
}

export interface CatalogSource {
  /** Where the catalog comes from, for people. */
  readonly location: string;
  /** Reads the catalog as of that day (ISO date), or returns its problems; all or nothing. Never rejects. */
  read(today: string): Promise<{ readonly problems: readonly string[]; readonly loaded?: LoadedCatalog }>;
  /** The catalog read last is now in force: stores it for `recall`. */
  taken(id: string): void;
  /** A catalog that was in force before, perhaps in an earlier process; undefined if it was not stored. Never rejects. */
  recall(id: string): Promise<Catalog | undefined>;
}

export interface QualitySource {
  /** Reads the artefact, or returns why it is unusable; all or nothing. Never rejects. */
  read(): Promise<ParsedArtefact>;
}
