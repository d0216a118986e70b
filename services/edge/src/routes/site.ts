/** The Express app: all public routes except chat completions. */
import express, { type Express, type Request, type Response, type Router } from 'express';
import helmet from 'helmet';
import { toFault } from '@signalbox/kernel/fault';
import type { IdSource } from '@signalbox/kernel/ids';
import type { RpcClient } from '@signalbox/rpc/call';
import { isJsonBody, readBody } from '../adapters/body.js';
import { isLimitedKey } from '../domain/limits.js';
import type { Caller } from '../domain/ports.js';
import { apiError, faultToApiError, type ApiError } from '../wire/errors.js';
import type { HeaderList } from '../wire/headers.js';
import { parseJsonObject } from '../wire/json-scan.js';
import { jsonProblem } from '../wire/json-words.js';
import { unknownUrlMessage } from '../wire/unknown-url.js';
import { isReadableUrl, isStorable } from '../wire/storable.js';
import type { Authenticator } from '../adapters/authenticator.js';
import { createApiAuthRouter } from './api-auth/handler.js';
import { createApiPolicyRouter } from './api-policy/handler.js';
import { createApiProvidersRouter } from './api-providers/handler.js';
import { answerLimits } from './api-limits/handler.js';
import { createApiSessionRouter } from './api-session/handler.js';
import { ApiErrorException } from './api-error-exception.js';
import { createControl } from './control-route.js';
import { createNameCheck } from './known-names.js';
import { QueryError, takesQuery } from './query-fields.js';
import type { Gate } from './gate.js';
import type { RepeatGate } from './repeat-gate.js';
import { createBooksRouters } from './books/handler.js';
import { answerMemory, answerPlugins, forgetMemory } from './plugins/handler.js';
import { createDecisionsRouters } from './decisions/handler.js';
import { answerModels } from './models/handler.js';
import { createOpenApiRoute } from './openapi/handler.js';
import { createWebRouter, DASHBOARD_PATH } from './web/handler.js';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import type { Secret } from '@signalbox/runtime/secret';

/** Largest body of these routes. */
const CONTROL_BODY_BYTES_MAX = 64 * 1_024;
const REPLACED_SECRET = 'This secret of the API key was replaced by a rotation: until its grace ends it may run requests and read, and change nothing. Use the new secret.';
const EITHER = new Intl.ListFormat('en', { type: 'disjunction' });

/** Passes OPTIONS on, so that it is refused like other methods that a path does not have: an Express router would answer it with 200. */
const exceptOptions = (router: Router) => (request: Request, response: Response, next: (error?: unknown) => void): void => {
  if (request.method === 'OPTIONS') next();
  else router(request, response, next);
};

export interface SiteOptions {
  readonly gate: Gate;
  readonly repeats: RepeatGate;
  readonly accounts: RpcClient;
  readonly routing: RpcClient;
  readonly billing: RpcClient;
  /** Providers whose worker runs, or is started for an account's own credential. */
  readonly providers: ReadonlySet<string>;
  /** Absent = no plugins are installed. */
  readonly plugins?: RpcClient | undefined;
  readonly makeId: IdSource;
  readonly quota: RpcClient;
  readonly authenticator: Authenticator;
  readonly pepper: Secret;
  readonly clock: Clock;
  /** Length of billing periods, for tests; absent = calendar months. */
  readonly periodSeconds?: number | undefined;
  readonly randomBytes: RandomBytes;
  /** Folder of the built dashboard; undefined = none is served. */
  readonly dashboardDir: string | undefined;
}

