/** Objects of a body that take the fields they name and no others, and tell which. */
import { z } from 'zod';
import { likely } from './query-fields.js';

/** Strict: whoever misspells a restriction would get less of one, and be told that all is well. `within`: nested objects, whose fields a client may look for here. */
export function strictFields<Shape extends z.ZodRawShape>(shape: Shape, within: Readonly<Record<string, z.ZodObject>> = {}): z.ZodObject<Shape, z.core.$strict> {
  const names = Object.keys(shape);
  /** By the name of a nested field, where it stands. */
  const inner = new Map(Object.entries(within).flatMap(([field, { shape: fields }]) => Object.keys(fields).map((name) => [name, `${field}.${name}`] as const)));
  const meantBy = (given: string): string | undefined => inner.get(given) ?? likely(given, names) ?? inner.get(likely(given, [...inner.keys()]) ?? '');
  return z.strictObject(shape, {
    // Undefined = the library's own sentence.
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return undefined;
      const meant = meantBy(issue.keys[0] ?? '');
      return `there is no such field. ${meant === undefined ? '' : `Did you mean '${meant}'? `}It takes ${names.join(', ')}`;
    },
  });
}
