/** An API error that a route throws: the Express error handler renders it. */
import type { ApiError } from '../wire/errors.js';

export class ApiErrorException extends Error {
  override readonly name = 'ApiErrorException';
  readonly error: ApiError;

  constructor(error: ApiError) {
    super(error.code ?? error.type);
    this.error = error;
  }
}
