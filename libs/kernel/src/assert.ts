/** Bugs: a broken invariant is asserted loudly; the request fails with 500 and the process stays sound. */

export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

export function assert(condition: unknown, message: string): asserts condition {
  if (condition !== true && !condition) throw new InvariantError(message);
}

/** For the default of an exhaustive switch: a new case breaks the build. */
export function unreachable(value: never): never {
  throw new InvariantError(`Unreachable value of type ${typeof value}.`);
}
