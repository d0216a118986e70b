/** GET /api/usage, /api/requests and /api/statements: an account's own usage and bills (docs/billing.md). */
import type {
  GetRequestRequest, GetRequestResponse__Output, PeriodsRequest, PeriodsResponse__Output, RequestsRequest, RequestsResponse__Output, StatementRequest, StatementResponse__Output, UsageRequest, UsageResponse__Output,
} from '@signalbox/contracts/billing';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router, type NextFunction, type Request, type Response } from 'express';
import { apiError, type ApiError } from '../../wire/errors.js';
import { exactJson } from '../api-auth/exact-json.js';
import { isUnknownKey, UNKNOWN_KEY, unknownProvider, type NameCheck } from '../known-names.js';
import { QueryError, takesQuery } from '../query-fields.js';
import { createModelQuestions } from './model-questions.js';
import { limitOf, listBody, periodBody, requestBody, requestDetailBody, requestsQueryOf, statementBody, statementCsv, textOf, usageBody, usageQueryOf, wordOf, type Page } from './schema.js';

export interface BooksDeps {
  readonly accounts: RpcClient;
  readonly billing: RpcClient;
  readonly routing: RpcClient;
  readonly unknownName: NameCheck;
  /** The caller, already authenticated and admitted. */
  callerOf(request: Request): { readonly accountId: string; readonly scopes: readonly string[]; readonly requestId: string };
  fail(response: Response, error: ApiError): void;
  /** Answers a method that the path does not have. */
  refuseMethod(request: Request, response: Response): void;
}

const DEADLINE_MS = 8_000;
const NARROWING = ['from', 'to', 'model', 'provider', 'key'];
const PAGE = ['limit', 'after'];
const PERIOD = /^[0-9a-z-]{1,20}$/;

function send(response: Response, body: object): void {
  response.status(200).type('application/json').set('cache-control', 'no-store').send(exactJson(body));
}

