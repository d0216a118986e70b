/** Shared by the routes for an account's own settings: the call to accounts, parsing a body by its schema, and refusals. */
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import type { Caller } from '../domain/ports.js';
import { apiError, faultToApiError } from '../wire/errors.js';
import { ApiErrorException } from './api-error-exception.js';
import { exactJson } from './api-auth/exact-json.js';
import { isAbsent } from './api-auth/schema.js';
import { placeOf, wordsOf } from './issue-words.js';

/** The error as in the API. */
export interface RouteError {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;
  readonly message: string;
}

export interface ControlDeps {
  readonly accounts: RpcClient;
  /** The caller, already authenticated, admitted, and with the route's scope. */
  callerOf(request: Request): { readonly caller: Caller; readonly requestId: string };
  /** The parsed JSON body; rejects with an error that the application's error handler answers. */
  readJson(request: Request): Promise<unknown>;
  fail(response: Response, error: RouteError): void;
}

export interface Control {
  /** Rejects with an ApiErrorException `accounts_unavailable`, or with a Fault `internal_error` for a bug. */
  call<Message extends object, Answer>(request: Request, method: string, message: Message): Promise<Answer>;
  /** The body checked by its schema, or undefined after the refusal was sent. */
  parse<Body>(request: Request, response: Response, schema: z.ZodType<Body>): Promise<Body | undefined>;
  /** Answers with a problem that accounts found: a sentence that begins with the field's name, after the error code and a colon if it has one. */
  refuse(response: Response, problem: string): void;
  fail(response: Response, error: RouteError): void;
  callerOf: ControlDeps['callerOf'];
}

const DEADLINE_MS = 5_000;
export const INVALID = { status: 400, type: 'invalid_request_error' } as const;

/** JSON with exact amounts. */
export function sendJson(response: Response, status: number, body: object): void {
  response.status(status).type('application/json').set('cache-control', 'no-store').send(exactJson(body));
}

function refusalOf(issue: z.core.$ZodIssue | undefined, body: unknown): RouteError {
  const path = issue === undefined ? [] : placeOf(issue);
  // Written as in errors of chat completions: `cost_caps.[0].period`.
  const param = path.length === 0 ? null : path.map((part) => (typeof part === 'number' ? `[${part}]` : String(part))).join('.');
  if (param !== null && (issue?.code === 'invalid_type' || issue?.code === 'invalid_value') && isAbsent(at(body, path))) return { ...INVALID, code: 'missing_required_parameter', param, message: `${param} is required.` };
  const code = issue?.code === 'invalid_type' && issue.expected !== 'int' ? 'invalid_type' : 'invalid_value';
  return { ...INVALID, code, param, message: `${param ?? 'body'}: ${wordsOf(issue)}.` };
}

/** The body's value at `path`; undefined = none. */
function at(body: unknown, path: readonly PropertyKey[]): unknown {
  let value = body;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

/** The caller's key is known to be right, so nothing is said of it. Whoever repeats a change that was made has two keys, or a rotated secret that is lost. */
function unanswered(method: string): ApiErrorException {
  const error = faultToApiError(new Fault('accounts_unavailable', 'accounts did not answer'));
  const isRead = method === 'GET' || method === 'HEAD';
  return new ApiErrorException({ ...error, message: isRead ? 'Keys and settings cannot be read right now. Please retry.' : 'The change was not confirmed in time, and may have been made: look before you send it again.' });
}

export function createControl({ accounts, callerOf, readJson, fail }: ControlDeps): Control {
  return {
    callerOf,
    fail,
    call: async (request, method, message) => {
      try {
        return await accounts.unary(method, message, { deadlineMs: DEADLINE_MS, requestId: callerOf(request).requestId });
      } catch (error) {
        throw error instanceof Fault && error.code === 'internal_error' ? error : unanswered(request.method);
      }
    },
    parse: async (request, response, schema) => {
      const body = await readJson(request);
      const parsed = schema.safeParse(body ?? {});
      if (parsed.success) return parsed.data;
      // A misspelt field is named first, before the one that is missing because of it.
      const { issues } = parsed.error;
      fail(response, refusalOf(issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0], body));
      return undefined;
    },
    refuse: (response, problem) => {
      const [, code, message = problem] = /^(?:(insufficient_scope|api_key_revoked|api_key_expired|invalid_api_key): )?(.*)$/.exec(problem) ?? [];
      if (code !== undefined && code !== 'insufficient_scope') {
        fail(response, apiError(code as 'api_key_revoked' | 'api_key_expired' | 'invalid_api_key'));
        return;
      }
      const kind = code === undefined ? { ...INVALID, code: 'invalid_value' } : { status: 403, type: 'permission_error', code };
      fail(response, { ...kind, param: /^[a-z_.]+/.exec(message)?.[0] ?? null, message });
    },
  };
}
