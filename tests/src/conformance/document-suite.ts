/** Calls every operation of /openapi.json: requests and answers match the document, and answers have no fields that it does not name. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { readDocument, type ApiDocument } from './document.js';
import { eventually } from './eventually.js';
import { completionOf, header, send, streamOf, type Got } from './http.js';
import { HELLO, PINNED, type TestAccount, type World } from './world.js';

interface Asked {
  /** Values of the path parameters. */
  readonly of?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Null = none. */
  readonly key?: string | null;
}

const JSON_TYPE = 'application/json';

export function describeDocument(world: () => World): void {
  let account: TestAccount;
  let document: ApiDocument;
  const called = new Set<string>();

  /** One call, compared with the document. */
  const ask = async (method: string, path: string, { of = {}, query = '', body, headers = {}, key = account.key }: Asked = {}): Promise<Got> => {
    const address = path.replaceAll(/\{(\w+)\}/g, (_braces, name: string) => of[name] ?? '');
    const got = await send(world().gateway.baseUrl, { method: method.toUpperCase(), path: `${address}${query}`, headers, ...(key === null ? {} : { key }), ...(body === undefined ? {} : { body }) });
    const contentType = header(got, 'content-type').split(';')[0] ?? '';
    const bodies = contentType === 'text/event-stream' ? streamOf(got.text).chunks : [got.text === '' ? undefined : contentType === JSON_TYPE ? (JSON.parse(got.text) as unknown) : got.text];
    const problems = bodies.flatMap((each) => document.problems({ method, path, status: got.status, contentType, sent: body, got: each }));
    expect([method, path, got.status, problems]).toEqual([method, path, got.status, []]);
    // Answers about an account must not be cached.
    if (key !== null && path !== '/v1/chat/completions' && got.status < 300 && got.text !== '') expect([path, header(got, 'cache-control')]).toEqual([path, 'no-store']);
    if (got.status < 300) called.add(`${method} ${path}`);
    return got;
  };
  const fieldOf = (got: Got, name: string): string => String((JSON.parse(got.text) as Readonly<Record<string, unknown>>)[name]);

  describe('the OpenAPI document', () => {
    beforeAll(async () => {
      const { text } = await send(world().gateway.baseUrl, { method: 'GET', path: '/openapi.json' });
      document = readDocument(text);
      account = await world().newAccount({});
    });

    test('describes completions, models and decisions as they are', async () => {
      const chat = '/v1/chat/completions';
      const plain = await ask('post', chat, { body: { model: PINNED, messages: HELLO, temperature: null, provider: { order: ['openai'] } } });
      await ask('post', chat, { body: { model: PINNED, messages: HELLO, stream: true, stream_options: { include_usage: true } }, headers: { 'X-Router-Metadata': 'enabled' } });
      await ask('post', chat, { body: { model: PINNED, messages: [{ role: 'user', content: 'two tools' }], tools: ['get_weather', 'get_time'].map((name) => ({ type: 'function', function: { name } })) }, headers: { 'X-Router-Metadata': 'enabled' } });
      await ask('post', chat, { body: { model: 'none/such', messages: HELLO } });
      const refused = await ask('post', chat, { body: { model: PINNED, messages: [{ role: 'user', content: 'bad value please' }] }, headers: { 'X-Router-Metadata': 'enabled', 'x-session-id': 'mine' } });
      expect(Object.keys(JSON.parse(refused.text) as object)).toEqual(['error', 'router_metadata']);
      for (const query of ['', '?detail=full']) {
        await ask('get', '/v1/models', { query });
        await ask('get', '/v1/models/{model}', { of: { model: PINNED }, query });
      }
      await ask('get', '/v1/models/{model}', { of: { model: 'none/such' } });
      await ask('get', '/v1/decisions/{id}', { of: { id: header(plain, 'x-router-decision-id') } });
      await ask('post', '/v1/feedback', { body: { request_id: completionOf(plain).id, score: 1 } });
    });

    test('describes keys as they are', async () => {
      const caps = [{ cap_usd: 5, period: 'day' }, { cap_usd: 12.5, period: 'total' }];
      const made = await ask('post', '/api/auth', { body: { name: 'ci', scopes: ['inference'], expires_in: 3_600, limits: { requests_per_minute: 5, cost_caps: caps, allowed_models: [PINNED] } }, headers: { 'Idempotency-Key': 'document-1' } });
      const of = { key_id: fieldOf(made, 'id') };
      await ask('get', '/api/auth', { query: '?limit=2&status=active' });
      await ask('get', '/api/auth/{key_id}', { of });
      await ask('patch', '/api/auth/{key_id}', { of, body: { name: 'cd', disabled: false, limits: { cost_cap_usd: 1, cost_cap_period: 'week' } } });
      await ask('post', '/api/auth/{key_id}/rotate', { of, body: { grace_seconds: 60 } });
      await ask('delete', '/api/auth/{key_id}', { of });
      await ask('get', '/api/auth/{key_id}', { of: { key_id: 'key_none' } });
      await ask('get', '/api/auth', { key: null });
      await ask('get', '/api/limits', { key: fieldOf(made, 'key') });
    });

    test('describes usage, requests and statements as they are', async () => {
      const id = completionOf(await ask('post', '/v1/chat/completions', { body: { model: PINNED, messages: HELLO } })).id;
      await eventually('the request is booked', async () => ((await send(world().gateway.baseUrl, { method: 'GET', path: `/api/requests/${id}`, key: account.key })).status === 200 ? true : undefined));
      await ask('get', '/api/requests/{request_id}', { of: { request_id: id } });
      await ask('get', '/api/requests', { query: '?limit=1&status=completed' });
      for (const group of ['day', 'model', 'provider', 'key']) await ask('get', '/api/usage', { query: `?group_by=${group}` });
      const period = (JSON.parse((await ask('get', '/api/statements')).text) as { readonly data: readonly { readonly period: string }[] }).data[0]?.period ?? '';
      await ask('get', '/api/statements/{period}', { of: { period } });
      await ask('get', '/api/statements/{period}', { of: { period }, headers: { accept: 'text/csv' } });
      await ask('get', '/api/statements/{period}', { of: { period: 'never' } });
      await ask('get', '/api/limits');
      const free = await world().newAccount({ tier: world().variant === 'A' ? 'free' : 'pro', cost_caps: [{ cap_usd: '5', period: 'month' }] });
      await ask('get', '/api/limits', { key: free.key });
    });

    test('describes an account’s own settings as they are', async () => {
      const policy = JSON.parse((await ask('get', '/api/policy')).text) as object;
      await ask('put', '/api/policy', { body: policy });
      await ask('put', '/api/policy', { body: { mode: 'economy', cost_caps: [{ cap_usd: 0.5, period: 'week' }], deny_providers: ['groq'] } });
      await ask('put', '/api/policy', { body: {} });
      const of = { provider: 'together' };
      await ask('put', '/api/providers/{provider}', { of, body: { secret: 'sk-own-1234567890', zdr: true, base_url: world().upstreams.own.baseUrl } });
      await ask('get', '/api/providers');
      await ask('get', '/api/providers/{provider}', { of });
      await ask('delete', '/api/providers/{provider}', { of });
      await ask('get', '/api/providers/{provider}', { of });
    });

    test('describes plugins and memory as they are', async () => {
      await ask('get', '/api/plugins');
      await ask('post', '/v1/chat/completions', { body: { model: PINNED, messages: [{ role: 'user', content: 'Remember that my name is Ada.' }], user: 'ada', plugins: ['memory'] } });
      await ask('get', '/api/memory', { query: '?user=ada' });
      await ask('delete', '/api/memory', { query: '?user=ada' });
    });

    test('describes sessions as they are', async () => {
      const signed = await ask('post', '/api/session');
      const cookie = String(signed.headers['set-cookie']?.[0]).split(';')[0] ?? '';
      await ask('get', '/api/session', { key: null, headers: { cookie } });
      await ask('get', '/api/session');
      await ask('delete', '/api/session', { key: null, headers: { cookie } });
      await ask('delete', '/api/session', { key: null, headers: { cookie, 'x-csrf-token': fieldOf(signed, 'csrf_token') } });
      await ask('get', '/api/session', { key: null, headers: { cookie } });
    });

    test('describes nothing else: every operation was called above and succeeded', async () => {
      await ask('get', '/openapi.json', { key: null });
      expect([...called].sort()).toEqual([...document.operations].sort());
    });
  });
}
