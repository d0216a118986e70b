/** Reads requests to, and writes answers of, the admin port. */
import type { Request, Response } from 'express';
import type { z } from 'zod';
import { exactJson } from '../api-auth/exact-json.js';
import { textOf } from '../books/schema.js';
import { QueryError } from '../query-fields.js';

/** Deadline of an ordinary call to another service. */
export const ANSWER_OPTIONS = { deadlineMs: 10_000 } as const;

export function send(response: Response, body: object, status = 200): void {
  response.status(status).type('application/json').set('cache-control', 'no-store').send(exactJson(body));
}
export function refuse(response: Response, status: number, message: string, param: string | null = null): void {
  send(response, { error: { message, type: 'invalid_request_error', param, code: status === 404 ? 'not_found' : 'invalid_value' } }, status);
}
/** Body by its schema; throws ZodError, answered with 400. */
export function bodyOf<Body>(request: Request, schema: z.ZodType<Body>): Body {
  return schema.parse(request.body ?? {});
}
/** A parameter of the query; empty when absent. Throws QueryError, answered with 400, when it is given twice. */
export const text = (request: Request, name: string): string => textOf(request.query, name);
/** The same as a whole number of at most fifteen digits; '0' when absent. */
export function digits(request: Request, name: string): string {
  const given = text(request, name);
  if (!/^\d{0,15}$/.test(given)) throw new QueryError(name, `${name} must be a whole number.`);
  return given === '' ? '0' : given;
}
export const id = (request: Request): string => String(request.params['id'] ?? '');
