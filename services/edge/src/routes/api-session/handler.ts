/** /api/session: exchanges a key for a dashboard session, shows the present session, signs out (ADR 18). */
import type { CreateSessionRequest, CreateSessionResponse__Output, SessionRef } from '@signalbox/contracts/accounts';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Secret } from '@signalbox/runtime/secret';
import { Router, type NextFunction, type Request, type Response } from 'express';
import type { Authenticator } from '../../adapters/authenticator.js';
import { isLimitedKey } from '../../domain/limits.js';
import type { Caller } from '../../domain/ports.js';
import { csrfToken, isSessionToken, makeSessionToken, sessionDigest } from '../../domain/session-token.js';
import { readAuthorization } from '../../wire/authorization.js';
import { apiError, type ApiError } from '../../wire/errors.js';
import { readSessionCookie, sessionCookie } from '../../wire/session-cookie.js';
import { takesQuery } from '../query-fields.js';

const DEADLINE_MS = 5_000;

export interface ApiSessionDeps {
  readonly accounts: RpcClient;
  readonly authenticator: Authenticator;
  readonly pepper: Secret;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  /** Authenticates and admits, or answers. */
  enter(request: Request, response: Response, next: NextFunction): void;
  callerOf(request: Request): Caller;
  fail(response: Response, error: ApiError): void;
  refuseMethod(request: Request, response: Response): void;
}

/** A session as clients see it; the token is in the cookie only. */
function sessionBody({ key, account, variant }: Caller, csrf: string | null, expiresAt: number | null): object {
  return {
    object: 'session',
    account: { id: account.id, name: account.name, tier: account.tier, variant },
    key: { id: key.id, name: key.name, prefix: key.prefix, scopes: key.scopes, expires_at: key.expiresAt === undefined ? null : Number(key.expiresAt), limited: isLimitedKey(key) },
    csrf_token: csrf,
    expires_at: expiresAt,
  };
}

/** Router to be mounted at /api/session. */
export function createApiSessionRouter({ accounts, authenticator, pepper, clock, randomBytes, enter, callerOf, fail, refuseMethod }: ApiSessionDeps): Router {
  const call = async <Message extends object, Answer>(method: string, message: Message): Promise<Answer> => {
    try {
      return await accounts.unary<Message, Answer>(method, message, { deadlineMs: DEADLINE_MS });
    } catch (error) {
      throw new Fault('accounts_unavailable', 'accounts did not answer', { cause: error });
    }
  };
  const send = (response: Response, status: number, body: object): void => void response.status(status).set('cache-control', 'no-store').json(body);
  const tokenOf = (request: Request): string | undefined => {
    const token = readAuthorization(request.rawHeaders).kind === 'missing' ? readSessionCookie(request.headers.cookie, request.headers.host) : undefined;
    return token !== undefined && isSessionToken(token) ? token : undefined;
  };

  const router = Router();
  // Only a key creates a session: if a session could, it would never end.
  router.post('/', (request: Request, response: Response, next: NextFunction) => {
    if (readAuthorization(request.rawHeaders).kind === 'missing') fail(response, apiError('missing_api_key'));
    else next();
  });
  router.post('/', enter, takesQuery(), async (request: Request, response: Response) => {
    const authorization = readAuthorization(request.rawHeaders);
    if (authorization.kind !== 'ok') throw new Fault('internal_error', 'an entered request has a key');
    const token = makeSessionToken(randomBytes);
    const { digest: keyDigest, pepperId } = authenticator.digest(authorization.key);
    const { found, expiresAt, atMs } = await call<CreateSessionRequest, CreateSessionResponse__Output>('CreateSession', { sessionDigest: sessionDigest(pepper.unwrap(), token), keyDigest, pepperId });
    if (!found) {
      fail(response, apiError('invalid_api_key'));
      return;
    }
    // Computed with the clock of accounts, which set the end: by the clock here the cookie might be over already.
    const seconds = Math.max(0, Number(expiresAt) - Math.floor((Number(atMs) || clock.nowMs()) / 1_000));
    response.setHeader('set-cookie', sessionCookie(token, seconds, request.headers.host));
    send(response.location('/api/session'), 201, sessionBody(callerOf(request), csrfToken(pepper.unwrap(), token), Number(expiresAt)));
  });

  router.get('/', enter, takesQuery(), (request: Request, response: Response) => {
    const token = tokenOf(request);
    if (token === undefined) send(response, 200, sessionBody(callerOf(request), null, null));
    else send(response, 200, sessionBody(callerOf(request), csrfToken(pepper.unwrap(), token), authenticator.sessionEndSeconds(token) ?? null));
  });

  router.delete('/', enter, takesQuery(), async (request: Request, response: Response) => {
    const token = tokenOf(request);
    if (token !== undefined) {
      const { pepperId } = authenticator.digest('');
      await call<SessionRef, object>('EndSession', { sessionDigest: sessionDigest(pepper.unwrap(), token), pepperId });
      authenticator.forgetSession(token);
      response.setHeader('set-cookie', sessionCookie('', 0, request.headers.host));
    }
    send(response, 200, { object: 'session', deleted: token !== undefined });
  });
  router.all('/', refuseMethod);
  return router;
}
