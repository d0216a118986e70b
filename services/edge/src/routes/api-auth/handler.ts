/** /api/auth: a client's own API keys (contract, section 10). */
import type { CreateKeyRequest, CreateKeyResponse__Output, KeyAnswer__Output, KeyRef, ListKeysRequest, ListKeysResponse__Output, RevokeKeyRequest, RotateKeyRequest, UpdateKeyRequest } from '@signalbox/contracts/accounts';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router, type Request, type Response } from 'express';
import type { z } from 'zod';
import { exactJson } from './exact-json.js';
import { createSchema, keyBody, rotateSchema, updateSchema } from './schema.js';

/** The same shape as the wire's error. */
export interface RouteError {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;
  readonly message: string;
}

export interface ApiAuthDeps {
  readonly accounts: RpcClient;
  /** Who calls, already authenticated, with scope `keys` and admitted. */
  callerOf(request: Request): { readonly keyId: string; readonly accountId: string; readonly scopes: readonly string[]; readonly requestId: string };
  /** The parsed JSON body; rejects with an error that the application's own handler answers. */
  readJson(request: Request): Promise<unknown>;
  fail(response: Response, error: RouteError): void;
}

const DEADLINE_MS = 5_000;
const INVALID = { status: 400, type: 'invalid_request_error' } as const;

function send(response: Response, status: number, body: object): void {
  response.status(status).type('application/json').set('cache-control', 'no-store').send(exactJson(body));
}

/** Router to be mounted at /api/auth. */
export function createApiAuthRouter({ accounts, callerOf, readJson, fail }: ApiAuthDeps): Router {
  const call = async <Message extends object, Answer>(request: Request, method: string, message: Message): Promise<Answer> => {
    try {
      return await accounts.unary<Message, Answer>(method, message, { deadlineMs: DEADLINE_MS, requestId: callerOf(request).requestId });
    } catch (error) {
      throw error instanceof Fault && error.code === 'internal_error' ? error : new Fault('accounts_unavailable', 'accounts did not answer', { cause: error });
    }
  };

  const notFound = (response: Response): void => fail(response, { status: 404, type: 'invalid_request_error', code: 'key_not_found', param: 'key_id', message: 'No such API key.' });

  const refuse = (response: Response, problem: string): void => {
    const scope = /^insufficient_scope: (.*)$/.exec(problem);
    if (scope !== null) fail(response, { status: 403, type: 'permission_error', code: 'insufficient_scope', param: 'scopes', message: scope[1] ?? problem });
    else fail(response, { ...INVALID, code: 'invalid_value', param: /^[a-z_.]+/.exec(problem)?.[0] ?? null, message: problem });
  };

  /** The body by its schema, or undefined after the refusal was sent. */
  const parse = async <Body>(request: Request, response: Response, schema: z.ZodType<Body>): Promise<Body | undefined> => {
    const body = await readJson(request);
    const parsed = schema.safeParse(body ?? {});
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const param = issue === undefined || issue.path.length === 0 ? null : issue.path.join('.');
    const isMissing = param !== null && typeof body === 'object' && body !== null && issue?.path.length === 1 && !(param in body);
    const code = isMissing ? 'missing_required_parameter' : issue?.code === 'invalid_type' && issue.expected !== 'int' ? 'invalid_type' : 'invalid_value';
    fail(response, { ...INVALID, code, param, message: isMissing ? `${param} is required.` : `${param ?? 'body'}: ${issue?.message ?? 'is not valid'}.` });
    return undefined;
  };

  const refOf = (request: Request): { readonly accountId: string; readonly keyId: string } => ({ accountId: callerOf(request).accountId, keyId: String(request.params['id'] ?? '') });

  const router = Router();
  router.post('/', async (request, response) => {
    const body = await parse(request, response, createSchema);
    if (body === undefined) return;
    const { accountId, keyId } = callerOf(request);
    const made = await call<CreateKeyRequest, CreateKeyResponse__Output>(request, 'CreateKey', {
      accountId,
      name: body.name,
      scopes: body.scopes ?? [],
      actorKeyId: keyId,
      ...(body.expires_in === undefined || body.expires_in === null ? {} : { expiresInSeconds: String(body.expires_in) }),
      ...(body.limits === undefined || body.limits === null ? {} : { limits: body.limits }),
    });
    if (made.key === null) refuse(response, made.problem);
    else send(response.location(`/api/auth/${made.key.id}`), 201, keyBody(made.key, made.secret));
  });

  router.get('/', async (request, response) => {
    const text = (name: string): string => (typeof request.query[name] === 'string' ? request.query[name] : '');
    const limit = text('limit') === '' ? 20 : /^\d{1,3}$/.test(text('limit')) ? Number(text('limit')) : 0;
    if (limit < 1 || limit > 100) {
      fail(response, { ...INVALID, code: 'invalid_value', param: 'limit', message: 'limit must be from 1 to 100.' });
      return;
    }
    const page = await call<ListKeysRequest, ListKeysResponse__Output>(request, 'ListKeys', { accountId: callerOf(request).accountId, limit, after: text('after'), status: text('status') });
    if (page.problem !== '') refuse(response, page.problem);
    else send(response, 200, { object: 'list', data: page.keys.map((key) => keyBody(key)), has_more: page.hasMore, first_id: page.keys[0]?.id ?? null, last_id: page.keys.at(-1)?.id ?? null });
  });

  const answer = (response: Response, found: KeyAnswer__Output): void => {
    if (!found.found) notFound(response);
    else if (found.key === null) refuse(response, found.problem);
    else send(response, 200, keyBody(found.key));
  };

  router.get('/:id', async (request, response) => answer(response, await call<KeyRef, KeyAnswer__Output>(request, 'GetKey', refOf(request))));

  router.patch('/:id', async (request, response) => {
    const body = await parse(request, response, updateSchema);
    if (body === undefined) return;
    const change: UpdateKeyRequest = {
      ref: refOf(request),
      replaceLimits: body.limits !== undefined,
      ...(body.name === undefined ? {} : { name: body.name }),
      ...(body.disabled === undefined ? {} : { disabled: body.disabled }),
      ...(body.limits === undefined || body.limits === null ? {} : { limits: body.limits }),
    };
    answer(response, await call<UpdateKeyRequest, KeyAnswer__Output>(request, 'UpdateKey', change));
  });

  router.delete('/:id', async (request, response) => {
    const { found, key } = await call<RevokeKeyRequest, KeyAnswer__Output>(request, 'RevokeKey', { ref: refOf(request) });
    if (!found || key === null) notFound(response);
    else send(response, 200, { id: key.id, object: 'api_key', deleted: true, status: 'revoked', revoked_at: Number(key.revokedAt ?? 0) });
  });

  router.post('/:id/rotate', async (request, response) => {
    const body = await parse(request, response, rotateSchema);
    if (body === undefined) return;
    const made = await call<RotateKeyRequest, CreateKeyResponse__Output>(request, 'RotateKey', { ref: refOf(request), graceSeconds: body.grace_seconds });
    if (made.key !== null) send(response, 200, keyBody(made.key, made.secret));
    else if (made.problem === '') notFound(response);
    else refuse(response, made.problem);
  });
  return router;
}
