/** /api/auth: a client's own keys. */
import { describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { errorOf, header, send, type Got, type Sent } from './http.js';
import { HELLO, type World } from './world.js';

interface KeyRecord {
  readonly id: string;
  readonly key?: string;
  readonly [field: string]: unknown;
}

const keyOf = (got: Got): KeyRecord => JSON.parse(got.text) as KeyRecord;

export function describeKeys(world: () => World): void {
  const auth = (sent: Sent & { readonly id?: string } = {}): Promise<Got> => world().call({ method: 'GET', ...sent, path: `/api/auth${sent.id === undefined ? '' : `/${sent.id}`}${sent.path ?? ''}` });
  const make = async (body: object = {}): Promise<{ readonly id: string; readonly secret: string; readonly got: Got }> => {
    const got = await auth({ method: 'POST', body: { name: 'made by a test', ...body } });
    expect({ status: got.status, text: got.status === 201 ? '' : got.text }).toEqual({ status: 201, text: '' });
    const { id, key = '' } = keyOf(got);
    return { id, secret: key, got };
  };
  const models = (key: string, baseUrl = world().gateway.baseUrl): Promise<Got> => send(baseUrl, { method: 'GET', path: '/v1/models', key });

  describe('keys', () => {
    test('are created active, shown with their secret this once, and get the creator’s scopes', async () => {
      const { id, secret, got } = await make({ name: 'ci', expires_in: 3_600 });
      expect(header(got, 'location')).toBe(`/api/auth/${id}`);
      expect(header(got, 'cache-control')).toBe('no-store');
      const record = keyOf(got);
      expect(id).toMatch(/^key_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(secret).toMatch(/^sbx_live_[0-9A-Za-z]{36}$/);
      expect(record).toMatchObject({ object: 'api_key', name: 'ci', status: 'active', last_used_at: null, revoked_at: null, limits: { requests_per_minute: null, cost_cap_usd: null, cost_cap_period: null, allowed_models: null } });
      expect(secret.startsWith(String(record['prefix']))).toBe(true);
      expect(Number(record['expires_at']) - Number(record['created_at'])).toBe(3_600);
      expect([...(record['scopes'] as string[])].sort()).toEqual(['inference', 'keys', 'models:read', 'usage:read']);
      expect((await send(world().gateway.baseUrl, { key: secret, body: { model: 'simulator/fast', messages: HELLO } })).status).toBe(200);
      const shown = await auth({ id });
      expect(shown.text).not.toContain(secret);
      expect(keyOf(shown).key).toBeUndefined();
    });

    test('show when they were last used, and null if they were not', async () => {
      const [used, idle] = [await make(), await make()];
      const before = Math.floor(Date.now() / 1_000);
      expect((await models(used.secret)).status).toBe(200);
      const told = await eventually('the use is told', async () => keyOf(await auth({ id: used.id }))['last_used_at'] ?? undefined, 20_000);
      expect(Number(told)).toBeGreaterThanOrEqual(before);
      expect(Number(told)).toBeLessThanOrEqual(Date.now() / 1_000);
      expect(keyOf(await auth({ id: idle.id }))['last_used_at']).toBeNull();
    }, 30_000);

    test('never expire if expires_in is absent or null', async () => {
      expect(keyOf((await make()).got)['expires_at']).toBeNull();
      expect(keyOf((await make({ expires_in: null })).got)['expires_at']).toBeNull();
    });

    test.each([
      [{}, 'name', 'missing_required_parameter'],
      [{ name: '' }, 'name', 'invalid_value'],
      [{ name: 'x'.repeat(101) }, 'name', 'invalid_value'],
      [{ name: 5 }, 'name', 'invalid_type'],
      [{ name: 'n', expires_in: 0 }, 'expires_in', 'invalid_value'],
      [{ name: 'n', expires_in: -5 }, 'expires_in', 'invalid_value'],
      [{ name: 'n', expires_in: 1.5 }, 'expires_in', 'invalid_value'],
      [{ name: 'n', expires_in: '60' }, 'expires_in', 'invalid_type'],
      [{ name: 'n', expires_in: 315_360_001 }, 'expires_in', 'invalid_value'],
    ])('are refused with %j', async (body, param, code) => {
      const got = await auth({ method: 'POST', body });
      expect([got.status, errorOf(got).param, errorOf(got).code]).toEqual([400, param, code]);
    });

    test('are listed newest first, in pages', async () => {
      const account = await world().newAccount({});
      const own = (sent: Sent): Promise<Got> => send(world().gateway.baseUrl, { key: account.key, ...sent });
      const ids: string[] = [];
      for (const name of ['one', 'two', 'three']) ids.unshift(keyOf(await own({ path: '/api/auth', body: { name } })).id);
      const first = JSON.parse((await own({ method: 'GET', path: '/api/auth?limit=2' })).text) as { data: KeyRecord[]; [field: string]: unknown };
      expect(first).toMatchObject({ object: 'list', has_more: true, first_id: ids[0], last_id: ids[1] });
      expect(first.data.map(({ id }) => id)).toEqual(ids.slice(0, 2));
      const rest = JSON.parse((await own({ method: 'GET', path: `/api/auth?limit=2&after=${ids[1] ?? ''}` })).text) as { data: KeyRecord[]; has_more: boolean };
      expect(rest.data.map(({ id }) => id)[0]).toBe(ids[2]);
      expect(rest.has_more).toBe(false);
      expect((await own({ method: 'GET', path: '/api/auth?limit=101' })).status).toBe(400);
    });

    test('can be renamed, and a disabled one is refused until it is enabled', async () => {
      const { id, secret } = await make();
      expect(keyOf(await auth({ method: 'PATCH', id, body: { name: 'renamed' } }))).toMatchObject({ id, name: 'renamed', status: 'active' });
      expect(keyOf(await auth({ method: 'PATCH', id, body: { disabled: true } }))['status']).toBe('disabled');
      await eventually('the disabled key is refused', async () => ((await models(secret)).status === 401 ? true : undefined));
      expect(keyOf(await auth({ method: 'PATCH', id, body: { disabled: false } }))['status']).toBe('active');
      await eventually('the enabled key works', async () => ((await models(secret)).status === 200 ? true : undefined));
    });

    test('obey their own limits', async () => {
      const { secret } = await make({ limits: { requests_per_minute: 1, allowed_models: ['simulator/fast'] } });
      const chat = (model: string): Promise<Got> => send(world().gateway.baseUrl, { key: secret, body: { model, messages: HELLO } });
      expect((await chat('simulator/smart')).status).toBe(404);
      expect((JSON.parse((await models(secret)).text) as { data: KeyRecord[] }).data.map(({ id }) => id)).toEqual([world().variant === 'A' ? 'auto' : 'router-auto', 'simulator/fast']);
      expect((await chat('simulator/fast')).status).toBe(200);
      expect((await chat('simulator/fast')).status).toBe(429);
    });

    test('changes the limits that are named and keeps the others', async () => {
      const caps = [{ cap_usd: 1, period: 'day' }, { cap_usd: 5, period: 'month' }];
      const { id } = await make({ limits: { requests_per_minute: 9, cost_caps: caps, allowed_models: ['simulator/fast'] } });
      const set = async (limits: object | null): Promise<unknown> => keyOf(await auth({ method: 'PATCH', id, body: { limits } }))['limits'];
      expect(await set({ requests_per_minute: 3 })).toMatchObject({ requests_per_minute: 3, cost_caps: caps, allowed_models: ['simulator/fast'] });
      expect(await set({ cost_cap_usd: 2, cost_cap_period: 'week', allowed_models: null })).toEqual({ requests_per_minute: 3, cost_cap_usd: 2, cost_cap_period: 'week', allowed_models: null });
      expect(await set(null)).toEqual({ requests_per_minute: null, cost_cap_usd: null, cost_cap_period: null, allowed_models: null });
    });

    test('can be rotated: both secrets work in the grace period; without one the old secret is refused', async () => {
      const { id, secret } = await make();
      const rotated = await auth({ method: 'POST', id, path: '/rotate', body: { grace_seconds: 600 } });
      expect(rotated.status).toBe(200);
      const next = keyOf(rotated).key ?? '';
      expect(next).not.toBe(secret);
      expect([(await models(secret)).status, (await models(next)).status]).toEqual([200, 200]);
      const refused = await eventually('the old secret manages no keys', async () => {
        const got = await send(world().gateway.baseUrl, { method: 'PATCH', path: `/api/auth/${id}`, key: secret, body: { name: 'turned' } });
        return got.status === 200 ? undefined : got;
      });
      expect([refused.status, errorOf(refused).code]).toEqual(world().variant === 'A' ? [403, 'insufficient_scope'] : [401, 'invalid_api_key']);
      // Its key has the scope: whoever still sends the old secret must not look for a missing one.
      expect(errorOf(refused).message).toMatch(/replaced by a rotation.*Use the new secret/);
      expect((await send(world().gateway.baseUrl, { path: `/api/auth/${id}/rotate`, key: secret, body: { grace_seconds: 600 } })).status).toBe(refused.status);
      for (const key of [secret, next]) expect((await send(world().gateway.baseUrl, { method: 'GET', path: '/api/auth', key })).status).toBe(200);
      const again = keyOf(await auth({ method: 'POST', id, path: '/rotate', body: { grace_seconds: 0 } })).key ?? '';
      expect((await models(again)).status).toBe(200);
      await eventually('the secret without grace is refused', async () => ((await models(next)).status === 401 ? true : undefined));
    });

    test('are revoked for good, and a repeated call gives the same answer', async () => {
      const { id, secret } = await make();
      const revoked = await auth({ method: 'DELETE', id });
      expect(revoked.status).toBe(200);
      expect(JSON.parse(revoked.text)).toEqual({ id, object: 'api_key', deleted: true, status: 'revoked', revoked_at: expect.any(Number) });
      expect((await auth({ method: 'DELETE', id })).text).toBe(revoked.text);
      const refused = await eventually('the revoked key is refused', async () => {
        const got = await models(secret);
        return got.status === 200 ? undefined : got;
      });
      expect([refused.status, errorOf(refused).code]).toEqual([401, 'api_key_revoked']);
      expect(keyOf(await auth({ id }))['status']).toBe('revoked');
    });

    test('that are revoked are refused by every replica within a second', async () => {
      const { id, secret } = await make();
      const edges = world().edges();
      for (const edge of edges) expect((await models(secret, edge)).status).toBe(200);
      await auth({ method: 'DELETE', id });
      const revokedAt = performance.now();
      await Promise.all(
        edges.map((edge) =>
          eventually('the replica refuses it', async () => {
            const askedAt = performance.now();
            const { status } = await models(secret, edge);
            if (status === 200) expect(askedAt - revokedAt).toBeLessThan(1_000);
            return status === 401 ? true : undefined;
          }),
        ),
      );
    });

    test('that have expired are refused', async () => {
      const { secret } = await make({ expires_in: 1 });
      const refused = await eventually('the key expires', async () => {
        const got = await models(secret);
        return got.status === 200 ? undefined : got;
      });
      expect([refused.status, errorOf(refused).code]).toEqual([401, 'api_key_expired']);
    });

    test.each(['GET', 'DELETE', 'PATCH'])('that are unknown or another account’s are 404 for %s', async (method) => {
      const other = await world().newAccount({});
      const foreign = keyOf(await send(world().gateway.baseUrl, { key: other.key, path: '/api/auth', body: { name: 'theirs' } })).id;
      for (const id of ['key_01JD8Z6T9M3W5R7V2K4X6B8N0Q', 'nonsense', foreign]) {
        const got = await auth({ method, id, ...(method === 'PATCH' ? { body: { name: 'x' } } : {}) });
        expect([got.status, errorOf(got).code]).toEqual([404, 'key_not_found']);
      }
      expect((await models(other.key)).status).toBe(200);
    });

    test('get no scope that their creator lacks', async () => {
      const { secret } = await make({ scopes: ['keys', 'models:read'] });
      const got = await send(world().gateway.baseUrl, { key: secret, path: '/api/auth', body: { name: 'more', scopes: ['inference'] } });
      expect([got.status, errorOf(got).code]).toEqual(world().variant === 'A' ? [403, 'insufficient_scope'] : [401, 'invalid_api_key']);
      const heir = keyOf(await send(world().gateway.baseUrl, { key: secret, path: '/api/auth', body: { name: 'heir' } }));
      expect([...(heir['scopes'] as string[])].sort()).toEqual(['keys', 'models:read']);
    });

    test('cannot remove or exceed their own limits by any call', async () => {
      const limits = { cost_cap_usd: 1, cost_cap_period: 'day' };
      const { id, secret } = await make({ limits });
      const { id: free } = await make();
      const refused = world().variant === 'A' ? [403, 'insufficient_scope'] : [401, 'invalid_api_key'];
      const own = (sent: Sent): Promise<Got> => send(world().gateway.baseUrl, { ...sent, key: secret });
      const loosening: Sent[] = [
        { path: '/api/auth', body: { name: 'child' } },
        { path: '/api/auth', body: { name: 'child', limits }, headers: { 'idempotency-key': 'child-of-a-capped-key' } },
        { path: '/api/auth', body: { name: 'child', limits }, headers: { 'idempotency-key': 'child-of-a-capped-key' } },
        { path: '/api/auth', body: { name: 'child', scopes: ['keys'] } },
        { method: 'PATCH', path: `/api/auth/${id}`, body: { limits: null } },
        { method: 'PATCH', path: `/api/auth/${id}`, body: { limits: { ...limits, cost_cap_usd: 2 } } },
        { path: `/api/auth/${free}/rotate`, body: { grace_seconds: 0 } },
        { method: 'PUT', path: '/api/policy', body: {} },
        { method: 'PUT', path: '/api/providers/simulator', body: { secret: 'another-credential' } },
        { method: 'DELETE', path: '/api/providers/simulator' },
      ];
      for (const sent of loosening) {
        const got = await own(sent);
        expect([sent, got.status, errorOf(got).code]).toEqual([sent, ...refused]);
      }
      for (const path of ['/api/policy', '/api/providers']) expect((await own({ method: 'GET', path })).status).toBe(200);
      expect(keyOf(await own({ path: '/api/auth', body: { name: 'reader', scopes: ['usage:read'], limits } })).name).toBe('reader');
      expect(keyOf(await own({ method: 'PATCH', path: `/api/auth/${id}`, body: { limits: { ...limits, cost_cap_usd: 0.5 } } }))['limits']).toMatchObject({ cost_cap_usd: 0.5 });
      expect(keyOf(await auth({ method: 'PATCH', id, body: { limits: null } }))['limits']).toMatchObject({ cost_cap_usd: null });
    });

    test('can only be managed with the scope keys', async () => {
      const { id, secret } = await make({ scopes: ['inference'] });
      for (const sent of [{ method: 'GET' }, { method: 'POST', body: { name: 'x' } }, { method: 'DELETE', path: `/api/auth/${id}` }]) {
        const got = await send(world().gateway.baseUrl, { path: '/api/auth', ...sent, key: secret });
        expect([got.status, errorOf(got).code]).toEqual(world().variant === 'A' ? [403, 'insufficient_scope'] : [401, 'invalid_api_key']);
      }
    });
  });
}
