/** The express app: everything but the chat route. */
import express, { type Express, type Request, type Response } from 'express';
import helmet from 'helmet';
import { toFault } from '@signalbox/kernel/fault';
import type { IdSource } from '@signalbox/kernel/ids';
import type { RpcClient } from '@signalbox/rpc/call';
import { isJsonBody, readBody } from '../adapters/body.js';
import type { Caller } from '../domain/ports.js';
import { apiError, faultToApiError } from '../wire/errors.js';
import type { HeaderList } from '../wire/headers.js';
import { parseJsonObject } from '../wire/json-scan.js';
import { createApiAuthRouter } from './api-auth/handler.js';
import { ApiErrorException } from './api-error-exception.js';
import type { Gate } from './gate.js';
import { answerModels } from './models/handler.js';

/** Key management bodies are small. */
const CONTROL_BODY_BYTES_MAX = 64 * 1_024;

export interface SiteOptions {
  readonly gate: Gate;
  readonly accounts: RpcClient;
  readonly routing: RpcClient;
  readonly makeId: IdSource;
}

export function createSite({ gate, accounts, routing, makeId }: SiteOptions): Express {
  const app = express();
  const callers = new WeakMap<Request, { readonly caller: Caller; readonly requestId: string }>();
  const requestIds = new WeakMap<Request, string>();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.set('case sensitive routing', true);
  app.use(helmet());

  const requestIdOf = (request: Request): string => {
    const known = requestIds.get(request);
    if (known !== undefined) return known;
    const made = makeId('call');
    requestIds.set(request, made);
    return made;
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
      const headers: HeaderList = ['x-request-id', requestId];
      gate.addHeaders(headers, caller.account.id);
      for (let i = 0; i + 1 < headers.length; i += 2) response.setHeader(headers[i] ?? '', headers[i + 1] ?? '');
      next();
    };
    proceed().catch((error: unknown) => gate.fail(response, requestId, faultToApiError(toFault(error))));
  };

  const allow = (methods: readonly string[]) => (request: Request, response: Response): void => {
    response.setHeader('allow', methods.join(', '));
    gate.fail(response, requestIdOf(request), apiError('method_not_allowed', { message: `The method ${request.method} is not allowed here.` }), callers.get(request)?.caller);
  };

  const models = (request: Request, response: Response, model: string | undefined): Promise<void> => {
    const { caller, requestId } = entered(request);
    return answerModels(routing, { caller, model, isDetailed: request.query['detail'] === 'full' }).then((answer) => {
      if (answer.kind === 'refused') gate.fail(response, requestId, answer.error, caller);
      else response.status(200).type('application/json').send(answer.body);
    });
  };

  app.get('/v1/models', enter, (request: Request, response: Response) => models(request, response, undefined));
  app.all('/v1/models', allow(['GET']));
  // Model ids hold a slash.
  app.get('/v1/models/*model', enter, (request: Request, response: Response) => {
    const parts: unknown = request.params['model'];
    return models(request, response, Array.isArray(parts) ? parts.join('/') : String(parts));
  });
  app.all('/v1/models/*model', allow(['GET']));
  app.all('/v1/chat/completions', allow(['POST']));

  const needsKeys = (request: Request, response: Response, next: () => void): void => {
    const { caller, requestId } = entered(request);
    if (caller.key.scopes.includes('keys')) next();
    else gate.fail(response, requestId, apiError('insufficient_scope', { message: 'The API key lacks the scope keys.' }), caller);
  };

  app.use(
    '/api/auth',
    enter,
    needsKeys,
    createApiAuthRouter({
      accounts,
      callerOf: (request: Request) => {
        const { caller, requestId } = entered(request);
        return { keyId: caller.key.id, accountId: caller.account.id, scopes: caller.key.scopes, requestId };
      },
      fail: (response: Response, error) => gate.fail(response, requestIdOf(response.req), error, callers.get(response.req)?.caller),
      readJson: async (request: Request): Promise<unknown> => {
        if (!isJsonBody(request)) throw new ApiErrorException(apiError('unsupported_media_type'));
        const read = await readBody(request, CONTROL_BODY_BYTES_MAX);
        if (read.kind !== 'ok') throw new ApiErrorException(apiError('payload_too_large'));
        const json = parseJsonObject(read.body);
        if (json.kind === 'invalid') throw new ApiErrorException(apiError('bad_json', { message: `The body is not a valid JSON object (${json.reason}).` }));
        return json.object;
      },
    }),
  );

  app.use((request: Request, response: Response) => gate.fail(response, requestIdOf(request), apiError('unknown_url'), callers.get(request)?.caller));
  app.use((error: unknown, request: Request, response: Response, next: (error?: unknown) => void) => {
    void next;
    const shown = error instanceof ApiErrorException ? error.error : faultToApiError(toFault(error));
    gate.fail(response, requestIdOf(request), shown, callers.get(request)?.caller);
  });
  return app;
}
