/** Models that are called much like a name that is none, for whoever mistyped it. */
import type { Catalog, Model } from '@signalbox/router-core/catalog';
import { listModels, type ListQuery } from './model-list.js';

const SIMILAR_MAX = 3;
/** Longer names are no slips of the pen: the catalog's own have at most half of it. */
const NAME_MAX = 96;
/** Of the pairs of letters of both names, the share that they have in common. */
const LIKENESS_MIN = 0.5;
/** Letters and figures from which on a name may be the beginning of another. */
const BEGINNING_MIN = 3;

/** The date of a release tells little of what a model is called. */
const RELEASED = /20\d\d-?[01]\d-?[0-3]\d/g;

interface Spelling {
  readonly maker: string;
  readonly letters: string;
  readonly pairs: ReadonlySet<string>;
}

/** Made for the first name that is not found, and kept: such requests come in floods. */
const spellingsByCatalog = new WeakMap<Catalog, ReadonlyMap<Model, Spelling>>();

/** By its letters and figures alone: `GPT4o` is written like `gpt-4o`. */
function spellingOf(name: string): Spelling {
  const small = name.toLowerCase();
  const bare = small.lastIndexOf('/') + 1;
  const letters = small.slice(bare).replaceAll(RELEASED, '').replaceAll(/[^a-z0-9]/g, '');
  const pairs = new Set<string>();
  for (let i = 0; i + 1 < letters.length; i += 1) pairs.add(letters.slice(i, i + 2));
  return { maker: small.slice(0, Math.max(0, bare - 1)), letters, pairs };
}

function spellings(catalog: Catalog): ReadonlyMap<Model, Spelling> {
  const known = spellingsByCatalog.get(catalog);
  if (known !== undefined) return known;
  const made = new Map(catalog.models.map((model) => [model, spellingOf(model.id)]));
  spellingsByCatalog.set(catalog, made);
  return made;
}

/** The pairs that both have, twice, of those that each has; one more where the model's name only goes on. */
function likeness(asked: Spelling, model: Spelling): number {
  let common = 0;
  for (const pair of asked.pairs) if (model.pairs.has(pair)) common += 1;
  const share = (2 * common) / Math.max(1, asked.pairs.size + model.pairs.size);
  return asked.letters.length >= BEGINNING_MIN && model.letters.startsWith(asked.letters) ? 1 + share : share;
}

/** Ids of models that this request could have, the likest first; of the maker alone that the name has in front, where it has any such model. */
export function similarModels(catalog: Catalog, query: ListQuery): string[] {
  if (query.model.length > NAME_MAX) return [];
  const asked = spellingOf(query.model.trim());
  const known = spellings(catalog);
  const found: { readonly id: string; readonly score: number }[] = [];
  const usable = listModels(catalog, { ...query, model: '' });
  const ofMaker = usable.filter((model) => known.get(model)?.maker === asked.maker);
  for (const model of ofMaker.length > 0 ? ofMaker : usable) {
    const spelling = known.get(model);
    const score = spelling === undefined ? 0 : likeness(asked, spelling);
    if (score >= LIKENESS_MIN) found.push({ id: model.id, score });
  }
  return found.sort((one, other) => other.score - one.score).slice(0, SIMILAR_MAX).map(({ id }) => id);
}
