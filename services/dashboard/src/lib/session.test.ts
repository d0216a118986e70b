import { afterEach, expect, jest, test } from '@jest/globals';
import { QueryClient } from '@tanstack/react-query';
import { ApiError, signIn, signOut } from './api.js';
import { ENDED_KEY, endSession, heedRefusal, SESSION_KEY } from './use-api.js';

afterEach(() => void jest.restoreAllMocks());

const answer = (status: number, body: object): void => void jest.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(JSON.stringify(body), { status }));

test.each([['as lists show keys', 'sbx_live_4f7Q…'], ['a word', 'ключ'], ['a header', 'Bearer sbx_live_4f7Q'], ['two', 'sbx_live_4f7Q sbx_live_4f7R'], ['too long', `sbx_live_${'x'.repeat(600)}`]])('what cannot be a key is told as that, and not sent, since no header could hold it: %s', async (_what, key) => {
  const fetched = jest.spyOn(globalThis, 'fetch').mockRejectedValue(new TypeError('Cannot convert argument to a ByteString'));
  await expect(signIn(key)).rejects.toMatchObject({ status: 401, code: 'invalid_api_key', message: expect.stringContaining('not an API key') });
  expect(fetched).not.toHaveBeenCalled();
});

const SIGNED_IN = { csrf_token: 'mine', key: { id: 'key_1' } };
/** Signs in; the session that was made is then read with the answer given. */
async function signInRead(status: number): Promise<unknown> {
  jest.spyOn(globalThis, 'fetch').mockImplementation((_path, { method } = {}) => (method === 'POST' ? Promise.resolve(new Response(JSON.stringify(SIGNED_IN), { status: 201 })) : status === 0 ? Promise.reject(new TypeError('fetch failed')) : Promise.resolve(new Response(JSON.stringify(status === 200 ? SIGNED_IN : {}), { status }))));
  return signIn('sbx_live_4f7Q');
}

test.each([200, 0, 429, 503])('who signed in is signed in, also where the session cannot be read at once: %i', async (status) => {
  expect(await signInRead(status)).toEqual(SIGNED_IN);
});

test('but not where the browser did not keep the cookie', async () => {
  await expect(signInRead(401)).rejects.toMatchObject({ code: 'cookie_refused' });
});

test.each([[200, {}], [401, { error: { code: 'invalid_session' } }]])('a sign-out that is answered %i is one', async (status, body) => {
  answer(status, body);
  await expect(signOut()).resolves.toBeUndefined();
});

test.each([[503, { error: { code: 'accounts_unavailable', message: 'Not now.' } }], [403, { error: { code: 'invalid_csrf_token', message: 'Not so.' } }]])('one that is answered %i is none', async (status, body) => {
  answer(status, body);
  await expect(signOut()).rejects.toMatchObject({ status });
});

test.each([[200, false], [503, false], [401, true]])('one that is answered 401 of the call alone, as variant B tells a 403, is one where the session is answered 401 too: %i', async (status, isOne) => {
  jest.spyOn(globalThis, 'fetch').mockImplementation((_path, { method } = {}) => Promise.resolve(new Response(JSON.stringify({ error: { code: 'invalid_api_key' } }), { status: method === 'DELETE' ? 401 : status })));
  expect(await signOut().then(() => true, () => false)).toBe(isOne);
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

/** What is left of a session after a call was refused, while `/api/session` answers as given. */
async function leftAfter(refusal: ApiError, status: number, body: object): Promise<{ readonly session: unknown; readonly asked: number; readonly kept: number; readonly why: unknown }> {
  const client = new QueryClient();
  client.setQueryData(SESSION_KEY, { csrf_token: 'mine' });
  client.setQueryData(['/api/usage'], { data: [] });
  const fetched = jest.spyOn(globalThis, 'fetch').mockImplementation(() => Promise.resolve(new Response(JSON.stringify(body), { status })));
  await Promise.all([heedRefusal(client, refusal), heedRefusal(client, refusal)]);
  const left = { session: client.getQueryData(SESSION_KEY), asked: fetched.mock.calls.length, kept: client.getQueryCache().findAll({ queryKey: ['/api/usage'] }).length, why: client.getQueryData(ENDED_KEY) };
  client.clear();
  return left;
}

const MINE = { csrf_token: 'mine' };
const refusedAs = (status: number, code: string | null): ApiError => new ApiError(status, code, 'No.', null);

test.each(['invalid_session', 'api_key_revoked', 'api_key_expired', 'account_suspended'])('a 401 %s ends the session at once', async (code) => {
  expect(await leftAfter(refusedAs(401, code), 200, MINE)).toEqual({ session: null, asked: 0, kept: 0, why: 'No.' });
});

test('a 401 of anything else, as variant B tells a missing scope, ends nothing while the session lives', async () => {
  expect(await leftAfter(refusedAs(401, 'invalid_api_key'), 200, MINE)).toEqual({ session: MINE, asked: 1, kept: 1 });
});

test('nor while nobody can say whether it does', async () => {
  expect(await leftAfter(refusedAs(401, 'invalid_api_key'), 503, {})).toMatchObject({ session: MINE, kept: 1 });
});

test('who comes back after the browser dropped the cookie of an ended session is told so, and nothing of keys in headers', async () => {
  const missing = { error: { message: 'No API key was given. Send it as "Authorization: Bearer <key>".', code: null } };
  expect(await leftAfter(refusedAs(401, null), 401, missing)).toMatchObject({ session: null, why: 'The session has ended. Sign in again.' });
});

test('it ends where the session is told to have ended', async () => {
  expect(await leftAfter(refusedAs(401, null), 401, { error: { code: 'invalid_session' } })).toMatchObject({ session: null, kept: 0 });
});

test.each([['as variant A tells it', refusedAs(403, 'invalid_csrf_token')], ['as variant B does', refusedAs(401, 'invalid_api_key')]])('a CSRF token of a session before is left behind for the present one: %s', async (_what, refusal) => {
  expect(await leftAfter(refusal, 200, { csrf_token: 'another' })).toMatchObject({ session: undefined, kept: 0 });
});

test('any other refusal is a matter of the page that asked', async () => {
  expect(await leftAfter(refusedAs(403, 'insufficient_scope'), 401, {})).toEqual({ session: MINE, asked: 0, kept: 1 });
});

test('who is signed out by another is told why, and who signed out is not', async () => {
  const client = new QueryClient();
  await heedRefusal(client, new ApiError(401, 'api_key_revoked', 'The API key has been revoked.', null));
  expect([client.getQueryData(SESSION_KEY), client.getQueryData(ENDED_KEY)]).toEqual([null, 'The API key has been revoked.']);
  endSession(client);
  expect(client.getQueryData(ENDED_KEY)).toBeUndefined();
  client.clear();
});
