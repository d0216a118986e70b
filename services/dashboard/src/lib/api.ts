/** Calls of the public interface, with the session's cookie. Nothing here knows a key. */
import { exactJson } from './exact-json.js';
import type { PreviousError, Session } from './types.js';

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;
  /** How long the gateway asks to wait; 0 when it does not say. */
  readonly retryAfterMs: number;
  /** The request that was refused, and whom it was asked of before: none = it reached no provider, and is in no book. */
  readonly requestId: string | undefined;
  readonly tried: readonly PreviousError[];

  constructor(status: number, code: string | null, message: string, param: string | null, retryAfterMs = 0, refused: { readonly requestId?: string | undefined; readonly tried?: readonly PreviousError[] | undefined } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
    this.retryAfterMs = retryAfterMs;
    this.requestId = refused.requestId;
    this.tried = refused.tried ?? [];
  }
}

const OF_THE_SESSION: ReadonlySet<string | null> = new Set(['invalid_session', 'api_key_revoked', 'api_key_expired', 'account_suspended']);

/** True for a 401 that speaks of the session, or of the key and account that it stands for. Any other may be a 403 as variant B tells it, of what was asked alone. */
export function isOfSession({ status, code }: ApiError): boolean {
  return status === 401 && OF_THE_SESSION.has(code);
}

/** Why a session is over, as the 401 of `/api/session` tells it. One without a code says that a key is missing: the browser dropped the cookie, which ends with the session. */
export function whyEnded({ code, message }: ApiError): string {
  return code === null ? 'The session has ended. Sign in again.' : message;
}

/** Remembers only that there was a session, so that a stranger's first visit asks nothing. */
const HINT = 'signalbox-signed-in';
let csrf: string | undefined;

export function hasSessionHint(): boolean {
  try {
    return localStorage.getItem(HINT) === '1';
  } catch {
    return true;
  }
}

/** Calls back when another tab signed in or out; answers how to stop. */
export function onOtherTab(callback: () => void): () => void {
  const heed = ({ key }: StorageEvent): void => {
    // Null: the whole storage was emptied.
    if (key === HINT || key === null) callback();
  };
  window.addEventListener('storage', heed);
  return () => window.removeEventListener('storage', heed);
}

export function noteSession(session: Session | undefined): void {
  csrf = session?.csrf_token ?? undefined;
  try {
    if (session === undefined) localStorage.removeItem(HINT);
    else localStorage.setItem(HINT, '1');
  } catch {
    // Storage may be denied: the session lives in its cookie.
  }
}

/** What an answer that is no success says. */
async function errorOf(response: Response): Promise<ApiError> {
  let error: { readonly message?: string; readonly code?: string | null; readonly param?: string | null; readonly metadata?: { readonly previous_errors?: readonly PreviousError[] } } = {};
  try {
    error = ((await response.json()) as { readonly error?: typeof error }).error ?? {};
  } catch {
    // Not one of ours: a proxy's page, say.
  }
  const waitMs = Number(response.headers.get('retry-after-ms') ?? 1_000 * Number(response.headers.get('retry-after') ?? 0));
  return new ApiError(response.status, error.code ?? null, error.message ?? `The gateway answered ${response.status}.`, error.param ?? null, waitMs, { requestId: response.headers.get('x-request-id') ?? undefined, tried: error.metadata?.previous_errors });
}

export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** The raw answer of a success. Rejects with an ApiError; status 0 = not reached. */
export async function callRaw(path: string, { method = 'GET', body, headers = {}, signal }: CallOptions = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: 'same-origin',
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...(method !== 'GET' && csrf !== undefined ? { 'x-csrf-token': csrf } : {}), ...headers },
      ...(body === undefined ? {} : { body: exactJson(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, null, 'The gateway cannot be reached.', null);
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

export async function call<Answer>(path: string, options?: CallOptions): Promise<Answer> {
  const response = await callRaw(path, options);
  return (response.status === 204 ? undefined : await response.json()) as Answer;
}

/** What the header that brings a key takes. A browser refuses to send anything else, as if the gateway were away. */
const SENDABLE_KEY = /^[\x21-\x7e]{1,512}$/;

/** The key is sent once, and kept nowhere. */
export async function signIn(key: string): Promise<Session> {
  if (!SENDABLE_KEY.test(key)) throw new ApiError(401, 'invalid_api_key', 'That is not an API key. A key begins with sbx_live_ and has letters, digits and underscores alone. It is shown in full once, when it is made.', null);
  const session = await call<Session>('/api/session', { method: 'POST', headers: { authorization: `Bearer ${key}` } });
  noteSession(session);
  // A browser that dropped the cookie would fail at the next page in a way that nobody understands.
  try {
    return await call<Session>('/api/session');
  } catch (error) {
    // There is a session, and its cookie must not be left behind a sign-in page.
    if (!(error instanceof ApiError) || error.status !== 401) return session;
    noteSession(undefined);
    throw new ApiError(401, 'cookie_refused', 'This browser did not keep the session’s cookie. Open the dashboard over HTTPS, or on localhost.', null);
  }
}

/** Rejects while the session may still live: its cookie must not be left behind a sign-in page. */
export async function signOut(): Promise<void> {
  try {
    await call('/api/session', { method: 'DELETE' });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    if (isOfSession(error)) return;
    const lives = await call<Session>('/api/session').then(() => true, (told: unknown) => !(told instanceof ApiError) || told.status !== 401);
    if (lives) throw error;
  }
}

/** `?a=1&b=2` of what is set; empty when nothing is. */
export function queryText(values: Readonly<Record<string, string | number | null | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== null && value !== undefined && value !== '') query.set(name, String(value));
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

/** What a path asks about: itself without the page of a list. */
export function subjectOf(path: string): string {
  const [place = '', query = ''] = path.split('?');
  const values = new URLSearchParams(query);
  values.delete('after');
  return `${place}?${values.toString()}`;
}
