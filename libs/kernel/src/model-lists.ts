/**
 * Allow lists of models, as an account's policy and a key have them. An empty list allows all. `auto` alone allows `auto`
 * to choose among all, and no model by its name; beside other names those are what is allowed, of `auto` too. A name
 * may end with `*`. Capitals make no difference.
 */

/** No model has this id: where nothing is left, an empty list would allow all. */
const NO_MODEL = '-';

/** A name of a list, as it is compared. */
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

/** The narrower of two names, if one holds all that the other does. */
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

/** What both lists allow, as lists again; one name that no model has where they have none in common. */
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

/** True when `wanted` may allow what `bound` does not: all it names must be named there, letter for letter. */
export function mayAllowMore(wanted: readonly string[], bound: readonly string[]): boolean {
  if (bound.length === 0) return false;
  const named = new Set(bound.map(listName));
  if (wanted.length === 0 || !wanted.every((name) => named.has(listName(name)))) return true;
  // `auto` alone is any model, also where it stands beside names in `bound`.
  return namesOf(wanted).length === 0 && namesOf(bound).length > 0;
}

/** What a list may call a model by. */
export interface NamedModel {
  readonly id: string;
  readonly aliases?: readonly string[];
}

export type ModelMatcher = (model: NamedModel) => boolean;
type ListKind = 'allow' | 'deny';

/** The models of one catalog, as lists name them. */
export interface ModelNames {
  /** Models that one of the names stands for: what forbids takes every model of that name, what allows only one that is alone in it. */
  matcher(names: readonly string[], kind: ListKind): ModelMatcher;
  /** Of the names, those that stand for nothing. Behind a maker that is known (`openai/gpt-9*`) may come what is not there yet. */
  unknown(names: readonly string[], kind: ListKind): string[];
}

/** Ids of the models that go by a name: the one with that id, else with that alias, else all whose bare id it is. */
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
 * Which models the allow and deny lists leave. The name `auto` in an allow list permits `auto` itself: alone, it permits
 * `auto` over every model and nothing pinned; beside other names, those bound what `auto` may choose.
 */
export function modelsLeft(names: ModelNames, { allowModels, denyModels }: ModelLists, viaAuto: boolean): ModelMatcher {
  if (allowModels.length === 0 && denyModels.length === 0) return () => true;
  const named = namesOf(allowModels);
  const onlyAuto = allowModels.length > 0 && named.length === 0;
  const isNamed = names.matcher(named, 'allow');
  const isDenied = names.matcher(denyModels, 'deny');
  return (model) => !isDenied(model) && (onlyAuto ? viaAuto : allowModels.length === 0 || isNamed(model));
}
