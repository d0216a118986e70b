/** The operator's door: its own application on ADMIN_PORT, behind a bearer token. */
import type { AccountAnswer__Output, CreateAccountResponse__Output, CreateKeyResponse__Output, KeyAnswer__Output, ListAccountsResponse__Output, ListKeysResponse__Output, ListProviderKeysResponse__Output, ProviderKeyAnswer__Output } from '@signalbox/contracts/accounts';
import type { LedgerResponse__Output, WatermarksResponse__Output } from '@signalbox/contracts/billing';
import type { AddSourceResponse__Output, DeletedResponse__Output, ListSourcesResponse__Output } from '@signalbox/contracts/plugins';
import type { ShowResponse__Output } from '@signalbox/contracts/quota';
import type { CatalogCheckResponse__Output, CatalogReloadResponse__Output, CatalogShowResponse__Output, ProvidersResponse__Output } from '@signalbox/contracts/routing';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Secret } from '@signalbox/runtime/secret';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { createHash, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { exactJson } from '../api-auth/exact-json.js';
import { keyBody } from '../api-auth/schema.js';
import { createNameCheck } from '../known-names.js';
import { isReadableUrl, isStorable } from '../../wire/storable.js';
import { createAdminBooksRouter } from './books.js';
import { createAdminDecisionsRouter } from './decisions.js';
import { naming, tellFault } from './neighbours.js';
import { providerKeyBody } from '../api-providers/handler.js';
import { accountBody, accountSettings, createAccountSchema, createKeySchema, providerKeySchema, setAccountSchema, sourceSchema } from './schema.js';

export interface AdminDeps {
  readonly accounts: RpcClient;
  readonly quota: RpcClient;
  readonly billing: RpcClient;
  readonly routing: RpcClient;
  /** Absent: no plugins here. */
  readonly plugins?: RpcClient | undefined;
  readonly adminToken: Secret;
  /** A worker of that provider runs, or is started for an account's own credential. */
  readonly isServed: (provider: string) => boolean;
}

const DEADLINE_MS = 10_000;
const LEDGER_PAGE_ROWS = 1_000;
const SOURCE_BYTES_MAX = 32 * 1_024 * 1_024;
/** Indexing a long book takes the store a while. */
const SOURCE_DEADLINE_MS = 60_000;

function send(response: Response, body: object, status = 200): void {
  response.status(status).type('application/json').set('cache-control', 'no-store').send(exactJson(body));
}
function refuse(response: Response, status: number, message: string): void {
  send(response, { error: { message, type: 'invalid_request_error', param: null, code: status === 404 ? 'not_found' : 'invalid_value' } }, status);
}
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Body by its schema; throws ZodError, answered with 400. */
function bodyOf<Body>(request: Request, schema: z.ZodType<Body>): Body {
  return schema.parse(request.body ?? {});
}
/** What express's reader of bodies refuses with. */
function isRefusedBody(error: unknown): error is { readonly status: number } {
  return error instanceof Error && 'status' in error && typeof error.status === 'number' && error.status >= 400 && error.status < 500;
}
const text = (request: Request, name: string): string => (typeof request.query[name] === 'string' ? request.query[name] : '');
const id = (request: Request): string => String(request.params['id'] ?? '');

export function createAdminApp({ adminToken, isServed, ...clients }: AdminDeps): Express {
  const accounts = naming('accounts', clients.accounts);
  const quota = naming('quota', clients.quota);
  const billing = naming('billing', clients.billing);
  const routing = naming('routing', clients.routing);
  const plugins = clients.plugins === undefined ? undefined : naming('plugins', clients.plugins);
  const app = express();
  app.disable('x-powered-by');
  app.set('query parser', 'simple');
  const expected = digest(`Bearer ${adminToken.unwrap()}`);
  app.use((request: Request, response: Response, next: NextFunction) => {
    if (timingSafeEqual(digest(request.headers.authorization ?? ''), expected)) next();
    else send(response, { error: { message: 'The admin token is missing or wrong.', type: 'invalid_request_error', param: null, code: 'invalid_api_key' } }, 401);
  });
  app.use((request: Request, response: Response, next: NextFunction) => {
    if (isReadableUrl(request.url) && !decodeURIComponent(request.path).includes('\0')) next();
    else refuse(response, 400, 'The address cannot be read: percent-encode it as UTF-8, without NUL characters.');
  });
  // Whole documents and books come here, and here alone.
  app.use('/admin/sources', express.json({ limit: SOURCE_BYTES_MAX }));
  app.use(express.json({ limit: '1mb' }));
  app.use((request: Request, response: Response, next: NextFunction) => {
    // Documents come as their files are: plugins takes out what cannot be kept.
    if (request.path === '/admin/sources' || isStorable(request.body)) next();
    else refuse(response, 400, 'The body holds a NUL character (\\u0000) or half a surrogate pair, which cannot be stored.');
  });
  const options = { deadlineMs: DEADLINE_MS };
  const unknownName = createNameCheck(routing);
  /** True when there is such a model, or none is named; else the refusal has been sent. */
  const isModel = async (name: string | null | undefined, response: Response): Promise<boolean> => {
    const unknown = await unknownName({ models: { field: 'baseline_model', names: name === null || name === undefined ? [] : [name] } });
    if (unknown !== undefined) refuse(response, 400, unknown.message);
    return unknown === undefined;
  };

  app.post('/admin/accounts', async (request, response) => {
    const given = bodyOf(request, createAccountSchema);
    if (!(await isModel(given.baseline_model, response))) return;
    const made = await accounts.unary<object, CreateAccountResponse__Output>('CreateAccount', { account: accountSettings(given).account, keyName: 'default', keyScopes: [] }, options);
    if (made.account === null || made.key === null) refuse(response, 400, made.problem);
    else send(response, { account: accountBody(made.account), key: { ...keyBody(made.key), key: made.secret } }, 201);
  });
  app.get('/admin/accounts', async (_request, response) => {
    const page = await accounts.unary<object, ListAccountsResponse__Output>('ListAccounts', { limit: 1_000, after: text(_request, 'after') }, options);
    send(response, { accounts: page.accounts.map(accountBody), has_more: page.hasMore });
  });
  const account = (response: Response, found: AccountAnswer__Output): void => {
    if (!found.found) refuse(response, 404, 'No such account.');
    else if (found.account === null) refuse(response, 400, found.problem);
    else send(response, { account: accountBody(found.account) });
  };
  app.get('/admin/accounts/:id', async (request, response) => account(response, await accounts.unary('GetAccount', { id: id(request) }, options)));
  app.patch('/admin/accounts/:id', async (request, response) => {
    const body = bodyOf(request, setAccountSchema);
    if (!(await isModel(body.baseline_model, response))) return;
    const given = accountSettings(body);
    account(response, await accounts.unary('SetAccount', { account: { ...given.account, id: id(request) }, fields: given.fields }, options));
  });
  for (const [verb, suspended] of [['suspend', true], ['resume', false]] as const) {
    app.post(`/admin/accounts/:id/${verb}`, async (request, response) => account(response, await accounts.unary('SetAccount', { account: { id: id(request), suspended }, fields: ['suspended'] }, options)));
  }

  app.post('/admin/keys', async (request, response) => {
    const given = bodyOf(request, createKeySchema);
    const made = await accounts.unary<object, CreateKeyResponse__Output>(
      'CreateKey',
      { accountId: given.account_id, name: given.name, scopes: given.scopes ?? [], actorKeyId: '', ...(given.expires_in === undefined ? {} : { expiresInSeconds: String(given.expires_in) }) },
      options,
    );
    if (made.key === null) refuse(response, 400, made.problem);
    else send(response, { key: keyBody(made.key, made.secret) }, 201);
  });
  /** True when there is that account; else the refusal has been sent. */
  const isAccount = async (accountId: string, response: Response): Promise<boolean> => {
    const { found } = await accounts.unary<object, AccountAnswer__Output>('GetAccount', { id: accountId }, options);
    if (!found) refuse(response, 404, accountId === '' ? 'account is required.' : 'account names no account.');
    return found;
  };
  app.get('/admin/keys', async (request, response) => {
    if (!(await isAccount(text(request, 'account'), response))) return;
    const page = await accounts.unary<object, ListKeysResponse__Output>('ListKeys', { accountId: text(request, 'account'), limit: 100, after: text(request, 'after'), status: text(request, 'status') }, options);
    if (page.problem === '') send(response, { keys: page.keys.map((key) => keyBody(key)), has_more: page.hasMore });
    else refuse(response, 400, page.problem);
  });
  app.delete('/admin/keys/:id', async (request, response) => {
    // Misspelt, it would leave running what is to end.
    const other = Object.entries(request.query).find(([name, value]) => name !== 'compromised' || (value !== 'true' && value !== 'false'));
    if (other !== undefined) return refuse(response, 400, 'Only compromised may be given, as true or false.');
    const found = await accounts.unary<object, KeyAnswer__Output>('RevokeKey', { ref: { accountId: '', keyId: id(request) }, compromised: text(request, 'compromised') === 'true' }, options);
    if (found.key === null) refuse(response, 404, 'No such key.');
    else send(response, { key: keyBody(found.key) });
  });

  app.put('/admin/byok', async (request, response) => {
    const given = bodyOf(request, providerKeySchema);
    if (!isServed(given.provider)) {
      refuse(response, 400, 'provider names no provider that this gateway serves.');
      return;
    }
    const answer = await accounts.unary<object, ProviderKeyAnswer__Output>('SetProviderKey', { accountId: given.account_id, provider: given.provider, secret: given.secret, zdr: given.zdr ?? false, baseUrl: given.base_url ?? '' }, options);
    if (answer.providerKey !== null) send(response, { account_id: answer.providerKey.accountId, ...providerKeyBody(answer.providerKey) });
    else refuse(response, answer.found ? 400 : 404, answer.found ? answer.problem : 'account_id names no account.');
  });
  app.get('/admin/byok', async (request, response) => {
    const accountId = text(request, 'account');
    if (accountId !== '' && !(await isAccount(accountId, response))) return;
    const page = await accounts.unary<object, ListProviderKeysResponse__Output>('ListProviderKeys', { accountId, limit: 1_000, after: text(request, 'after') }, options);
    send(response, { provider_keys: page.providerKeys.map((key) => ({ account_id: key.accountId, ...providerKeyBody(key) })), next: page.hasMore ? (page.providerKeys.at(-1)?.handle ?? null) : null });
  });
  app.delete('/admin/byok', async (request, response) => {
    const provider = text(request, 'provider');
    const { found } = await accounts.unary<object, ProviderKeyAnswer__Output>('RemoveProviderKey', { accountId: text(request, 'account'), provider }, options);
    if (found) send(response, { account_id: text(request, 'account'), provider, deleted: true });
    else refuse(response, 404, 'The account has no credential of its own there.');
  });

  app.get('/admin/quota', async (request, response) => {
    if (!(await isAccount(text(request, 'account'), response))) return;
    const shown = await quota.unary<object, ShowResponse__Output>('Show', { accountId: text(request, 'account') }, options);
    const buckets = shown.buckets.map((bucket) => ({
      scope: bucket.scope, period_id: bucket.periodId, settled_nano_usd: bucket.settledNanoUsd, finished_nano_usd: bucket.finishedNanoUsd, reserved_nano_usd: bucket.reservedNanoUsd,
      tokens: Number(bucket.tokens), reserved_tokens: Number(bucket.reservedTokens),
    }));
    send(response, { settled_nano_usd: shown.settledNanoUsd, reserved_nano_usd: shown.reservedNanoUsd, remaining_nano_usd: shown.remainingNanoUsd ?? null, buckets, ledger_seq: Number(shown.ledgerSeq) });
  });
  app.get('/admin/ledger', async (request, response) => {
    const accountId = text(request, 'account');
    if (!(await isAccount(accountId, response))) return;
    const number = (name: string): string => (/^\d{1,15}$/.test(text(request, name)) ? text(request, name) : '0');
    const page = await billing.unary<object, LedgerResponse__Output>('Ledger', { accountId, fromMs: number('from_ms'), toMs: number('to_ms'), after: number('after'), limit: LEDGER_PAGE_ROWS }, options);
    const rows = page.rows.map((row) => ({
      seq: Number(row.seq), kind: row.kind, request_id: row.requestId, attempt: row.attempt, amount_nano_usd: row.amountNanoUsd, source: row.source, charged: row.charged, flags: row.flags,
      provider: row.provider, period: row.period, at: Number(row.atMs), prev_hash: row.prevHash, hash: row.hash, applies_to: row.appliesTo === '' ? undefined : row.appliesTo,
      tokens: Number(row.tokens), byok_tokens: Number(row.byokTokens), card_id: row.cardId,
    }));
    send(response, { account_id: accountId, rows, next: page.next === undefined ? null : Number(page.next) });
  });
  app.post('/admin/sources', async (request, response) => {
    if (plugins === undefined) return refuse(response, 404, 'The service plugins is not set up here.');
    const added = await plugins.unary<object, AddSourceResponse__Output>('AddSource', bodyOf(request, sourceSchema), { deadlineMs: SOURCE_DEADLINE_MS });
    if (added.problem === '') send(response, { source: { key: added.key, title: added.title, passages: added.passages } }, 201);
    else refuse(response, 400, added.problem);
  });
  const corpusOf = (request: Request): string => (text(request, 'corpus') === 'books' ? 'books' : 'web');
  app.get('/admin/sources', async (request, response) => {
    if (plugins === undefined) return refuse(response, 404, 'The service plugins is not set up here.');
    const { sources } = await plugins.unary<object, ListSourcesResponse__Output>('ListSources', { corpus: corpusOf(request) }, options);
    send(response, { sources: sources.map(({ key, title, author, url, language, passages }) => ({ key, title, author, url, language, passages })) });
  });
  app.delete('/admin/sources', async (request, response) => {
    if (plugins === undefined) return refuse(response, 404, 'The service plugins is not set up here.');
    const { deleted } = await plugins.unary<object, DeletedResponse__Output>('RemoveSource', { corpus: corpusOf(request), key: text(request, 'key') }, options);
    if (deleted === 0) refuse(response, 404, 'No such source.');
    else send(response, { deleted: true, key: text(request, 'key') });
  });
  app.get('/admin/watermarks', async (_request, response) => {
    const { writers } = await billing.unary<object, WatermarksResponse__Output>('Watermarks', {}, options);
    send(response, { writers: writers.map((mark) => ({ writer: mark.writer, provider: mark.provider, last_seq: Number(mark.lastSeq), ledger_seq: Number(mark.ledgerSeq), gaps: Number(mark.gaps), lost: mark.lost })) });
  });
  app.get('/admin/providers', async (_request, response) => {
    const { providers } = await routing.unary<object, ProvidersResponse__Output>('Providers', {}, options);
    send(response, {
      providers: providers.map(({ provider, available, endpoints }) => ({
        provider, available,
        endpoints: endpoints.map((one) => ({ endpoint_id: one.endpointId, breaker: one.breaker, samples: one.samples, latency_ms_p75: one.latencyMsP75 ?? null, throughput_tps_p50: one.throughputTpsP50 ?? null, ejected_for: one.ejectedFor || null })),
      })),
    });
  });
  app.get('/admin/catalog', async (_request, response) => {
    const shown = await routing.unary<object, CatalogShowResponse__Output>('CatalogShow', {}, options);
    send(response, {
      snapshot_id: shown.snapshotId, schema_version: shown.schemaVersion, models: shown.models, endpoints: shown.endpoints, available_endpoints: shown.availableEndpoints,
      available_providers: shown.availableProviders, loaded_from: shown.loadedFrom,
    });
  });
  app.post('/admin/catalog/check', async (_request, response) => {
    const { problems, warnings, notices } = await routing.unary<object, CatalogCheckResponse__Output>('CatalogCheck', {}, options);
    send(response, { problems, warnings, notices });
  });
  app.post('/admin/catalog/reload', async (_request, response) => {
    const { loaded, snapshotId, problems } = await routing.unary<object, CatalogReloadResponse__Output>('CatalogReload', {}, options);
    send(response, { loaded, snapshot_id: snapshotId, problems }, loaded ? 200 : 400);
  });

  app.use('/admin', createAdminBooksRouter({ accounts, billing, quota, unknownName, isAccount, send, refuse }));
  app.use('/admin', createAdminDecisionsRouter({ billing, routing, unknownName, isAccount, send, refuse }));

  app.use((_request: Request, response: Response) => refuse(response, 404, 'No such command.'));
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) next(error);
    else if (error instanceof z.ZodError) refuse(response, 400, error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}.`).join(' '));
    else if (error instanceof SyntaxError) refuse(response, 400, 'The body is not JSON.');
    else if (isRefusedBody(error)) refuse(response, error.status, error.status === 413 ? 'The body is too large.' : 'The body cannot be read.');
    else {
      const { message, code, status } = tellFault(error);
      send(response, { error: { message, type: 'server_error', param: null, code } }, status);
    }
  });
  return app;
}
