/** Answers of the interface as queries; a session that ended ends here. */
import { QueryClient, useMutation, useQuery, useQueryClient, type UseMutationResult, type UseQueryResult } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { ApiError, call, hasSessionHint, isOfSession, noteSession, onOtherTab, subjectOf, whyEnded, type CallOptions } from './api.js';
import { bookedRow } from './booked.js';
import { isOnlySimulator } from './only-simulator.js';
import type { KeyRecord, ModelRecord, Page, RequestRow, Session, UsageRow } from './types.js';

export const SESSION_KEY = ['session'] as const;
/** Why the session before ended, where nobody signed out: for the sign-in page. */
export const ENDED_KEY = ['ended'] as const;

const WAIT_MS_MAX = 20_000;
const NO_MODELS: readonly ModelRecord[] = [];

/** Our own limits are waited out, faults tried twice more, and refusals believed. */
function isWorthAnotherTry(count: number, error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.status === 429) return count < 5 && error.retryAfterMs <= WAIT_MS_MAX;
  return count < 2 && (error.status === 0 || error.status >= 500);
}

const retryDelay = (count: number, error: unknown): number => (error instanceof ApiError ? error.retryAfterMs : 0) + 250 * 2 ** count;

/** Whether the browser believes it has a network is nothing to it: the gateway may run on this machine, and a change that waits for one would be made when nobody expects it any more. */
export function createQueryClient(): QueryClient {
  return new QueryClient({ defaultOptions: { queries: { staleTime: 10_000, retry: isWorthAnotherTry, retryDelay, refetchOnWindowFocus: false, networkMode: 'always' }, mutations: { networkMode: 'always' } } });
}

/** Null = nobody is signed in. */
export function useSession(): UseQueryResult<Session | null> {
  return useQuery({
    queryKey: SESSION_KEY,
    staleTime: 300_000,
    queryFn: async ({ client }) => {
      if (!hasSessionHint()) return null;
      try {
        const session = await call<Session>('/api/session');
        noteSession(session);
        return session;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 401) throw error;
        noteSession(undefined);
        client.setQueryData(ENDED_KEY, whyEnded(error));
        return null;
      }
    },
  });
}

/** True when the session's key has the scope. To read, `keys:read` does too: it is what is left of `keys` to a secret in its grace. */
export function mayRead({ key: { scopes } }: Session, scope: string): boolean {
  return scopes.includes(scope) || scopes.includes(`${scope}:read`);
}

/** May what belongs to the account be changed here? */
export function useMayChange(): boolean {
  return useSession().data?.key.scopes.includes('keys') === true;
}

/** May policy and provider keys be changed here? Not by a key with limits of its own. */
export function useMayChangeAccount(): boolean {
  const isLimited = useSession().data?.key.limited === true;
  return useMayChange() && !isLimited;
}

/** Undefined while it is not known. */
function useMayReadKeys(): boolean | undefined {
  const session = useSession().data;
  return session === null || session === undefined ? undefined : mayRead(session, 'keys');
}

const useKeyPages = (isEnabled = true): Page<KeyRecord> | undefined => useWhole<KeyRecord>('/api/auth?limit=100', { isEnabled: useMayReadKeys() === true && isEnabled }).data;

/**
 * The account's keys, none where this key may not read them: the latest, and where those are not all, also every key that
 * works. Programs that make and revoke keys fill the pages, while a key that works may be older than all on them.
 */
export function useKeyNames({ isEnabled = true }: Pick<ApiOptions, 'isEnabled'> = {}): readonly KeyRecord[] {
  const latest = useKeyPages(isEnabled);
  const working = useWhole<KeyRecord>('/api/auth?limit=100&status=active', { isEnabled: isEnabled && latest?.has_more === true }).data;
  return [...new Map([...(latest?.data ?? []), ...(working?.data ?? [])].map((key) => [key.id, key])).values()];
}

/** Ids of keys that were used; asked only where `useKeyNames` does not have all keys. */
export function useUsedKeys(): readonly string[] {
  const isPart = useKeyPages()?.has_more === true;
  return useNames('key', { isEnabled: useMayReadKeys() === false || isPart });
}

function useMayListModels(): boolean {
  const scopes = useSession().data?.key.scopes ?? [];
  return scopes.includes('models:read') || scopes.includes('inference');
}

/** Models with their endpoints to choose from; nothing is asked where this key may not list them. */
export function useModelChoice(): readonly ModelRecord[] {
  const models = useApi<{ readonly data: readonly ModelRecord[] }>('/v1/models?detail=full', { isEnabled: useMayListModels() });
  return models.data?.data ?? NO_MODELS;
}

