import { afterEach, expect, jest, test } from '@jest/globals';
import { QueryClient } from '@tanstack/react-query';
import { signOut } from './api.js';
import { endSession, SESSION_KEY } from './use-api.js';

afterEach(() => void jest.restoreAllMocks());

const answer = (status: number, body: object): void => void jest.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(JSON.stringify(body), { status }));

test.each([[200, {}], [401, { error: { code: 'invalid_session' } }]])('a sign-out that is answered %i is one', async (status, body) => {
  answer(status, body);
  await expect(signOut()).resolves.toBeUndefined();
});

test.each([[503, { error: { code: 'accounts_unavailable', message: 'Not now.' } }], [403, { error: { code: 'invalid_csrf_token', message: 'Not so.' } }]])('one that is answered %i is none', async (status, body) => {
  answer(status, body);
  await expect(signOut()).rejects.toMatchObject({ status });
});

test('nor is one that does not get through', async () => {
  jest.spyOn(globalThis, 'fetch').mockRejectedValue(new TypeError('fetch failed'));
  await expect(signOut()).rejects.toMatchObject({ status: 0 });
});

test('of a session that has ended nothing is kept for the next one', () => {
  const client = new QueryClient();
  client.setQueryData(SESSION_KEY, { account: { id: 'acct_1' } });
  client.setQueryData(['/api/usage?group_by=day'], { data: [] });
  endSession(client);
  expect(client.getQueryCache().getAll().map(({ queryKey, state }) => [queryKey, state.data])).toEqual([[SESSION_KEY, null]]);
  client.clear();
});
