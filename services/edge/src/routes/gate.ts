/** Shared by every authenticated route: authentication, flood protection, and the form of errors. */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import { isWellFormedApiKey } from '@signalbox/kernel/api-key';
import type { Clock } from '@signalbox/kernel/clock';
import { toFault } from '@signalbox/kernel/fault';
import type { IdSource } from '@signalbox/kernel/ids';
import type { Variant } from '@signalbox/kernel/tiers';
import { LRUCache } from 'lru-cache';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Authentication, Authenticator } from '../adapters/authenticator.js';
import { endBehindBody, type ReaderWatch } from '../adapters/responses.js';
import { createFloodGuard } from '../domain/flood.js';
import { limitsOf } from '../domain/limits.js';
import type { CallerState } from '../domain/answer.js';
import type { Caller, QuotaPort } from '../domain/ports.js';
import { isCsrfToken, isSessionToken } from '../domain/session-token.js';
import { readAuthorization } from '../wire/authorization.js';
import { apiError, faultToApiError, forVariant, renderErrorBody, type ApiError } from '../wire/errors.js';
import { addRateLimitHeaders, type HeaderList } from '../wire/headers.js';
import type { Unread } from '../domain/reader-pace.js';
import type { JsonValue } from '../wire/json-text.js';
import { admissionToApiError, callerToApiError } from '../wire/refusals.js';
import { readSessionCookie } from '../wire/session-cookie.js';
import type { Secret } from '@signalbox/runtime/secret';

/** Bad requests a second of one key, and failed authentications a minute of one address; more get 429. */
const INVALID_PER_SECOND_MAX = 200;
const FAILED_AUTHENTICATIONS_PER_MINUTE_MAX = 100;
/** Look-ups a second at accounts from an address above that limit, for keys and for sessions each. */
const LOOKUPS_IN_FLOOD_PER_SECOND_MAX = 20;
/** Accounts and keys whose latest rate-limit figures are remembered for headers. */
const RATES_REMEMBERED_MAX = 20_000;

const flooded = (retryAfterMs: number): ApiError => apiError('requests_rate_limited', { message: `Rate limit reached: more than ${INVALID_PER_SECOND_MAX} requests of this key were refused within a second.`, retryAfterMs });

