/** What the domain needs of the world. */
import type { Catalog } from '@signalbox/router-core/catalog';
import type { ParsedArtefact } from '@signalbox/router-core/quality-artefact';

export interface LoadedCatalog {
  readonly catalog: Catalog;
  readonly schemaVersion: string;
  /** Ids of all its providers, with models or without, and the simulator's. */
  readonly providers: ReadonlySet<string>;
  /** Of what its files hold: the same files have the same, on whatever day they are read. */
  readonly digest: string;
  /** What is sound, and still worth an operator's look. */
  readonly notices: readonly string[];
}

export interface CatalogSource {
  /** Where it comes from, for people. */
  readonly location: string;
  /** The catalog as of that day (ISO date), or what is wrong with it; all or nothing. Never rejects. */
  read(today: string): Promise<{ readonly problems: readonly string[]; readonly loaded?: LoadedCatalog }>;
  /** The catalog read last was taken: it is kept for `recall`. */
  taken(id: string): void;
  /** A catalog that was taken before, also by an earlier process; undefined when it was not kept. Never rejects. */
  recall(id: string): Promise<Catalog | undefined>;
}

export interface QualitySource {
  /** The artefact, or why there is none; all or nothing. Never rejects. */
  read(): Promise<ParsedArtefact>;
}
