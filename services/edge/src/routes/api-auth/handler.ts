/** /api/auth: a client's own API keys (docs/keys.md). */
import type { CreateKeyRequest, CreateKeyResponse__Output, KeyAnswer__Output, KeyRef, ListKeysRequest, ListKeysResponse__Output, RevokeKeyRequest, RotateKeyRequest, UpdateKeyRequest } from '@signalbox/contracts/accounts';
import { Router, type Request, type Response } from 'express';
import { hasNoBody } from '../../adapters/body.js';
import type { ClaimEnding } from '../../domain/repeats.js';
import { packAnswer } from '../../wire/kept-answer.js';
import { keepsAnswers, type RepeatGate } from '../repeat-gate.js';
import { exactJson } from './exact-json.js';
import { INVALID, sendJson as send, type Control } from '../control-route.js';
import type { NameCheck, UnknownName } from '../known-names.js';
import { takesQuery } from '../query-fields.js';
import { createSchema, isAbsent, keyBody, limitsWith, rotateSchema, updateSchema } from './schema.js';

/** For JSON.stringify of a parsed body. */
const bigintAsText = (_name: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);

/** Router to be mounted at /api/auth, behind the scope `keys`. */
export function createApiAuthRouter({ call, parse, refuse, fail, callerOf }: Control, repeats: RepeatGate, unknownName: NameCheck): Router {
  const notFound = (response: Response): void => fail(response, { status: 404, type: 'invalid_request_error', code: 'key_not_found', param: 'key_id', message: 'No such API key.' });

  const refOf = (request: Request): { readonly accountId: string; readonly keyId: string } => ({ accountId: callerOf(request).caller.account.id, keyId: String(request.params['id'] ?? '') });

  const unknownModel = (request: Request, names: readonly string[] | undefined, kept?: readonly string[]): Promise<UnknownName | undefined> =>
    unknownName({ allowModels: { field: 'limits.allowed_models', names, kept } }, callerOf(request).requestId);
  const refuseName = (response: Response, { field, message }: UnknownName): void => fail(response, { ...INVALID, code: 'invalid_value', param: field, message });

  const router = Router();
  router.param('id', (_request, response: Response, next: () => void, id: string) => (id.includes('\0') ? notFound(response) : next()));
  router.post('/', takesQuery(), async (request, response) => {
    const body = await parse(request, response, createSchema);
    if (body === undefined) return;
    const unknown = await unknownModel(request, body.limits?.allowedModels);
    if (unknown !== undefined) {
      refuseName(response, unknown);
      return;
    }
    const { caller, requestId } = callerOf(request);
    const { account, key } = caller;
    const idempotencyKey = request.headers['idempotency-key'];
    const claim = typeof idempotencyKey !== 'string' ? undefined : await repeats.enter({ request, response, requestId, caller, key: idempotencyKey, body: Buffer.from(JSON.stringify(body, bigintAsText)), isBilled: false, mayKeep: true });
    if (typeof idempotencyKey === 'string' && claim === undefined) return;
    let ending: ClaimEnding = { kind: 'abandoned' };
    try {
      const made = await call<CreateKeyRequest, CreateKeyResponse__Output>(request, 'CreateKey', {
        accountId: account.id,
        name: body.name,
        scopes: body.scopes ?? [],
        actorKeyId: key.id,
        ...(claim === undefined ? {} : { repeatDigest: claim.keyDigest }),
        ...(isAbsent(body.expires_in) ? {} : { expiresInSeconds: String(body.expires_in) }),
        ...(isAbsent(body.limits) ? {} : { limits: body.limits }),
      });
      if (made.key === null) {
        ending = { kind: 'freed' };
        refuse(response, made.problem);
      } else {
        const location = `/api/auth/${made.key.id}`;
        // The secret is shown only once: a repeat gets the record without it.
        ending = { kind: 'ended', costNanoUsd: 0n, answer: claim !== undefined && keepsAnswers(caller) ? packAnswer({ status: 201, headers: ['content-type', 'application/json; charset=utf-8', 'cache-control', 'no-store', 'location', location, 'x-request-id', requestId], trailers: [], body: Buffer.from(exactJson(keyBody(made.key))) }) : undefined };
        // An earlier request made the key, but its answer was lost, and with it the secret.
        if (made.secret === '') response.setHeader('Idempotent-Replayed', 'true');
        send(response.location(location), 201, keyBody(made.key, made.secret === '' ? undefined : made.secret));
      }
    } finally {
      void claim?.end(ending);
    }
  });

  router.get('/', takesQuery('limit', 'after', 'status'), async (request, response) => {
    const twice = ['limit', 'after', 'status'].find((name) => Array.isArray(request.query[name]));
    if (twice !== undefined) {
      fail(response, { ...INVALID, code: 'invalid_value', param: twice, message: `${twice} must be given once.` });
      return;
    }
    const text = (name: string): string => (typeof request.query[name] === 'string' ? request.query[name] : '');
    const limit = text('limit') === '' ? 20 : /^\d{1,3}$/.test(text('limit')) ? Number(text('limit')) : 0;
    if (limit < 1 || limit > 100) {
      fail(response, { ...INVALID, code: 'invalid_value', param: 'limit', message: 'limit must be from 1 to 100.' });
      return;
    }
    const page = await call<ListKeysRequest, ListKeysResponse__Output>(request, 'ListKeys', { accountId: callerOf(request).caller.account.id, limit, after: text('after'), status: text('status') });
    if (page.problem !== '') refuse(response, page.problem);
    else send(response, 200, { object: 'list', data: page.keys.map((key) => keyBody(key)), has_more: page.hasMore, first_id: page.keys[0]?.id ?? null, last_id: page.keys.at(-1)?.id ?? null });
  });

  const answer = (response: Response, found: KeyAnswer__Output): void => {
    if (!found.found) notFound(response);
    else if (found.key === null) refuse(response, found.problem);
    else send(response, 200, keyBody(found.key));
  };

  router.get('/:id', takesQuery(), async (request, response) => answer(response, await call<KeyRef, KeyAnswer__Output>(request, 'GetKey', refOf(request))));

  router.patch('/:id', takesQuery(), async (request, response) => {
    const body = await parse(request, response, updateSchema);
    if (body === undefined) return;
    const change: UpdateKeyRequest = {
      ref: refOf(request),
      replaceLimits: body.limits === null,
      actorKeyId: callerOf(request).caller.key.id,
      ...(isAbsent(body.name) ? {} : { name: body.name }),
      ...(isAbsent(body.disabled) ? {} : { disabled: body.disabled }),
    };
    if (!isAbsent(body.limits) && body.limits.limitNames.length > 0) {
      const { limits, limitNames } = body.limits;
      const before = await call<KeyRef, KeyAnswer__Output>(request, 'GetKey', refOf(request));
      if (before.key === null) {
        answer(response, before);
        return;
      }
      // What the key has may have been in an earlier catalog.
      const unknown = await unknownModel(request, limits.allowedModels, before.key.limits?.allowedModels);
      if (unknown !== undefined) {
        refuseName(response, unknown);
        return;
      }
      // Accounts takes the limits that are named; a version before that takes them all, hence the present ones beside them.
      Object.assign(change, { replaceLimits: true, limits: limitsWith(before.key.limits, limits, limitNames), limitNames });
    }
    answer(response, await call<UpdateKeyRequest, KeyAnswer__Output>(request, 'UpdateKey', change));
  });

  router.delete('/:id', takesQuery(), async (request, response) => {
    const { found, key } = await call<RevokeKeyRequest, KeyAnswer__Output>(request, 'RevokeKey', { ref: refOf(request) });
    if (!found || key === null) notFound(response);
    else send(response, 200, { id: key.id, object: 'api_key', deleted: true, status: 'revoked', revoked_at: Number(key.revokedAt ?? 0) });
  });

  router.post('/:id/rotate', takesQuery(), async (request, response) => {
    const body = hasNoBody(request) ? {} : await parse(request, response, rotateSchema);
    if (body === undefined) return;
    const made = await call<RotateKeyRequest, CreateKeyResponse__Output>(request, 'RotateKey', { ref: refOf(request), graceSeconds: body.grace_seconds ?? 0, actorKeyId: callerOf(request).caller.key.id });
    if (made.key !== null) send(response, 200, keyBody(made.key, made.secret));
    else if (made.problem === '') notFound(response);
    else refuse(response, made.problem);
  });
  return router;
}
