/** Objects of a body that take the fields they name and no others, and tell which. */
import { z } from 'zod';
import { likely } from './query-fields.js';

/** Strict: whoever misspells a restriction would get less of one, and be told that all is well. */
export function strictFields<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const names = Object.keys(shape);
  return z.strictObject(shape, {
    // Undefined = the library's own sentence.
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return undefined;
      const meant = likely(issue.keys[0] ?? '', names);
      return `there is no such field. ${meant === undefined ? '' : `Did you mean '${meant}'? `}It takes ${names.join(', ')}`;
    },
  });
}
