/** Holds the quality artefact in force and a canary, bound to the catalog. An invalid artefact never replaces a valid one. */
import type { Catalog, Model, Snapshot } from '@signalbox/router-core/catalog';
import { createQualityPredictor } from '@signalbox/router-core/quality';
import type { QualityArtefact } from '@signalbox/router-core/quality-artefact';
import { fractionOf } from '@signalbox/router-core/rank';
import type { QualitySource } from './ports.js';

export interface QualityState {
  /** Undefined until the first good load. */
  readonly artefactId: string | undefined;
  readonly canaryId: string | undefined;
  /** Share of conversations that use the canary. */
  readonly canaryShare: number;
  /** The artefact that a rollback restores if there is no canary. */
  readonly previousId: string | undefined;
}

export interface QualityHolder {
  /** Predicts the quality of the catalog's models for a prompt; undefined until the first good load. A conversation stays with one artefact. */
  for(catalog: Catalog, conversation?: string): Snapshot['quality'];
  /** Replaces each artefact that is valid; returns the problems of the others. */
  reload(): Promise<readonly string[]>;
  /** Returns what `reload` would, without replacing anything. */
  check(): Promise<readonly string[]>;
  /** Removes the canary, or without one restores the previous artefact; either lasts until the next reload. */
  rollback(): QualityState;
  state(): QualityState;
}

export interface Canary {
  readonly source: QualitySource;
  /** Share of conversations, from 0 to 1. */
  readonly share: number;
}

type Bound = Readonly<{ catalog: Catalog; artefact: QualityArtefact; quality: NonNullable<Snapshot['quality']> }>;

/** How far a figure may fall and still count as no worse: less than its random variation. */
const FALL_MAX = 0.005;

/** Why `candidate` is refused: validation figures that are worse than those of the artefact in force. */
function worseThan(running: QualityArtefact, candidate: QualityArtefact): string[] {
  return Object.entries(running.header.metrics).flatMap(([set, figures]) => {
    const [before, after] = [figures['apgr'], candidate.header.metrics[set]?.['apgr']];
    if (before === undefined) return [];
    if (after === undefined) return [`The canary was not validated on ${set}.`];
    return after < before - FALL_MAX ? [`The canary is worse on ${set}: APGR ${after.toFixed(3)} instead of ${before.toFixed(3)}.`] : [];
  });
}

export function createQualityHolder(source: QualitySource, trial?: Canary): QualityHolder {
  let current: QualityArtefact | undefined;
  let previous: QualityArtefact | undefined;
  let canary: QualityArtefact | undefined;
  let bound: Bound | undefined;
  let boundCanary: Bound | undefined;

  const bindOnce = (known: Bound | undefined, artefact: QualityArtefact, catalog: Catalog): Bound => (known?.catalog === catalog && known.artefact === artefact ? known : { catalog, artefact, quality: bind(artefact, catalog) });
  const state = (): QualityState => ({ artefactId: current?.id, canaryId: canary?.id, canaryShare: canary === undefined ? 0 : (trial?.share ?? 0), previousId: previous?.id });

  async function read(): Promise<{ readonly problems: string[]; readonly artefact: QualityArtefact | undefined; readonly canary: QualityArtefact | undefined }> {
    const [stable, tried] = await Promise.all([source.read(), trial?.source.read()]);
    const problems: string[] = [];
    const artefact = stable.kind === 'refused' ? current : stable.artefact;
    if (stable.kind === 'refused') problems.push(stable.problem);
    if (tried === undefined || artefact === undefined) return { problems, artefact, canary: undefined };
    if (tried.kind === 'refused') return { problems: [...problems, `Canary: ${tried.problem}`], artefact, canary };
    if (tried.artefact.id === artefact.id) return { problems, artefact, canary: undefined };
    const worse = worseThan(artefact, tried.artefact);
    return worse.length > 0 ? { problems: [...problems, ...worse], artefact, canary } : { problems, artefact, canary: tried.artefact };
  }

  return {
    state,
    for: (catalog, conversation = '') => {
      if (current === undefined) return undefined;
      if (canary !== undefined && conversation !== '' && fractionOf(`canary#${conversation}`, 0) < (trial?.share ?? 0)) {
        boundCanary = bindOnce(boundCanary, canary, catalog);
        return boundCanary.quality;
      }
      bound = bindOnce(bound, current, catalog);
      return bound.quality;
    },
    reload: async () => {
      const found = await read();
      if (found.artefact !== undefined && found.artefact.id !== current?.id) {
        previous = current;
        current = found.artefact;
      }
      canary = found.canary;
      return found.problems;
    },
    check: async () => (await read()).problems,
    rollback: () => {
      if (canary !== undefined) {
        canary = undefined;
        boundCanary = undefined;
      } else if (previous !== undefined) {
        current = previous;
        previous = undefined;
      }
      return state();
    },
  };
}

/** Matches models by bare name, since a model's quality does not depend on who serves it. */
function bind(artefact: QualityArtefact, catalog: Catalog): NonNullable<Snapshot['quality']> {
  const measured = new Set(artefact.header.models.map((model) => model.name));
  const nameOf = (model: Model): string | undefined => [model.id, ...model.aliases].map((name) => name.slice(name.indexOf('/') + 1)).find((name) => measured.has(name));
  return { id: artefact.id, predict: createQualityPredictor(artefact, catalog.models.map((model) => ({ measured: nameOf(model), ability: model.ability }))) };
}
