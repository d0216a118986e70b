/** A client's options of one plugin against its manifest: strict types, bounds, no unknown names. */
import { isStorableText } from '@signalbox/kernel/storable-text';
import type { OptionSpec, OptionSpecs, OptionValues } from './manifest.js';

/** What is wrong with an option; `name` is the option's. */
export interface OptionProblem {
  readonly name: string;
  readonly kind: 'unknown' | 'type' | 'value';
  /** What was expected, to be put behind "expected". */
  readonly expected: string;
}

export type OptionsRead<Specs extends OptionSpecs> = { readonly ok: true; readonly values: OptionValues<Specs> } | { readonly ok: false; readonly problem: OptionProblem };

const STORABLE = 'text without NUL characters and half surrogate pairs';

const isWhole = (value: unknown, min: number, max: number): boolean => typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;

/** Undefined when the value is fine. */
function problemOf(name: string, spec: OptionSpec, value: unknown): OptionProblem | undefined {
  const type = (expected: string): OptionProblem => ({ name, kind: 'type', expected });
  const wrong = (expected: string): OptionProblem => ({ name, kind: 'value', expected });
  switch (spec.type) {
    case 'integer':
      if (typeof value !== 'number') return type('an integer');
      return isWhole(value, spec.min, spec.max) ? undefined : wrong(`an integer from ${spec.min} to ${spec.max}`);
    case 'boolean':
      return typeof value === 'boolean' ? undefined : type('a boolean');
    case 'string':
      if (typeof value !== 'string') return type('a string');
      if (spec.choices !== undefined && !spec.choices.includes(value)) return wrong(`one of ${spec.choices.map((choice) => `'${choice}'`).join(', ')}`);
      if (!isStorableText(value)) return wrong(STORABLE);
      if (value.length >= (spec.minLength ?? 0) && value.length <= spec.maxLength) return undefined;
      return wrong(spec.minLength === undefined ? `at most ${spec.maxLength} characters` : `${spec.minLength} to ${spec.maxLength} characters`);
    case 'strings':
      if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) return type('an array of strings');
      if (value.length > spec.maxItems) return wrong(`at most ${spec.maxItems} items`);
      if (!value.every(isStorableText)) return wrong(STORABLE);
      return value.every((item: string) => item !== '' && item.length <= spec.maxLength) ? undefined : wrong(`items of 1 to ${spec.maxLength} characters`);
    case 'integers':
      if (!Array.isArray(value) || !value.every((item) => typeof item === 'number')) return type('an array of integers');
      if (value.length > spec.maxItems) return wrong(`at most ${spec.maxItems} items`);
      return value.every((item) => isWhole(item, spec.min, spec.max)) ? undefined : wrong(`integers from ${spec.min} to ${spec.max}`);
  }
}

function defaultOf(spec: OptionSpec): unknown {
  return spec.type === 'strings' || spec.type === 'integers' ? [] : spec.default;
}

/** Every option with its value or default; null counts as absent. The first problem otherwise. */
export function readOptions<Specs extends OptionSpecs>(specs: Specs, given: Readonly<Record<string, unknown>>): OptionsRead<Specs> {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(specs, name)) return { ok: false, problem: { name, kind: 'unknown', expected: `one of ${Object.keys(specs).map((known) => `'${known}'`).join(', ')}` } };
  }
  const values: Record<string, unknown> = {};
  for (const [name, spec] of Object.entries(specs)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined || value === null) {
      values[name] = defaultOf(spec);
      continue;
    }
    const problem = problemOf(name, spec, value);
    if (problem !== undefined) return { ok: false, problem };
    values[name] = value;
  }
  return { ok: true, values: values as OptionValues<Specs> };
}
