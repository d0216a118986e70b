/** Suggests models whose names resemble an unknown name, in case it was mistyped. */
import type { Catalog, Model } from '@signalbox/router-core/catalog';
import { listModels, type ListQuery } from './model-list.js';

const SIMILAR_MAX = 3;
/** Longer names are not typing errors: the catalog's own names are at most half as long. */
const NAME_MAX = 96;
/** Lowest share of common letter pairs. */
const LIKENESS_MIN = 0.5;
/** From this many letters and digits on, a name may match as a prefix. */
const BEGINNING_MIN = 3;

/** Release dates are ignored in the comparison. */
const RELEASED = /20\d\d-?[01]\d-?[0-3]\d/g;

interface Spelling {
  readonly maker: string;
  readonly letters: string;
  readonly pairs: ReadonlySet<string>;
}

/** Built at the first unknown name and cached, since requests for unknown names come in floods. */
const spellingsByCatalog = new WeakMap<Catalog, ReadonlyMap<Model, Spelling>>();

/** Compares only letters and digits: `GPT4o` equals `gpt-4o`. */
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

/** Dice coefficient of the letter pairs, from 0 to 1; plus 1 if the name asked for is a prefix of the model's. */
function likeness(asked: Spelling, model: Spelling): number {
  let common = 0;
  for (const pair of asked.pairs) if (model.pairs.has(pair)) common += 1;
  const share = (2 * common) / Math.max(1, asked.pairs.size + model.pairs.size);
  return asked.letters.length >= BEGINNING_MIN && model.letters.startsWith(asked.letters) ? 1 + share : share;
}

/** Ids of models that this request may use, most similar first. If the name begins with a maker that has usable models, only that maker's. */
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
