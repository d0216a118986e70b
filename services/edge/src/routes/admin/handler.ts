/** The admin port: an application of its own on ADMIN_PORT, behind a bearer token. */
import type { Clock } from '@signalbox/kernel/clock';
import type { Variant } from '@signalbox/kernel/tiers';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Secret } from '@signalbox/runtime/secret';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { createHash, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { isReadableUrl, isStorable } from '../../wire/storable.js';
import { QueryError } from '../query-fields.js';
import { placeOf, wordsOf } from '../issue-words.js';
import { createAdminAccountsRouter } from './accounts.js';
import { refuse, send } from './answers.js';
import { createAdminBooksRouter } from './books.js';
import { createAdminCatalogRouter } from './catalog.js';
import { createAdminChecks } from './checks.js';
import { createAdminDecisionsRouter } from './decisions.js';
import { createAdminKeysRouter } from './keys.js';
import { naming, tellFault } from './neighbours.js';
import { createAdminProviderKeysRouter } from './provider-keys.js';
import { createAdminSourcesRouter } from './sources.js';
import { createAdminStateRouter } from './state.js';
import { createAdminUsageRouter } from './usage.js';

export interface AdminDeps {
  readonly accounts: RpcClient;
  readonly quota: RpcClient;
  readonly billing: RpcClient;
  readonly routing: RpcClient;
  /** Absent = no plugins are installed. */
  readonly plugins?: RpcClient | undefined;
  readonly adminToken: Secret;
  readonly clock: Clock;
  /** Length of a bill's period in seconds, for tests; absent = calendar months. */
  readonly periodSeconds?: number | undefined;
  /** The variant for accounts without one of their own. */
  readonly variant: Variant;
  /** A worker of that provider runs, or is started for an account's own credential. */
  readonly isServed: (provider: string) => boolean;
}

const SOURCE_BYTES_MAX = 32 * 1_024 * 1_024;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** True for the errors with which Express refuses a body. */
function isRefusedBody(error: unknown): error is { readonly status: number } {
  return error instanceof Error && 'status' in error && typeof error.status === 'number' && error.status >= 400 && error.status < 500;
}

export function createAdminApp({ adminToken, clock, periodSeconds, variant, isServed, ...clients }: AdminDeps): Express {
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
  // Only this route takes whole documents and books.
  app.use('/admin/sources', express.json({ limit: SOURCE_BYTES_MAX }));
  app.use(express.json({ limit: '1mb' }));
  app.use((request: Request, response: Response, next: NextFunction) => {
    // Documents are sent as they are: the plugins service removes what cannot be stored.
    if (request.path === '/admin/sources' || isStorable(request.body)) next();
    else refuse(response, 400, 'The body holds a NUL character (\\u0000) or half a surrogate pair, which cannot be stored.');
  });

  const checks = createAdminChecks({ accounts, routing, plugins });
  app.use(
    '/admin',
    createAdminAccountsRouter(accounts, checks),
    createAdminKeysRouter(accounts, checks),
    createAdminProviderKeysRouter(accounts, isServed, checks),
    createAdminSourcesRouter(plugins),
    createAdminStateRouter({ quota, billing, routing, clock, periodSeconds, variant }, checks),
    createAdminCatalogRouter(routing),
    createAdminBooksRouter({ accounts, billing, quota, clock, periodSeconds }, checks),
    createAdminUsageRouter({ accounts, billing, routing }, checks),
    createAdminDecisionsRouter({ billing, routing }, checks),
  );

  app.use((_request: Request, response: Response) => refuse(response, 404, 'No such command.'));
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) next(error);
    else if (error instanceof z.ZodError) refuse(response, 400, error.issues.map((issue) => `${placeOf(issue).join('.') || 'body'}: ${wordsOf(issue)}.`).join(' '));
    else if (error instanceof QueryError) refuse(response, 400, error.message, error.param);
    else if (error instanceof SyntaxError) refuse(response, 400, 'The body is not JSON.');
    else if (isRefusedBody(error)) refuse(response, error.status, error.status === 413 ? 'The body is too large.' : 'The body cannot be read.');
    else {
      const { message, code, status } = tellFault(error);
      send(response, { error: { message, type: 'server_error', param: null, code } }, status);
    }
  });
  return app;
}