/** Routers, each with the path at which to mount it. */
export function createBooksRouters({ accounts, billing, routing, unknownName, callerOf, fail, refuseMethod }: BooksDeps): readonly (readonly [string, Router])[] {
  const call = async <Message extends object, Answer>(request: Request, method: string, message: Message): Promise<Answer> => {
    try {
      return await billing.unary<Message, Answer>(method, message, { deadlineMs: DEADLINE_MS, requestId: callerOf(request).requestId });
    } catch (error) {
      throw error instanceof Fault && error.code === 'internal_error' ? error : new Fault('billing_unavailable', 'billing did not answer', { cause: error });
    }
  };
  const sendPage = (response: Response, page: Page): void => send(response, listBody(page));
  /** Sends a list narrowed to a provider or key. If it is empty, a name that does not exist is refused. */
  const sendNarrowed = async (request: Request, response: Response, page: Page): Promise<void> => {
    if (page.data.length === 0) {
      const { accountId, requestId } = callerOf(request);
      const unknown = await unknownProvider(unknownName, textOf(request.query, 'provider'), requestId);
      if (unknown !== undefined) throw new QueryError('provider', unknown.message);
      if (await isUnknownKey(accounts, { accountId, keyId: textOf(request.query, 'key') }, requestId)) throw new QueryError('key', UNKNOWN_KEY);
    }
    sendPage(response, page);
  };

  const askOfModel = createModelQuestions(routing);
  const isBooked = async (request: Request, model: string): Promise<boolean> => {
    const { rows } = await call<UsageRequest, UsageResponse__Output>(request, 'Usage', { accountId: callerOf(request).accountId, model, groupBy: 'model', limit: 1 });
    return rows.length > 0;
  };

  const usage = Router();
  const requests = Router();
  const statements = Router();
  for (const router of [usage, requests, statements]) {
    router.use((request: Request, response: Response, next: NextFunction) => {
      if (callerOf(request).scopes.includes('usage:read')) next();
      else fail(response, apiError('insufficient_scope', { message: 'The API key lacks the scope usage:read.' }));
    });
  }

  usage.get('/', takesQuery(...NARROWING, ...PAGE, 'group_by', 'order'), async (request, response) => {
    const { query } = request;
    const groupBy = wordOf(query, 'group_by', ['day', 'model', 'provider', 'key']);
    const { accountId, requestId } = callerOf(request);
    const message = { accountId, ...usageQueryOf(query, groupBy), groupBy, limit: limitOf(query) };
    const { rows, hasMore } = await askOfModel({
      model: message.model, requestId, isBooked: () => isBooked(request, message.model),
      ask: (model) => call<UsageRequest, UsageResponse__Output>(request, 'Usage', { ...message, model }),
      hasFound: ({ rows: found }) => found.length > 0,
    });
    await sendNarrowed(request, response, { data: rows.map((row) => usageBody(groupBy, row)), hasMore, ids: rows.map(({ group }) => group) });
  });

  requests.get('/', takesQuery(...NARROWING, ...PAGE, 'status'), async (request, response) => {
    const { query } = request;
    const { accountId, requestId } = callerOf(request);
    const message = {
      accountId, ...requestsQueryOf(query),
      status: wordOf(query, 'status', ['', 'completed', 'failed']), after: textOf(query, 'after'), limit: limitOf(query),
    };
    const page = await askOfModel({
      model: message.model, requestId, isBooked: () => isBooked(request, message.model),
      ask: (model) => call<RequestsRequest, RequestsResponse__Output>(request, 'Requests', { ...message, model }),
      hasFound: ({ requests: found, afterUnknown }) => afterUnknown || found.length > 0,
    });
    if (page.afterUnknown) fail(response, apiError('invalid_value', { param: 'after', message: 'after must be the id of a request.' }));
    else await sendNarrowed(request, response, { data: page.requests.map(requestBody), hasMore: page.hasMore, ids: page.requests.map(({ id }) => id) });
  });
  requests.param('id', (_request, response: Response, next: () => void, id: string) => (id.includes('\0') ? fail(response, apiError('request_not_found', { param: 'request_id' })) : next()));
  requests.get('/:id', takesQuery(), async (request, response) => {
    const found = await call<GetRequestRequest, GetRequestResponse__Output>(request, 'GetRequest', { accountId: callerOf(request).accountId, requestId: request.params.id });
    if (!found.found || found.request === null) fail(response, apiError('request_not_found', { param: 'request_id' }));
    else send(response, requestDetailBody(found.request, found));
  });

  statements.get('/', takesQuery(...PAGE), async (request, response) => {
    const after = textOf(request.query, 'after');
    const { periods, hasMore, afterUnknown } = await call<PeriodsRequest, PeriodsResponse__Output>(request, 'Periods', { accountId: callerOf(request).accountId, after, limit: limitOf(request.query) });
    if (afterUnknown) throw new QueryError('after', 'after must be the id of a statement.');
    sendPage(response, { data: periods.map(periodBody), hasMore, ids: periods.map(({ period }) => period) });
  });
  statements.get('/:period', takesQuery(), async (request, response) => {
    const { accountId } = callerOf(request);
    const { period } = request.params;
    const bill = PERIOD.test(period) ? await call<StatementRequest, StatementResponse__Output>(request, 'Statement', { accountId, period }) : undefined;
    if (bill?.found !== true) fail(response, apiError('statement_not_found', { param: 'period' }));
    else {
      response.vary('Accept');
      if (request.accepts(['application/json', 'text/csv']) !== 'text/csv') send(response, statementBody(accountId, period, bill));
      else response.status(200).set({ 'content-type': 'text/csv; charset=utf-8', 'cache-control': 'no-store', 'content-disposition': `attachment; filename="statement-${period}.csv"` }).send(statementCsv(period, bill));
    }
  });

  usage.all('/', refuseMethod);
  requests.all(['/', '/:id'], refuseMethod);
  statements.all(['/', '/:period'], refuseMethod);
  return [['/api/usage', usage], ['/api/requests', requests], ['/api/statements', statements]];
}
