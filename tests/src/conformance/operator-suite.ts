/** The admin port: accounts of every tier with every setting, keys, and refusals; and an account's own policy. */
import { describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { readUntil, send, type Got } from './http.js';
import type { World } from './world.js';

type Json = Readonly<Record<string, unknown>>;
const jsonOf = (got: Got): Json => JSON.parse(got.text) as Json;
const SETTINGS = {
  hard_cap: true, included_tokens: '9000000000000000', byok_tokens: '5', overage_usd_per_million: '1.25', requests_per_minute: 77, burst_per_second: 7, trial_credit_usd: '0.5', baseline_model: 'openai/gpt-4o', variant: 'B', store_answers: true,
  cost_caps: [{ cap_usd: '1.000000001', period: 'day' }, { cap_usd: '9', period: 'total' }],
} as const;
const SHOWN = {
  hard_cap: true, included_tokens: 9_000_000_000_000_000, byok_tokens: 5, overage_usd_per_million: 1.25, requests_per_minute: 77, burst_per_second: 7, trial_credit_usd: 0.5, baseline_model: 'openai/gpt-4o', variant: 'B', store_answers: true,
  cost_caps: [{ cap_usd: 1.000000001, period: 'day' }, { cap_usd: 9, period: 'total' }],
};

export function describeOperator(world: () => World): void {
  describe('the operator', () => {
    test.each(['free', 'team', 'business', 'enterprise', 'pro'])('sets, shows and removes every setting of an account of tier %s', async (tier) => {
      const made = await world().admin('POST', '/admin/accounts', { name: 'set', tier, ...SETTINGS });
      expect(made.status).toBe(201);
      const { account, key } = jsonOf(made) as { account: Json & { id: string }; key: { id: string; key: string } };
      expect(account).toMatchObject({ name: 'set', tier, suspended: false, ...SHOWN });
      expect(key.key).toMatch(/^sbx_live_/);
      expect(jsonOf(await world().admin('GET', `/admin/accounts/${account.id}`))['account']).toEqual(account);
      const bare = { requests_per_minute: null, burst_per_second: null, included_tokens: null, byok_tokens: null, overage_usd_per_million: null, trial_credit_usd: null, baseline_model: null, variant: null };
      const off = await world().admin('PATCH', `/admin/accounts/${account.id}`, { ...bare, cost_cap_usd: null, hard_cap: false, store_answers: false });
      expect(jsonOf(off)['account']).toMatchObject({ ...bare, cost_caps: [], hard_cap: false, store_answers: false, tier, name: 'set' });
      const { accounts } = jsonOf(await world().admin('GET', '/admin/accounts')) as { accounts: readonly Json[] };
      expect(accounts.some(({ id }) => id === account.id)).toBe(true);
    });

    test('sees the caps of an account before its first request, its own policy included', async () => {
      const account = await world().newAccount({ cost_cap_usd: '50', cost_cap_period: 'month' });
      const policy = await send(world().gateway.baseUrl, { method: 'PUT', path: '/api/policy', key: account.key, body: { cost_caps: [{ cap_usd: 2, period: 'day' }] } });
      expect(policy.status).toBe(200);
      const shown = await world().admin('GET', `/admin/quota?account=${account.id}`);
      expect(jsonOf(shown)).toMatchObject({ settled_nano_usd: '0', buckets: [], caps: [{ scope: 'account', period: 'month', cap_nano_usd: '50000000000' }, { scope: 'account', period: 'day', cap_nano_usd: '2000000000' }] });
    });

    test('suspends an account, whose keys are then refused, and resumes it', async () => {
      const account = await world().newAccount({});
      const models = (): Promise<Got> => send(world().gateway.baseUrl, { method: 'GET', path: '/v1/models', key: account.key });
      expect((await models()).status).toBe(200);
      expect(jsonOf(await world().admin('POST', `/admin/accounts/${account.id}/suspend`))['account']).toMatchObject({ suspended: true });
      await eventually('the key is refused', async () => ((await models()).status === 401 ? true : undefined));
      expect(jsonOf(await world().admin('POST', `/admin/accounts/${account.id}/resume`))['account']).toMatchObject({ suspended: false });
      await eventually('the key is good again', async () => ((await models()).status === 200 ? true : undefined));
    });

    test('creates keys with scopes and an expiry, lists them and revokes them', async () => {
      const account = await world().newAccount({});
      const made = await world().admin('POST', '/admin/keys', { account_id: account.id, name: 'short', expires_in: 3_600, scopes: ['models:read'] });
      const { key } = jsonOf(made) as { key: Json & { id: string; key: string; created_at: number; expires_at: number } };
      expect([made.status, key['scopes'], key.expires_at - key.created_at]).toEqual([201, ['models:read'], 3_600]);
      const { keys } = jsonOf(await world().admin('GET', `/admin/keys?account=${account.id}`)) as { keys: readonly Json[] };
      expect(keys.map(({ id }) => id)).toContain(key.id);
      expect(JSON.stringify(keys)).not.toContain(key.key);
      expect(jsonOf(await world().admin('DELETE', `/admin/keys/${key.id}?compromised=true`))['key']).toMatchObject({ id: key.id, status: 'revoked' });
    });

    test('limits a key, changes one limit and keeps the others, lifts one that its holder cannot, and rotates the key', async () => {
      const account = await world().newAccount({});
      const body = { account_id: account.id, name: 'app', scopes: ['inference', 'models:read'], requests_per_minute: 50, cost_cap_usd: '5', cost_cap_period: 'day', allowed_models: ['simulator/fast'] };
      const made = jsonOf(await world().admin('POST', '/admin/keys', body))['key'] as Json & { id: string; key: string; limits: Json };
      expect(made.limits).toMatchObject({ requests_per_minute: 50, cost_cap_usd: 5, cost_cap_period: 'day', allowed_models: ['simulator/fast'] });
      const set = async (change: Json): Promise<Json> => jsonOf(await world().admin('PATCH', `/admin/keys/${made.id}`, change))['key'] as Json;
      expect(await set({ cost_cap_usd: '9', cost_cap_period: 'month', name: 'app 2' })).toMatchObject({ name: 'app 2', limits: { requests_per_minute: 50, cost_cap_usd: 9, cost_cap_period: 'month', allowed_models: ['simulator/fast'] } });
      expect(await set({ requests_per_minute: null, allowed_models: null, disabled: true })).toMatchObject({ status: 'disabled', limits: { requests_per_minute: null, cost_cap_usd: 9, allowed_models: null } });
      // Two operators at once.
      await Promise.all([set({ requests_per_minute: 7 }), set({ cost_cap_usd: '3', cost_cap_period: 'day' }), set({ allowed_models: ['simulator/smart'] })]);
      expect(await set({ name: 'app 3' })).toMatchObject({ limits: { requests_per_minute: 7, cost_cap_usd: 3, cost_cap_period: 'day', allowed_models: ['simulator/smart'] } });
      expect(await set({ requests_per_minute: null, allowed_models: null, disabled: true })).toMatchObject({ limits: { requests_per_minute: null, cost_cap_usd: 3, allowed_models: null } });
      expect(await set({ disabled: false, cost_cap_usd: null })).toMatchObject({ status: 'active', limits: { cost_cap_usd: null } });
      const turned = jsonOf(await world().admin('POST', `/admin/keys/${made.id}/rotate`, {}))['key'] as { key: string };
      const models = async (secret: string): Promise<number> => (await send(world().gateway.baseUrl, { method: 'GET', path: '/v1/models', key: secret })).status;
      expect(turned.key).not.toBe(made.key);
      await eventually('the old secret is refused', async () => ((await models(made.key)) === 401 ? true : undefined));
      expect(await models(turned.key)).toBe(200);
      const wrong = await Promise.all([world().admin('PATCH', `/admin/keys/${made.id}`, { allowed_models: ['nobody/nothing'] }), world().admin('PATCH', `/admin/keys/${made.id}`, { cost_cap_period: 'day' }), world().admin('PATCH', '/admin/keys/key_none', { name: 'x' }), world().admin('POST', '/admin/keys/key_none/rotate', {})]);
      expect(wrong.map(({ status }) => status)).toEqual([400, 400, 404, 404]);
    });

    test('ends the requests of a compromised key, and of no other, charged for what was delivered', async () => {
      const account = await world().newAccount({});
      const { key } = jsonOf(await world().admin('POST', '/admin/keys', { account_id: account.id, name: 'leaked' })) as { key: { id: string; key: string } };
      const tell = (secret: string, tokens: number): Promise<Response> =>
        fetch(`${world().gateway.baseUrl}/v1/chat/completions`, {
          method: 'POST', headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'simulator/fast', stream: true, messages: [{ role: 'user', content: `tell [sim:tokens=${tokens},chunk-delay-ms=20]` }] }),
        });
      const [leaked, other] = await Promise.all([tell(key.key, 4_000), tell(account.key, 100)]);
      const reader = leaked.body?.getReader();
      if (reader === undefined) throw new Error('expected a body');
      await readUntil(reader, '"content":"T');
      await world().admin('DELETE', `/admin/keys/${key.id}?compromised=true`);
      const rest = async (): Promise<void> => {
        for (let part = await reader.read(); !part.done; part = await reader.read());
      };
      await expect(rest()).rejects.toThrow();
      expect(await other.text()).toMatch(/data: \[DONE\]\n\n$/);
      expect((await tell(key.key, 1)).status).toBe(401);
      const charges = (await world().ledgerOf(account.id, leaked.headers.get('x-request-id') ?? '')).filter(({ kind }) => kind === 'charge');
      expect(charges.map(({ amount_nano_usd: amount }) => BigInt(amount) > 0n)).toEqual([true]);
    });

    test.each<[string, string, Json | undefined, number, string]>([
      ['POST', '/admin/accounts', { name: 'x', tier: 'gold' }, 400, 'tier'],
      ['POST', '/admin/accounts', { tier: 'free' }, 400, 'name'],
      ['POST', '/admin/accounts', { name: 'x', tier: 'free', cost_cap_period: 'day' }, 400, 'cost_cap_usd'],
      ['POST', '/admin/accounts', { name: 'x', tier: 'free', cost_cap_usd: '-1' }, 400, 'cost_cap_usd'],
      ['POST', '/admin/accounts', { name: 'x', tier: 'free', requests_per_minute: 0 }, 400, 'requests_per_minute'],
      ['POST', '/admin/accounts', { name: 'x', tier: 'free', surprise: 1 }, 400, 'surprise'],
      ['PATCH', '/admin/accounts/acct_none', { name: 'x' }, 404, 'account'],
      ['GET', '/admin/accounts/acct_none', undefined, 404, 'account'],
      ['POST', '/admin/keys', { account_id: 'acct_none', name: 'x' }, 400, 'account_id'],
      ['POST', '/admin/keys', { account_id: 'acct_none', name: 'x', expires_in: 0 }, 400, 'expires_in'],
      ['GET', '/admin/keys', undefined, 404, 'account'],
      ['DELETE', '/admin/keys/key_none', undefined, 404, 'key'],
      ['POST', '/admin/accounts', { name: 'x', tier: 'free', baseline_model: 'opnai/gpt-4o' }, 400, 'baseline_model: "opnai/gpt-4o"'],
      ['POST', '/admin/what-if', { account: 'acct_none' }, 404, 'account'],
      ['POST', '/admin/what-if', { deny_models: ['opnai/*'] }, 400, 'deny_models: "opnai/*"'],
      ['GET', '/admin/ledger/verify?account=acct_none', undefined, 404, 'account'],
      ['GET', '/admin/statement?account=acct_none&period=2026-11', undefined, 404, 'account'],
      ['POST', '/admin/provider-usage', { provider: 'opnai', days: [{ day: '2026-11-21', cost_usd: '1' }] }, 400, 'provider: "opnai"'],
    ])('gets an error that names what is wrong with %s %s %j', async (method, path, body, status, word) => {
      const got = await world().admin(method, path, body);
      expect([got.status, (jsonOf(got) as { error: { message: string } }).error.message]).toEqual([status, expect.stringContaining(word)]);
    });
  });

  describe('an account’s policy', () => {
    test('is replaced as a whole, and does not change what the operator set', async () => {
      const account = await world().newAccount({ baseline_model: 'openai/gpt-4o', hard_cap: true, store_answers: true });
      const policy = async (body?: Json): Promise<Json> => {
        const got = await send(world().gateway.baseUrl, { method: body === undefined ? 'GET' : 'PUT', path: '/api/policy', key: account.key, ...(body === undefined ? {} : { body }) });
        expect([got.status, got.status === 200 ? '' : got.text]).toEqual([200, '']);
        return jsonOf(got);
      };
      const own = { mode: 'economy', lambda: 0.5, baseline_model: 'openai/gpt-4o-mini', allow_models: ['simulator/fast'], deny_models: ['simulator/smart'], allow_providers: ['simulator'], deny_providers: ['openai'], cost_caps: [{ cap_usd: 2, period: 'day' }], hard_cap: false, store_answers: false };
      const all = { ...own, effective: { baseline_model: 'openai/gpt-4o-mini', hard_cap: true, store_answers: false } };
      expect(await policy(own)).toEqual(all);
      expect(await policy()).toEqual(all);
      const bare = { mode: null, lambda: null, baseline_model: null, allow_models: [], deny_models: [], allow_providers: [], deny_providers: [], cost_caps: [], hard_cap: false, store_answers: null, effective: { baseline_model: 'openai/gpt-4o', hard_cap: true, store_answers: true } };
      expect(await policy({})).toEqual(bare);
      // Sending back what was read does not turn the operator's settings into the account's own.
      expect(await policy(bare)).toEqual(bare);
      await world().admin('PATCH', `/admin/accounts/${account.id}`, { hard_cap: false, store_answers: false });
      expect(await policy()).toMatchObject({ effective: { baseline_model: 'openai/gpt-4o', hard_cap: false, store_answers: false } });
      await world().admin('PATCH', `/admin/accounts/${account.id}`, { hard_cap: true, store_answers: true });
      expect(jsonOf(await world().admin('GET', `/admin/accounts/${account.id}`))['account']).toMatchObject({ baseline_model: 'openai/gpt-4o', store_answers: true });
      expect(await policy({ deny_models: ['Simulator/FAST'] })).toMatchObject({ deny_models: ['Simulator/FAST'] });
      const denied = await send(world().gateway.baseUrl, { method: 'POST', path: '/v1/chat/completions', key: account.key, body: { model: 'simulator/fast', messages: [{ role: 'user', content: 'hello' }] } });
      expect([denied.status, (jsonOf(denied) as { error: { metadata: object } }).error.metadata]).toEqual([404, expect.objectContaining({ excluded_by: ['allow_list'] })]);
      const misspelt = await send(world().gateway.baseUrl, { method: 'PUT', path: '/api/policy', key: account.key, body: { deny_models: ['simulater/fast'] } });
      expect([misspelt.status, (jsonOf(misspelt) as { error: { param: string } }).error.param]).toEqual([400, 'deny_models']);
      const wrong = await send(world().gateway.baseUrl, { method: 'PUT', path: '/api/policy', key: account.key, body: { mode: 'cheap' } });
      expect([wrong.status, (jsonOf(wrong) as { error: { param: string } }).error.param]).toEqual([400, 'mode']);
    });
  });
}