const UNREADABLE = 'The Authorization header cannot be read. Send it once, as "Authorization: Bearer <key>".';
const EMPTY = 'The Authorization header holds no API key. Is the variable that should hold it set? Send it as "Authorization: Bearer <key>".';

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** True for a call from a page of this site: its origin is ours, and it has the CSRF token. */
function isOwnPage(request: IncomingMessage, pepper: Secret, token: string): boolean {
  const { origin, host, 'sec-fetch-site': site, 'x-csrf-token': presented } = request.headers;
  // `Sec-Fetch-Site` decides; without it, the origin does.
  const isOurs = site === undefined ? origin === undefined || origin.replace(/^https?:\/\//, '') === host : site === 'same-origin';
  if (!isOurs) return false;
  return typeof presented === 'string' && isCsrfToken(pepper.unwrap(), token, presented);
}

/** Rate-limit figures belong to the key if it has a rate of its own, else to the account. */
const ratedBy = ({ account, key }: Caller): string => (key.limits?.requestsPerMinute === undefined ? account.id : key.id);

export interface GateOptions {
  readonly authenticator: Authenticator;
  readonly quota: QuotaPort;
  readonly clock: Clock;
  readonly variant: Variant;
  /** Absent = sessions are not accepted. */
  readonly pepper?: Secret;
  readonly makeId: IdSource;
  /** Counts an error for metrics. */
  readonly onError: (route: string, error: ApiError) => void;
  /** Counts an answer given up for its reader. */
  readonly onUnread?: ((unread: Unread) => void) | undefined;
}

export interface Gate {
  /** For `watchRest` of each answer. */
  readonly readers: ReaderWatch;
  /** The caller, or undefined when the request was refused; synchronous for a warm key. */
  enter(request: IncomingMessage, response: ServerResponse, requestId: string): Caller | undefined | Promise<Caller | undefined>;
  /** Looks up the caller of a request again after `enter`. Throws a Fault `accounts_unavailable` if accounts cannot be asked. */
  callerNow(request: IncomingMessage, requestId: string): Promise<Caller | CallerState>;
  /** Counts a control call against its rate; false when the request was refused. */
  admitControl(caller: Caller, response: ServerResponse, requestId: string): Promise<boolean>;
  /** Answers with an error in the caller's variant. */
  fail(response: ServerResponse, requestId: string, error: ApiError, caller?: Caller, routerMetadata?: JsonValue): void;
  /** Counts a bad request of a caller. Returns the error to answer with: the given one, or 429 above the limit. */
  noteInvalid(caller: Caller, error: ApiError): ApiError;
  remember(caller: Caller, admission: AdmitResponse__Output): void;
  /** Adds the rate-limit headers of the latest admission of the same account, or of the same key if it has a rate of its own. */
  addHeaders(headers: HeaderList, caller: Caller): void;
}

export function createGate({ authenticator, quota, clock, variant, pepper, makeId, onError, onUnread }: GateOptions): Gate {
  const readers: ReaderWatch = { clock, onUnread };
  const invalid = createFloodGuard(clock, INVALID_PER_SECOND_MAX, 1_000);
  const failedAuthentications = createFloodGuard(clock, FAILED_AUTHENTICATIONS_PER_MINUTE_MAX, 60_000);
  const lookUpsInFlood = { key: createFloodGuard(clock, LOOKUPS_IN_FLOOD_PER_SECOND_MAX, 1_000), session: createFloodGuard(clock, LOOKUPS_IN_FLOOD_PER_SECOND_MAX, 1_000) };
  const latest = new LRUCache<string, AdmitResponse__Output>({ max: RATES_REMEMBERED_MAX });

  const addHeaders: Gate['addHeaders'] = (headers, caller) => {
    const admission = latest.get(ratedBy(caller));
    if (admission !== undefined) addRateLimitHeaders(headers, admission);
  };

  const fail: Gate['fail'] = (response, requestId, error, caller, routerMetadata) => {
    // The answer is complete already.
    if (response.writableEnded) return;
    const shown = forVariant(error, caller?.variant ?? variant);
    onError('error', shown);
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const body = renderErrorBody(shown, routerMetadata);
    const headers: HeaderList = ['content-type', 'application/json; charset=utf-8', 'content-length', String(body.length), 'x-request-id', requestId];
    if (caller !== undefined) addHeaders(headers, caller);
    for (const [name, value] of Object.entries(shown.headers ?? {})) headers.push(name, value);
    response.writeHead(shown.status, headers);
    endBehindBody(response, body, readers);
  };

  const remember: Gate['remember'] = (caller, admission) => {
    latest.set(ratedBy(caller), admission);
  };

  /** The authenticated caller, unless it is refused or sends too many bad requests. */
  const admitCaller = (found: Authentication, response: ServerResponse, requestId: string, address: string): Caller | undefined => {
    switch (found.kind) {
      case 'caller': {
        const floodMs = invalid.waitMs(found.caller.key.id);
        if (floodMs === 0) return found.caller;
        fail(response, requestId, flooded(floodMs), found.caller);
        return undefined;
      }
      case 'refused':
        failedAuthentications.note(address);
        fail(response, requestId, callerToApiError(found.state));
        return undefined;
      case 'invalid':
        failedAuthentications.note(address);
        fail(response, requestId, callerToApiError('unknown'));
        return undefined;
    }
  };

  /** The caller of a dashboard session; only used without an Authorization header. */
  const enterBySession = (token: string, request: IncomingMessage, response: ServerResponse, requestId: string, address: string): Caller | undefined | Promise<Caller | undefined> => {
    const refuseSession = (): undefined => {
      failedAuthentications.note(address);
      fail(response, requestId, callerToApiError('session-over'));
      return undefined;
    };
    if (pepper === undefined || !isSessionToken(token)) return refuseSession();
    if (!SAFE_METHODS.has(request.method ?? '') && !isOwnPage(request, pepper, token)) {
      fail(response, requestId, apiError('invalid_csrf_token'));
      return undefined;
    }
    const admit = (found: Authentication): Caller | undefined => (found.kind === 'invalid' ? refuseSession() : admitCaller(found, response, requestId, address));
    const found = authenticator.authenticateSession(token, requestId);
    if (!(found instanceof Promise)) return admit(found);
    return found.then(admit, (error: unknown) => {
      fail(response, requestId, faultToApiError(toFault(error)));
      return undefined;
    });
  };

  return {
    readers,
    fail,
    remember,
    addHeaders,
    enter: (request, response, requestId) => {
      const address = request.socket.remoteAddress ?? '';
      const waitMs = failedAuthentications.waitMs(address);
      const authorization = readAuthorization(request.rawHeaders);
      const token = authorization.kind === 'missing' ? readSessionCookie(request.headers.cookie, request.headers.host) : undefined;
      // Many clients may share the address of a proxy. During a flood from it, cached keys and sessions are served as usual, and
      // valid ones that are not cached yet, which is all of them after a start, at most need a second try.
      const isWarm = (): boolean => (authorization.kind === 'ok' ? authenticator.isWarm(authorization.key) : token !== undefined && isSessionToken(token) && authenticator.isWarmSession(token));
      const mayLookUp = (): boolean => {
        const isWellFormed = authorization.kind === 'ok' ? isWellFormedApiKey(authorization.key) : pepper !== undefined && token !== undefined && isSessionToken(token);
        const lookUps = lookUpsInFlood[authorization.kind === 'ok' ? 'key' : 'session'];
        if (!isWellFormed || lookUps.waitMs(address) > 0) return false;
        lookUps.note(address);
        return true;
      };
      if (waitMs > 0 && !isWarm() && !mayLookUp()) {
        fail(response, requestId, apiError('requests_rate_limited', { message: `Rate limit reached: more than ${FAILED_AUTHENTICATIONS_PER_MINUTE_MAX} requests from this address failed to authenticate within a minute.`, retryAfterMs: waitMs }));
        return undefined;
      }
      if (token !== undefined) return enterBySession(token, request, response, requestId, address);
      if (authorization.kind !== 'ok') {
        failedAuthentications.note(address);
        fail(response, requestId, authorization.kind === 'missing' ? apiError('missing_api_key') : apiError('invalid_api_key', { message: authorization.kind === 'empty' ? EMPTY : UNREADABLE }));
        return undefined;
      }
      const found = authenticator.authenticate(authorization.key, requestId);
      if (!(found instanceof Promise)) return admitCaller(found, response, requestId, address);
      return found.then(
        (late) => admitCaller(late, response, requestId, address),
        (error: unknown) => {
          fail(response, requestId, faultToApiError(toFault(error)));
          return undefined;
        },
      );
    },
    callerNow: async (request, requestId) => {
      const authorization = readAuthorization(request.rawHeaders);
      const token = authorization.kind === 'missing' ? readSessionCookie(request.headers.cookie, request.headers.host) : undefined;
      const found = await (authorization.kind === 'ok' ? authenticator.authenticate(authorization.key, requestId) : authenticator.authenticateSession(token ?? '', requestId));
      if (found.kind === 'caller') return found.caller;
      failedAuthentications.note(request.socket.remoteAddress ?? '');
      return found.kind === 'refused' ? found.state : token === undefined ? 'unknown' : 'session-over';
    },
    admitControl: async (caller, response, requestId) => {
      try {
        const admission = await quota.admit({ requestId: makeId('call'), accountId: caller.account.id, keyId: caller.key.id, counter: 'CONTROL', limits: limitsOf(caller) });
        if (admission.decision === 'ADMITTED') return true;
        fail(response, requestId, admissionToApiError(admission, clock.nowMs(), { limits: limitsOf(caller), kind: 'control' }), caller);
      } catch (error) {
        fail(response, requestId, faultToApiError(toFault(error)), caller);
      }
      return false;
    },
    noteInvalid: (caller, error) => {
      invalid.note(caller.key.id);
      const waitMs = invalid.waitMs(caller.key.id);
      return waitMs > 0 ? flooded(waitMs) : error;
    },
  };
}