/** Seldom: these calls count to the account's own rate limit. */
const MODELS_EVERY_MS = 30_000;

/** False also while it is not known, and where this key may not list models. */
export function useIsOnlySimulator(): boolean {
  const models = useApi<{ readonly data: readonly ModelRecord[] }>('/v1/models', { everyMs: MODELS_EVERY_MS, isEnabled: useMayListModels() });
  return isOnlySimulator(models.data?.data ?? NO_MODELS);
}

/** Shows the sign-in page, with `why` where nobody signed out, and keeps nothing of what was read: who signs in next may be of another account. */
export function endSession(client: QueryClient, why?: string): void {
  noteSession(undefined);
  if (why !== undefined) client.setQueryData(ENDED_KEY, why);
  client.setQueryData(SESSION_KEY, null);
  client.removeQueries({ predicate: ({ queryKey: [first] }) => first !== SESSION_KEY[0] && (first !== ENDED_KEY[0] || why === undefined) });
}

/** Reads anew who is signed in, and keeps nothing of what was read: it may be of another account by now. */
export function askAnew(client: QueryClient): void {
  client.removeQueries({ predicate: ({ queryKey: [first] }) => first !== SESSION_KEY[0] });
  void client.resetQueries({ queryKey: SESSION_KEY });
}

/** Heeds what other tabs do: the session's cookie is one for all of them. */
export function useOtherTabs(): void {
  const client = useQueryClient();
  useEffect(() => onOtherTab(() => askAnew(client)), [client]);
}

/** Where the session itself is told to have ended it ends; where another one has begun, as its CSRF token tells, that is read. */
async function askSession(client: QueryClient): Promise<void> {
  try {
    const session = await client.fetchQuery({ queryKey: ['/api/session'], staleTime: 0, gcTime: 0, retry: false, queryFn: () => call<Session>('/api/session') });
    if (client.getQueryData<Session | null>(SESSION_KEY)?.csrf_token !== session.csrf_token) askAnew(client);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) endSession(client, whyEnded(error));
  }
}

/** A refusal may be the end of the session, or the sign of another one. Variant B tells a 403 as a 401, a refused CSRF token too: there the session is asked. */
export async function heedRefusal(client: QueryClient, error: unknown): Promise<void> {
  if (!(error instanceof ApiError)) return;
  if (error.code === 'invalid_csrf_token') askAnew(client);
  else if (error.status !== 401) return;
  else if (isOfSession(error)) endSession(client, error.message);
  else await askSession(client);
}

/** For what the pages themselves ask. */
export function useEnded(): (error: unknown) => void {
  const client = useQueryClient();
  return (error) => void heedRefusal(client, error);
}

export interface ApiOptions {
  readonly everyMs?: number;
  readonly isEnabled?: boolean;
  /** What is not there yet is asked for again, for half a minute. */
  readonly isAwaited?: boolean;
}

const AWAITED_EVERY_MS = 1_000;
const AWAITED_TRIES = 30;

const isMissing = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

/** For TanStack: until another page of a list is there the one before is shown, and never what answers another question. */
export function whileItLoads(path: string): <Answer>(before: Answer | undefined, query?: { readonly queryKey: readonly unknown[] }) => Answer | undefined {
  return (before, query) => (typeof query?.queryKey[0] === 'string' && subjectOf(query.queryKey[0]) === subjectOf(path) ? before : undefined);
}

function useRead<Answer>(queryKey: readonly [string, ...string[]], read: (context: { readonly signal: AbortSignal; readonly client: QueryClient }) => Promise<Answer>, { everyMs, isEnabled = true, isAwaited = false }: ApiOptions): UseQueryResult<Answer> {
  const ended = useEnded();
  return useQuery({
    queryKey,
    enabled: isEnabled,
    refetchInterval: everyMs ?? false,
    placeholderData: whileItLoads(queryKey[0]),
    ...(isAwaited ? { retry: (count: number, error: Error) => (isMissing(error) ? count < AWAITED_TRIES : isWorthAnotherTry(count, error)), retryDelay: (count: number, error: Error) => (isMissing(error) ? AWAITED_EVERY_MS : retryDelay(count, error)) } : {}),
    queryFn: async (context) => {
      try {
        return await read(context);
      } catch (error) {
        ended(error);
        throw error;
      }
    },
  });
}

export function useApi<Answer>(path: string, options: ApiOptions = {}): UseQueryResult<Answer> {
  return useRead([path], ({ signal }) => call<Answer>(path, { signal }), options);
}