export function createSite({ gate, repeats, accounts, routing, billing, providers, plugins, quota, authenticator, pepper, clock, periodSeconds, randomBytes, dashboardDir, makeId }: SiteOptions): Express {
  const app = express();
  const callers = new WeakMap<Request, { readonly caller: Caller; readonly requestId: string }>();
  const requestIds = new WeakMap<Request, string>();
  const requestIdOf = (request: Request): string => {
    const known = requestIds.get(request);
    if (known !== undefined) return known;
    const made = makeId('call');
    requestIds.set(request, made);
    return made;
  };

  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.set('case sensitive routing', true);
  // Not for subdomains: how the operator serves other names is not known here.
  app.use(helmet({ strictTransportSecurity: { includeSubDomains: false } }));
  app.use((request: Request, response: Response, next: () => void) => {
    response.setHeader('x-request-id', requestIdOf(request));
    if (!isReadableUrl(request.url)) throw new ApiErrorException(apiError('invalid_value', { message: 'The address cannot be read: percent-encode it as UTF-8, without NUL characters.' }));
    next();
  });

  /** Answers with an error. Errors of a caller's own are counted, and above the limit answered with 429. */
  const refuse = (response: Response, error: ApiError): void => {
    const caller = callers.get(response.req)?.caller;
    const isInvalid = error.status >= 400 && error.status < 500 && error.status !== 429;
    gate.fail(response, requestIdOf(response.req), caller !== undefined && isInvalid ? gate.noteInvalid(caller, error) : error, caller);
  };

  const entered = (request: Request): { readonly caller: Caller; readonly requestId: string } => {
    const found = callers.get(request);
    if (found === undefined) throw new ApiErrorException(apiError('missing_api_key'));
    return found;
  };

  const enter = (request: Request, response: Response, next: () => void): void => {
    const requestId = requestIdOf(request);
    const proceed = async (): Promise<void> => {
      const caller = await gate.enter(request, response, requestId);
      if (caller === undefined || !(await gate.admitControl(caller, response, requestId))) return;
      callers.set(request, { caller, requestId });
      // Answers are private to the caller: a browser must not keep them on disk after the sign-out.
      response.setHeader('cache-control', 'no-store');
      const headers: HeaderList = [];
      gate.addHeaders(headers, caller);
      for (let i = 0; i + 1 < headers.length; i += 2) response.setHeader(headers[i] ?? '', headers[i + 1] ?? '');
      next();
    };
    proceed().catch((error: unknown) => gate.fail(response, requestId, faultToApiError(toFault(error))));
  };

  const allow = (methods: readonly string[]) => {
    const instead = EITHER.format(methods);
    return (request: Request, response: Response): void => {
      response.setHeader('allow', methods.join(', '));
      refuse(response, apiError('method_not_allowed', { message: `The method ${request.method} is not allowed here: use ${instead}.` }));
    };
  };

  const models = (request: Request, response: Response, model: string | undefined): Promise<void> => {
    const { caller } = entered(request);
    const { detail } = request.query;
    // Unknown parameters are allowed here (ADR 90); only this one is checked.
    if (detail !== undefined && detail !== 'full') throw new QueryError('detail', "detail must be 'full', or absent for ids and makers alone.");
    return answerModels(routing, { caller, model, isDetailed: detail === 'full' }).then((answer) => {
      if (answer.kind === 'refused') refuse(response, answer.error);
      else response.status(200).type('application/json').send(answer.body);
    });
  };

  app.get('/v1/models', enter, (request: Request, response: Response) => models(request, response, undefined));
  app.all('/v1/models', allow(['GET']));
  // Model ids contain a slash.
  app.get('/v1/models/*model', enter, (request: Request, response: Response) => {
    const parts: unknown = request.params['model'];
    return models(request, response, (Array.isArray(parts) ? parts.join('/') : String(parts)).replace(/\/$/, ''));
  });
  app.all('/v1/models/*model', allow(['GET']));
  app.all('/v1/chat/completions', allow(['POST']));

  const needsScope = (scope: string) => (request: Request, response: Response, next: () => void): void => {
    const { scopes } = entered(request).caller.key;
    // After a rotation the old secret, while it is still valid, has `keys:read` instead of `keys`.
    const isReplaced = scopes.includes(`${scope}:read`);
    if (scopes.includes(scope) || (request.method === 'GET' && isReplaced)) next();
    else refuse(response, apiError('insufficient_scope', { message: isReplaced ? REPLACED_SECRET : `The API key lacks the scope ${scope}.` }));
  };

  /** Refuses changes by a key with limits: what the account allows holds for that key and all others, and its credentials serve all. */
  const needsNoLimits = (request: Request, response: Response, next: () => void): void => {
    if (request.method === 'GET' || request.method === 'HEAD' || !isLimitedKey(entered(request).caller.key)) next();
    else refuse(response, apiError('insufficient_scope', { message: "A key with limits of its own may not change the account's policy or credentials." }));
  };

  const accountOf = (request: Request): string => entered(request).caller.account.id;
  app.get('/api/plugins', enter, needsScope('usage:read'), takesQuery(), async (request: Request, response: Response) => {
    response.type('application/json').send(await answerPlugins(plugins, entered(request).caller));
  });
  app.all('/api/plugins', allow(['GET']));
  app.get('/api/memory', enter, needsScope('usage:read'), takesQuery('user', 'namespace', 'limit', 'after'), async (request: Request, response: Response) => {
    response.type('application/json').send(await answerMemory(plugins, accountOf(request), request.query));
  });
  app.delete('/api/memory', enter, needsScope('keys'), takesQuery('user', 'namespace'), async (request: Request, response: Response) => {
    response.type('application/json').send(await forgetMemory(plugins, accountOf(request), request.query));
  });
  app.all('/api/memory', allow(['GET', 'DELETE']));

  const control = createControl({
    accounts,
    callerOf: entered,
    fail: refuse,
    readJson: async (request: Request): Promise<unknown> => {
      if (!isJsonBody(request)) throw new ApiErrorException(apiError('unsupported_media_type'));
      const read = await readBody(request, CONTROL_BODY_BYTES_MAX);
      if (read.kind !== 'ok') throw new ApiErrorException(apiError('payload_too_large'));
      const json = parseJsonObject(read.body);
      if (json.kind === 'invalid') throw new ApiErrorException(apiError('bad_json', { message: jsonProblem(json, read.body.length) }));
      if (!isStorable(json.object)) throw new ApiErrorException(apiError('invalid_value', { message: 'The body holds a NUL character (\\u0000) or half a surrogate pair, which cannot be stored. Leave it out.' }));
      return json.object;
    },
  });
  const unknownName = createNameCheck(routing, plugins);
  app.use('/api/auth', enter, needsScope('keys'), exceptOptions(createApiAuthRouter(control, repeats, unknownName)));
  app.all('/api/auth', allow(['GET', 'POST']));
  app.all('/api/auth/:id', allow(['GET', 'PATCH', 'DELETE']));
  app.all('/api/auth/:id/rotate', allow(['POST']));
  app.use('/api/providers', enter, needsScope('keys'), needsNoLimits, exceptOptions(createApiProvidersRouter(control, providers)));
  app.all('/api/providers', allow(['GET']));
  app.all('/api/providers/:provider', allow(['GET', 'PUT', 'DELETE']));
  app.use('/api/policy', enter, exceptOptions(createApiPolicyRouter({ control, unknownName, needsScope, needsNoLimits })));
  app.all('/api/policy', allow(['GET', 'PUT']));

  const { decisions, feedback } = createDecisionsRouters({ billing, routing, control, needsScope });
  app.use('/v1/decisions', enter, exceptOptions(decisions));
  app.all('/v1/decisions/:id', allow(['GET']));
  app.use('/v1/feedback', enter, exceptOptions(feedback));
  app.all('/v1/feedback', allow(['POST']));

  const books = createBooksRouters({
    accounts,
    billing,
    routing,
    unknownName,
    callerOf: (request: Request) => {
      const { caller, requestId } = entered(request);
      return { accountId: caller.account.id, scopes: caller.key.scopes, requestId };
    },
    fail: refuse,
    refuseMethod: allow(['GET']),
  });
  for (const [path, router] of books) app.use(path, enter, router);

  app.use(
    '/api/session',
    createApiSessionRouter({
      accounts,
      authenticator,
      pepper,
      clock,
      randomBytes,
      enter,
      callerOf: (request: Request) => entered(request).caller,
      fail: refuse,
      refuseMethod: allow(['GET', 'POST', 'DELETE']),
    }),
  );
  app.get('/api/limits', enter, needsScope('usage:read'), takesQuery(), async (request: Request, response: Response) => {
    response.status(200).type('application/json').set('cache-control', 'no-store').send(await answerLimits(quota, clock, periodSeconds, entered(request).caller));
  });
  app.all('/api/limits', allow(['GET']));
  app.get('/openapi.json', createOpenApiRoute());
  app.all('/openapi.json', allow(['GET']));
  if (dashboardDir !== undefined) {
    app.get('/', (_request: Request, response: Response) => response.redirect(302, DASHBOARD_PATH));
    app.all('/', allow(['GET']));
    app.use(DASHBOARD_PATH, createWebRouter({ folder: dashboardDir, randomBytes, refuseMethod: allow(['GET']) }));
  }

  app.use((request: Request, response: Response) => refuse(response, apiError('unknown_url', { message: unknownUrlMessage(request.path) })));
  app.use((error: unknown, _request: Request, response: Response, next: (error?: unknown) => void) => {
    void next;
    if (error instanceof QueryError) refuse(response, apiError('invalid_value', { param: error.param, message: error.message }));
    else refuse(response, error instanceof ApiErrorException ? error.error : faultToApiError(toFault(error)));
  });
  return app;
}
