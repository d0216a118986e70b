/**
 * Allow lists of models, of an account's policy and of a key. An empty list allows all. `auto` alone allows `auto` to
 * choose among all models, and no model by name. With other names, `auto` may choose only among those. A name may end
 * with `*`. Case is ignored.
 */

/** No model has this id. Used if nothing is allowed, since an empty list would allow all. */
const NO_MODEL = '-';

/** Normalises a list's name for comparison. */
export function listName(name: string): string {
  return name.toLowerCase();
}

/** True for either variant's id of the automatic-routing model. */
export function isAutoModelId(id: string): boolean {
  return id === 'auto' || id === 'router-auto';
}

function namesOf(list: readonly string[]): string[] {
  return list.map(listName).filter((name) => !isAutoModelId(name));
}

/** The narrower of two names, if one of them covers the other. */
function narrower(one: string, other: string): string | undefined {
  if (one === other || (other.endsWith('*') && one.startsWith(other.slice(0, -1)))) return one;
  return one.endsWith('*') && other.startsWith(one.slice(0, -1)) ? other : undefined;
}

export interface AllowedModels {
  /** For requests that leave every choice to `auto`. */
  readonly viaAuto: readonly string[];
  /** For those that name a model. */
  readonly byName: readonly string[];
}

/** The intersection of both lists, as lists; contains one name that no model has if they have nothing in common. */
export function bothAllow(one: readonly string[], other: readonly string[]): AllowedModels {
  if (one.length === 0) return { viaAuto: other, byName: other };
  if (other.length === 0) return { viaAuto: one, byName: one };
  const [names, otherNames] = [namesOf(one), namesOf(other)];
  if (names.length === 0 && otherNames.length === 0) return { viaAuto: one, byName: one };
  if (names.length === 0) return { viaAuto: otherNames, byName: [NO_MODEL] };
  if (otherNames.length === 0) return { viaAuto: names, byName: [NO_MODEL] };
  const common = new Set(names.flatMap((name) => otherNames.flatMap((otherName) => narrower(name, otherName) ?? [])));
  const left = common.size === 0 ? [NO_MODEL] : [...common];
  return { viaAuto: left, byName: left };
}

/** True if `wanted` may allow more than `bound`: each of its names must be in `bound`, literally. */
export function mayAllowMore(wanted: readonly string[], bound: readonly string[]): boolean {
  if (bound.length === 0) return false;
  const named = new Set(bound.map(listName));
  if (wanted.length === 0 || !wanted.every((name) => named.has(listName(name)))) return true;
  // `auto` alone means any model, even if `bound` has `auto` with other names.
  return namesOf(wanted).length === 0 && namesOf(bound).length > 0;
}

/** The names by which a list may refer to a model. */
export interface NamedModel {
  readonly id: string;
  readonly aliases?: readonly string[];
}

export type ModelMatcher = (model: NamedModel) => boolean;
type ListKind = 'allow' | 'deny';

/** Resolves names in lists to models of one catalog. */
export interface ModelNames {
  /** Matches models that one of the names refers to. A deny list matches all models with an ambiguous name, an allow list none of them. */
  matcher(names: readonly string[], kind: ListKind): ModelMatcher;
  /** Names that match nothing. A pattern of a known maker (`openai/gpt-9*`) counts as known, since it may mean future models. */
  unknown(names: readonly string[], kind: ListKind): string[];
}

/** Ids of the models with a name: the model with that id, else with that alias, else all with that bare id. */
function idsByName(models: readonly NamedModel[]): ReadonlyMap<string, readonly string[]> {
  const ids = new Map<string, readonly string[]>();
  const namesBy: readonly ((model: NamedModel) => readonly string[])[] = [({ id }) => [id], ({ aliases = [] }) => aliases, ({ id }) => [id.slice(id.indexOf('/') + 1)]];
  for (const namesOf of namesBy) {
    const found = new Map<string, Set<string>>();
    for (const model of models) for (const name of namesOf(model).map(listName)) found.set(name, (found.get(name) ?? new Set<string>()).add(model.id));
    for (const [name, called] of found) if (!ids.has(name)) ids.set(name, [...called]);
  }
  return ids;
}

export function createModelNames(models: readonly NamedModel[]): ModelNames {
  const ids = idsByName(models);
  const called = (name: string): readonly string[] => ids.get(listName(name)) ?? [];
  const isKnown = (name: string, kind: ListKind): boolean => {
    if (kind === 'allow' && isAutoModelId(listName(name))) return true;
    if (!name.endsWith('*')) return kind === 'deny' ? called(name).length > 0 : called(name).length === 1;
    const prefix = listName(name.slice(0, -1));
    const maker = prefix.slice(0, prefix.indexOf('/') + 1);
    return models.some(({ id }) => listName(id).startsWith(maker === '' ? prefix : maker));
  };
  return {
    matcher: (names, kind) => {
      const meant = new Set<string>();
      const prefixes: string[] = [];
      for (const name of names) {
        if (name.endsWith('*')) prefixes.push(listName(name.slice(0, -1)));
        else {
          const models = called(name);
          if (kind === 'deny' || models.length === 1) for (const id of models) meant.add(id);
        }
      }
      return ({ id }) => meant.has(id) || prefixes.some((prefix) => listName(id).startsWith(prefix));
    },
    unknown: (names, kind) => names.filter((name) => !isKnown(name, kind)),
  };
}

export interface ModelLists {
  readonly allowModels: readonly string[];
  readonly denyModels: readonly string[];
}

/**
 * The models that the allow and deny lists permit. The name `auto` in an allow list permits `auto` itself: alone, over every
 * model, and no pinned model; with other names, `auto` may choose only among those.
 */
export function modelsLeft(names: ModelNames, { allowModels, denyModels }: ModelLists, viaAuto: boolean): ModelMatcher {
  if (allowModels.length === 0 && denyModels.length === 0) return () => true;
  const named = namesOf(allowModels);
  const onlyAuto = allowModels.length > 0 && named.length === 0;
  const isNamed = names.matcher(named, 'allow');
  const isDenied = names.matcher(denyModels, 'deny');
  return (model) => !isDenied(model) && (onlyAuto ? viaAuto : allowModels.length === 0 || isNamed(model));
}
