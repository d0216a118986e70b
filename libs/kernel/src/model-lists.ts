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
