/** Strict reading of query parameters: a misspelt filter would otherwise be ignored, and the sums of all keys mistaken for those of one. */
import { isSlip } from '@signalbox/kernel/slip';
import type { Request } from 'express';

/** Thrown by readers of the query; answered with 400. */
export class QueryError extends Error {
  override readonly name = 'QueryError';

  constructor(
    readonly param: string,
    message: string,
  ) {
    super(message);
  }
}

/** Characters of a client's own text that are repeated in an error. */
const NAME_MAX = 64;

const wordsOf = (name: string): readonly string[] => name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toLowerCase().split(/[^a-z]+/).filter((word) => word !== '');

/** The field that is probably meant: `key` for `key_id`, `group_by` for `group` or `groupBy`, `from` for `form`. */
export function likely(given: string, names: readonly string[]): string | undefined {
  const words = wordsOf(given);
  if (words.length === 0) return undefined;
  const isOf = (some: readonly string[], all: readonly string[]): boolean => some.every((word) => all.includes(word));
  return names.find((name) => isOf(wordsOf(name), words) || isOf(words, wordsOf(name))) ?? names.find((name) => isSlip(name, given));
}

/** Middleware that throws a QueryError for the first query parameter that is not in `names`. */
export const takesQuery = (...names: readonly string[]) => (request: Pick<Request, 'query'>, _response: unknown, next: () => void): void => {
  const other = Object.keys(request.query).find((name) => !names.includes(name));
  if (other === undefined) {
    next();
    return;
  }
  const given = other.slice(0, NAME_MAX);
  const meant = likely(given, names);
  const hint = names.length === 0 ? 'This address takes none.' : `${meant === undefined ? '' : `Did you mean '${meant}'? `}It takes ${names.join(', ')}.`;
  throw new QueryError(given, `There is no query parameter '${given}' here. ${hint}`);
};