/** What the ledger has of a request that has ended, as soon as it has it; undefined before, and where this key may not read it. */
export function useBooked(id: string | undefined): RequestRow | undefined {
  const session = useSession().data;
  const isEnabled = id !== undefined && session !== null && session !== undefined && mayRead(session, 'usage');
  return useRead([`/api/requests/${encodeURIComponent(id ?? '')}`, 'row'], ({ signal }) => bookedRow(id ?? '', signal), { isEnabled, isAwaited: true }).data;
}

const PAGES_MAX = 10;

/** A list page after page, up to ten pages; `path` has a query. Each page is a query of its own: one that has to wait does not send the others again. */
export function useWhole<Item>(path: string, options: ApiOptions = {}): UseQueryResult<Page<Item>> {
  const read = async (client: QueryClient): Promise<Page<Item>> => {
    const pageAfter = (after: string): Promise<Page<Item>> => {
      const pagePath = after === '' ? path : `${path}&after=${encodeURIComponent(after)}`;
      return client.fetchQuery({ queryKey: [pagePath], queryFn: ({ signal }) => call<Page<Item>>(pagePath, { signal }) });
    };
    let page = await pageAfter('');
    const rows = [...page.data];
    for (let pages = 1; pages < PAGES_MAX && page.has_more && page.last_id !== null; pages += 1) {
      page = await pageAfter(page.last_id);
      rows.push(...page.data);
    }
    return { ...page, data: rows };
  };
  return useRead([path, 'whole'], ({ client }) => read(client), options);
}

export interface Change extends CallOptions {
  readonly path: string;
}

/** Reads anew what is shown whose path begins with one of `stale`, however the change ended: one whose answer was lost may have been made. */
export function rereadAfter(client: QueryClient, stale: readonly string[], error: unknown): Promise<void> {
  if (error instanceof ApiError && error.status === 429) return Promise.resolve();
  return client.invalidateQueries({ predicate: ({ queryKey: [first] }) => typeof first === 'string' && stale.some((path) => first.startsWith(path)) });
}

/** As `call`; where no answer came it says that the change may have been made. */
export async function change<Answer>(path: string, options: CallOptions): Promise<Answer> {
  try {
    return await call<Answer>(path, options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 0) throw error;
    throw new ApiError(0, null, `${error.message} Your change may have been made all the same: look before you try again.`, null);
  }
}

export interface Changing<Answer> extends Pick<UseMutationResult<Answer, unknown, Change>, 'mutate' | 'reset' | 'data' | 'error' | 'isError' | 'isSuccess'> {
  /** True from the click on: a second one, or an Escape, may come before anything else is drawn. */
  readonly isPending: boolean;
}

/** A call that changes something; afterwards everything shown whose path begins with one of `stale` is read anew. One that is under way is not begun again. */
export function useChange<Answer>(stale: readonly string[]): Changing<Answer> {
  const client = useQueryClient();
  const ended = useEnded();
  const isUnderWay = useRef(false);
  const [isBegun, setIsBegun] = useState(false);
  const note = (isNow: boolean): void => {
    isUnderWay.current = isNow;
    setIsBegun(isNow);
  };
  const mutation = useMutation<Answer, unknown, Change>({
    // An answer may hold a new secret: it goes with the page that shows it.
    gcTime: 0,
    mutationFn: ({ path, ...options }) => change<Answer>(path, options),
    onError: ended,
    onSettled: (_answer, error) => {
      note(false);
      const reread = rereadAfter(client, stale, error);
      // A refusal is told at once.
      return error === null ? reread : undefined;
    },
  });
  const { reset, data, error, isError, isSuccess } = mutation;
  return {
    reset,
    data,
    error,
    isError,
    isSuccess,
    isPending: isBegun || mutation.isPending,
    mutate: (asked, options) => {
      if (isUnderWay.current) return;
      note(true);
      mutation.mutate(asked, options);
    },
  };
}

/** Models, providers or ids of keys to choose from: those that were used before. */
export function useNames(group: 'model' | 'provider' | 'key', options: ApiOptions = {}): readonly string[] {
  const usage = useWhole<UsageRow>(`/api/usage?group_by=${group}&limit=100`, options);
  return (usage.data?.data ?? []).map((row) => row[group] ?? '').filter((name) => name !== '');
}

export interface NameChoice {
  readonly data: string[];
  readonly onDropdownOpen: () => void;
}

/** The same for a list that is asked for when it is first opened; until then it holds what is chosen. */
export function useNameChoice(group: 'model' | 'provider', chosen: string): NameChoice {
  const [isOpened, setIsOpened] = useState(false);
  const names = useNames(group, { isEnabled: isOpened });
  return { data: chosen === '' || names.includes(chosen) ? [...names] : [chosen, ...names], onDropdownOpen: () => setIsOpened(true) };
}
