/** Keys that a list may be narrowed to. */
import type { KeyRecord } from './types.js';

export interface KeyChoice {
  readonly value: string;
  readonly label: string;
}

const KEY_ID = /^key_[0-9A-HJKMNP-TV-Z]{26}$/;

/**
 * The account's keys by their names, with what tells those of one name apart, then by their ids those that are not among
 * `keys`, which this key may not read or which are more than were read: `used` ones, and of `told` what is the id of a key.
 */
export function keyChoices(keys: readonly Pick<KeyRecord, 'id' | 'name' | 'prefix'>[], used: readonly string[], ...told: readonly string[]): readonly KeyChoice[] {
  const named = new Map<string, number>();
  for (const { name } of keys) named.set(name, (named.get(name) ?? 0) + 1);
  const known = new Set(keys.map(({ id }) => id));
  const others = new Set([...used, ...told.map((text) => text.trim()).filter((text) => KEY_ID.test(text))].filter((id) => !known.has(id)));
  return [...keys.map(({ id, name, prefix }) => ({ value: id, label: named.get(name) === 1 ? name : `${name} (${prefix}…)` })), ...[...others].map((id) => ({ value: id, label: id }))];
}

/** True for a choice whose name or id has what was typed. */
export function isFoundBy(search: string, { value, label }: KeyChoice): boolean {
  const text = search.trim().toLowerCase();
  return label.toLowerCase().includes(text) || value.toLowerCase().includes(text);
}
