/** Answers of the interface as queries; a session that ended ends here. */
import { QueryClient, useMutation, useQuery, useQueryClient, type UseMutationResult, type UseQueryResult } from '@tanstack/react-query';
import { ApiError, call, hasSessionHint, noteSession, type CallOptions } from './api.js';
import type { Page, Session, UsageRow } from './types.js';

export const SESSION_KEY = ['session'] as const;

const WAIT_MS_MAX = 20_000;

/** Our own limits are waited out, faults tried twice more, and refusals believed. */
function isWorthAnotherTry(count: number, error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.status === 429) return count < 5 && error.retryAfterMs <= WAIT_MS_MAX;
  return count < 2 && (error.status === 0 || error.status >= 500);
}

export function createQueryClient(): QueryClient {
  const retryDelay = (count: number, error: unknown): number => (error instanceof ApiError ? error.retryAfterMs : 0) + 250 * 2 ** count;
  return new QueryClient({ defaultOptions: { queries: { staleTime: 10_000, retry: isWorthAnotherTry, retryDelay, refetchOnWindowFocus: false } } });
}

/** Null = nobody is signed in. */
export function useSession(): UseQueryResult<Session | null> {
  return useQuery({
    queryKey: SESSION_KEY,
    staleTime: 300_000,
    queryFn: async () => {
      if (!hasSessionHint()) return null;
      try {
        const session = await call<Session>('/api/session');
        noteSession(session);
        return session;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 401) throw error;
        noteSession(undefined);
        return null;
      }
    },
  });
}

/** Shows the sign-in page, and keeps nothing of what was read: who signs in next may be of another account. */
export function endSession(client: QueryClient): void {
  noteSession(undefined);
  client.setQueryData(SESSION_KEY, null);
  client.removeQueries({ predicate: ({ queryKey: [first] }) => first !== SESSION_KEY[0] });
}

/** A 401 of any call means that the session has ended. */
function useEnded(): (error: unknown) => void {
  const client = useQueryClient();
  return (error) => {
    if (error instanceof ApiError && error.status === 401) endSession(client);
  };
}

export interface ApiOptions {
  readonly everyMs?: number;
  readonly isEnabled?: boolean;
}

export function useApi<Answer>(path: string, { everyMs, isEnabled = true }: ApiOptions = {}): UseQueryResult<Answer> {
  const ended = useEnded();
  return useQuery({
    queryKey: [path],
    enabled: isEnabled,
    refetchInterval: everyMs ?? false,
    placeholderData: (before) => before,
    queryFn: async ({ signal }) => {
      try {
        return await call<Answer>(path, { signal });
      } catch (error) {
        ended(error);
        throw error;
      }
    },
  });
}

export interface Change extends CallOptions {
  readonly path: string;
}

/** A call that changes something; afterwards everything shown whose path begins with one of `stale` is read anew. */
export function useChange<Answer>(stale: readonly string[]): UseMutationResult<Answer, unknown, Change> {
  const client = useQueryClient();
  const ended = useEnded();
  return useMutation({
    // An answer may hold a new secret: it goes with the page that shows it.
    gcTime: 0,
    mutationFn: ({ path, ...options }: Change) => call<Answer>(path, options),
    onError: ended,
    onSuccess: () => client.invalidateQueries({ predicate: ({ queryKey: [first] }) => typeof first === 'string' && stale.some((path) => first.startsWith(path)) }),
  });
}

/** Models or providers to choose from: those that were used before. */
export function useNames(group: 'model' | 'provider'): readonly string[] {
  const usage = useApi<Page<UsageRow>>(`/api/usage?group_by=${group}&limit=100`);
  return (usage.data?.data ?? []).map((row) => row[group] ?? '').filter((name) => name !== '');
}
