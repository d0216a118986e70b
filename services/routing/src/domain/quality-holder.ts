/** Holds the quality artefact in force, bound to the catalog. A bad one never replaces a good one. */
import type { Catalog, Model, Snapshot } from '@signalbox/router-core/catalog';
import { createQualityPredictor } from '@signalbox/router-core/quality';
import type { QualityArtefact } from '@signalbox/router-core/quality-artefact';
import type { QualitySource } from './ports.js';

export interface QualityHolder {
  /** Judges prompts for the catalog's models; undefined until the first good load. */
  for(catalog: Catalog): Snapshot['quality'];
  /** Replaces the artefact when it is sound; answers the problems otherwise. */
  reload(): Promise<readonly string[]>;
  /** What `reload` would say, without replacing anything. */
  check(): Promise<readonly string[]>;
}

export function createQualityHolder(source: QualitySource): QualityHolder {
  let current: QualityArtefact | undefined;
  let bound: { readonly catalog: Catalog; readonly artefact: QualityArtefact; readonly quality: NonNullable<Snapshot['quality']> } | undefined;
  return {
    for: (catalog) => {
      if (current === undefined) return undefined;
      if (bound === undefined || bound.catalog !== catalog || bound.artefact !== current) bound = { catalog, artefact: current, quality: bind(current, catalog) };
      return bound.quality;
    },
    reload: async () => {
      const read = await source.read();
      if (read.kind === 'refused') return [read.problem];
      if (read.artefact.id !== current?.id) current = read.artefact;
      return [];
    },
    check: async () => {
      const read = await source.read();
      return read.kind === 'refused' ? [read.problem] : [];
    },
  };
}

/** Models are known by their bare names: who serves one does not change what it can do. */
function bind(artefact: QualityArtefact, catalog: Catalog): NonNullable<Snapshot['quality']> {
  const measured = new Set(artefact.header.models.map((model) => model.name));
  const nameOf = (model: Model): string | undefined => [model.id, ...model.aliases].map((name) => name.slice(name.indexOf('/') + 1)).find((name) => measured.has(name));
  return { id: artefact.id, predict: createQualityPredictor(artefact, catalog.models.map((model) => ({ measured: nameOf(model), ability: model.ability }))) };
}
