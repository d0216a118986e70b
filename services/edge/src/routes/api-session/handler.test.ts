import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { request as httpRequest } from 'node:http';
import { startDoor, type Door } from '../../testing/door.js';

let door: Door;
beforeEach(async () => {
  door = await startDoor();
});
afterEach(() => door.stop());

type Headers = Readonly<Record<string, string>>;
const BEARER = (): Headers => ({ authorization: `Bearer ${door.key}` });

/** With node:http, since fetch sets Host and Sec-Fetch-Site by itself. */
function call(method: string, path: string, headers: Headers = {}): Promise<{ readonly status: number; readonly headers: Readonly<Record<string, string | string[] | undefined>>; readonly json: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${door.url}${path}`, { method, headers }, (response) => {
      let text = '';
      response.on('data', (part: Buffer) => (text += part.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, json: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) }));
    });
    sent.on('error', reject);
    sent.end();
  });
}

const cookieName = (): string => `signalbox-${new URL(door.url).port}`;

const codeOf = (json: Record<string, unknown>): unknown => (json['error'] as Record<string, unknown>)['code'];

async function signIn(host?: string): Promise<{ readonly cookie: string; readonly csrf: string; readonly setCookie: string }> {
  const answer = await call('POST', '/api/session', { ...BEARER(), ...(host === undefined ? {} : { host }) });
  expect(answer.status).toBe(201);
  const setCookie = String(answer.headers['set-cookie']);
  return { cookie: setCookie.split(';')[0] ?? '', csrf: String(answer.json['csrf_token']), setCookie };
}

describe('/api/session', () => {
  test('exchanges a key for a cookie that scripts cannot read, and never returns the token or the key', async () => {
    const answer = await call('POST', '/api/session', BEARER());
    const [setCookie = ''] = answer.headers['set-cookie'] ?? [];
    expect(setCookie).toMatch(/^signalbox-\d+=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
    const text = JSON.stringify(answer.json);
    expect(text).not.toContain(door.key);
    expect(text).not.toContain(setCookie.slice(setCookie.indexOf('=') + 1, setCookie.indexOf(';')));
    expect(answer.headers['cache-control']).toBe('no-store');
  });
  test('binds the cookie to the host and to TLS, except on loopback', async () => {
    expect((await signIn('gateway.example')).setCookie).toMatch(/^__Host-signalbox=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/);
  });
  test('uses another cookie for each gateway on this machine, since browsers share cookies between ports', async () => {
    const { cookie } = await signIn();
    const { port } = new URL(door.url);
    expect(cookie.startsWith(`signalbox-${port}=`)).toBe(true);
    const other = `signalbox-${Number(port) + 1}=${'A'.repeat(43)}`;
    for (const both of [`${other}; ${cookie}`, `signalbox=x; ${cookie}; ${other}`]) expect((await call('GET', '/api/session', { cookie: both })).status).toBe(200);
    expect((await signIn('localhost')).setCookie).toMatch(/^signalbox=/);
    expect((await signIn('[::1]:81')).setCookie).toMatch(/^signalbox-81=/);
  });
  test('keeps the cookie for as long as accounts keeps the session, whatever the clock here', async () => {
    // Far from the time by the clock here.
    door.accounts.atMs = (9_000_000_000 - 43_200) * 1_000;
    expect((await signIn()).setCookie).toContain('; Max-Age=43200; ');
  });
  test('shows who is signed in, with the key’s own scopes', async () => {
    const { cookie, csrf } = await signIn();
    expect((await call('GET', '/api/session', { cookie })).json).toMatchObject({ account: { id: 'acct_1' }, key: { id: 'key_1', scopes: ['inference', 'models:read', 'keys'], limited: false }, csrf_token: csrf, expires_at: 9_000_000_000 });
    expect((await call('GET', '/api/session', BEARER())).json).toMatchObject({ key: { id: 'key_1' }, csrf_token: null });
  });
  test('creates no session from a session, which would then never end', async () => {
    const { cookie, csrf } = await signIn();
    expect(await call('POST', '/api/session', { cookie, 'x-csrf-token': csrf })).toMatchObject({ status: 401 });
  });
  test.each<[string, (csrf: string) => Headers]>([
    ['no token', () => ({})],
    ['another token', () => ({ 'x-csrf-token': 'A'.repeat(43) })],
    ['a page of another site', (csrf) => ({ 'x-csrf-token': csrf, 'sec-fetch-site': 'cross-site' })],
    ['a page of a sibling host', (csrf) => ({ 'x-csrf-token': csrf, 'sec-fetch-site': 'same-site' })],
    ['another origin', (csrf) => ({ 'x-csrf-token': csrf, origin: 'https://evil.example' })],
  ])('refuses a change with %s, and keeps the session', async (_what, headersOf) => {
    const { cookie, csrf } = await signIn();
    const refused = await call('DELETE', '/api/session', { cookie, ...headersOf(csrf) });
    expect([refused.status, codeOf(refused.json)]).toEqual([403, 'invalid_csrf_token']);
    expect((await call('GET', '/api/session', { cookie })).status).toBe(200);
  });
  test('ends a session at the sign-out, here and in the browser', async () => {
    const { cookie, csrf } = await signIn();
    const gone = await call('DELETE', '/api/session', { cookie, 'x-csrf-token': csrf, 'sec-fetch-site': 'same-origin' });
    expect([gone.status, String(gone.headers['set-cookie'])]).toEqual([200, `${cookieName()}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict`]);
    const after = await call('GET', '/api/session', { cookie });
    expect([after.status, codeOf(after.json)]).toEqual([401, 'invalid_session']);
  });
  test('opens chat completions too, with the same CSRF token', async () => {
    const { cookie, csrf } = await signIn();
    expect((await call('POST', '/v1/chat/completions', { cookie })).status).toBe(403);
    expect((await call('POST', '/v1/chat/completions', { cookie, 'x-csrf-token': csrf })).status).toBe(415);
  });
  test.each([['a key is used, whatever cookie is sent with it', 'sbx_live_wrong', 401]])('%s', async (_what, key, status) => {
    const { cookie } = await signIn();
    expect((await call('GET', '/api/session', { cookie, authorization: `Bearer ${key}` })).status).toBe(status);
  });
  test('failed authentications from the same address do not end a session in use', async () => {
    const { cookie } = await signIn();
    expect((await call('GET', '/api/session', { cookie })).status).toBe(200);
    for (let i = 0; i < 102; i += 1) await call('GET', '/api/session');
    expect((await call('GET', '/api/session', { cookie: `${cookieName()}=x` })).status).toBe(429);
    expect((await call('GET', '/api/session', { cookie })).status).toBe(200);
  });
  test('nor do they lock out a session that is not cached yet; unknown tokens are refused, and few are looked up', async () => {
    for (let i = 0; i < 102; i += 1) await call('GET', '/api/plugins', { authorization: 'Bearer junk' });
    const { cookie } = await signIn();
    expect((await call('GET', '/api/session', { cookie })).status).toBe(200);
    const statuses: number[] = [];
    for (let i = 0; i < 30; i += 1) statuses.push((await call('GET', '/api/session', { cookie: `${cookieName()}=${String(i).padStart(43, 'A')}` })).status);
    // The first call of the session used one of the look-ups of this second.
    expect([statuses.filter((status) => status === 401).length, statuses.at(-1)]).toEqual([20, 429]);
    expect((await call('GET', '/api/session', { cookie })).status).toBe(200);
  });
  test('invented tokens from an address do not lock out a key that is not cached yet', async () => {
    for (let i = 0; i < 102; i += 1) await call('GET', '/api/plugins', { authorization: 'Bearer junk' });
    for (let i = 0; i < 30; i += 1) await call('GET', '/api/session', { cookie: `${cookieName()}=${String(i).padStart(43, 'A')}` });
    expect((await call('POST', '/api/session', BEARER())).status).toBe(201);
  });
  test('a cookie without a token, or with two, is no session', async () => {
    const { cookie } = await signIn();
    for (const wrong of [`${cookieName()}=x`, `${cookie}; ${cookie}`, '__Host-signalbox=x']) expect((await call('GET', '/api/session', { cookie: wrong })).status).toBe(401);
  });
});
