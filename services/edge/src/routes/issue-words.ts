/** Words for schema violations, as in the errors of chat completions. */
import type { z } from 'zod';

/** Characters of a client's own text that are repeated in an error. */
const NAME_MAX = 64;

/** The path of the violation; for unknown fields that of the first one. */
export function placeOf(issue: z.core.$ZodIssue): readonly PropertyKey[] {
  return issue.code === 'unrecognized_keys' ? [...issue.path, (issue.keys[0] ?? '').slice(0, NAME_MAX)] : issue.path;
}

const TYPES: Readonly<Record<string, string>> = {
  int: 'an integer', number: 'a number', string: 'a string', boolean: 'a boolean', object: 'an object', record: 'an object', array: 'an array', null: 'null',
};

const quoted = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value));

function bounds(origin: string, bound: number | bigint, isInclusive: boolean, side: 'least' | 'most'): string {
  if (origin === 'string') return side === 'least' && Number(bound) === 1 ? 'expected a string that is not empty' : `expected at ${side} ${String(bound)} characters`;
  if (origin === 'array' || origin === 'set') return `expected at ${side} ${String(bound)} item${Number(bound) === 1 ? '' : 's'}`;
  if (isInclusive) return `expected at ${side} ${String(bound)}`;
  return `expected ${side === 'least' ? 'more' : 'less'} than ${String(bound)}`;
}

/** True for the library's own message, and false for one that a schema gives. */
const isPlain = (message: string): boolean => /^(?:Invalid|Too (?:small|big)|Unrecognized)/.test(message);

/** A phrase in lower case without a full stop; messages of the schema itself are unchanged. */
export function wordsOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return 'is not valid';
  if (!isPlain(issue.message)) return issue.message;
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'there is no such field';
    case 'invalid_type':
      return `expected ${TYPES[issue.expected] ?? 'another type'}`;
    case 'invalid_value':
      return `expected ${issue.values.length === 1 ? '' : 'one of '}${issue.values.map(quoted).join(', ')}`;
    case 'too_small':
      return bounds(issue.origin, issue.minimum, issue.inclusive !== false, 'least');
    case 'too_big':
      return bounds(issue.origin, issue.maximum, issue.inclusive !== false, 'most');
    default:
      return 'is not of a form that is known here';
  }
}
