import { afterEach, expect, jest, test } from '@jest/globals';
import { MutationObserver, onlineManager, QueryClient } from '@tanstack/react-query';
import { ApiError } from './api.js';
import { change, createQueryClient, rereadAfter } from './use-api.js';

afterEach(() => {
  onlineManager.setOnline(true);
  jest.restoreAllMocks();
});

test('a gateway of this machine is asked while the machine has no network', async () => {
  const client = createQueryClient();
  onlineManager.setOnline(false);
  const asked = client.fetchQuery({ queryKey: ['/api/usage'], queryFn: () => Promise.resolve('read') });
  expect(client.getQueryState(['/api/usage'])?.fetchStatus).toBe('fetching');
  expect(await asked).toBe('read');
  client.clear();
});

test('what is to be changed is changed now or fails now, and never when the network is back', async () => {
  const client = createQueryClient();
  onlineManager.setOnline(false);
  const revoke = new MutationObserver(client, { mutationFn: () => Promise.resolve('revoked') });
  const done = revoke.mutate();
  expect(revoke.getCurrentResult().isPaused).toBe(false);
  expect(await done).toBe('revoked');
  client.clear();
});

/** Whether a list is read anew after a change of it ended so. */
async function isReread(error: unknown): Promise<boolean> {
  const client = new QueryClient();
  client.setQueryData(['/api/auth?limit=50'], { data: [] });
  client.setQueryData(['/api/policy'], {});
  await rereadAfter(client, ['/api/auth'], error);
  const isStale = (path: string): boolean => client.getQueryState([path])?.isInvalidated === true;
  expect(isStale('/api/policy')).toBe(false);
  const answer = isStale('/api/auth?limit=50');
  client.clear();
  return answer;
}

test.each<[string, unknown]>([['done', null], ['refused, since another was before it', new ApiError(400, 'invalid_value', 'No.', null)], ['unanswered: it may have been done', new ApiError(0, null, 'Away.', null)], ['failed', new ApiError(503, 'accounts_unavailable', 'Away.', null)]])('a change that is %s has its list read anew', async (_what, error) => {
  expect(await isReread(error)).toBe(true);
});

test('one that came too often has not: that would be one call more', async () => {
  expect(await isReread(new ApiError(429, 'rate_limit_exceeded', 'Wait.', null))).toBe(false);
});

test('a change that nobody answered is not told as one that was not made', async () => {
  jest.spyOn(globalThis, 'fetch').mockRejectedValue(new TypeError('fetch failed'));
  await expect(change('/api/auth', { method: 'POST' })).rejects.toMatchObject({ status: 0, message: expect.stringContaining('may have been made') });
});
