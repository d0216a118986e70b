import { describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { completionOf, errorOf, header, send, type Got } from './http.js';
import { completion } from './upstreams.js';
import { HELLO, type TestAccount, type World } from './world.js';

const SECRET = 'key-of-the-account-0123';
/** The operator has no credential at this provider. */
const PROVIDER = 'together';
/** No other provider here serves it, since variant B has no `provider`. */
export const MODEL = 'meta-llama/llama-3.2-3b-instruct';

const ask = (world: World, account: TestAccount, body: object = {}, edge = world.gateway.baseUrl): Promise<Got> => send(edge, { key: account.key, body: { model: MODEL, messages: HELLO, provider: { only: [PROVIDER] }, max_tokens: 20, ...body } });

/** Waits until the worker, which the first such credential starts, answers on every replica. */
async function answered(world: World, account: TestAccount): Promise<void> {
  await Promise.all(
    world.edges().map((edge) =>
      eventually('the worker of the provider answers', async () => {
        world.upstreams.own.enqueue(completion('Hello.'));
        const got = await ask(world, account, {}, edge);
        return got.status === 200 ? true : undefined;
      }),
    ),
  );
  // Answers for requests that were sent too early.
  world.upstreams.own.clear();
}

/** Gives the account a credential of its own at `together`, and waits until it serves `MODEL`. */
export async function ownCredentialServed(world: World, account: TestAccount): Promise<void> {
  const set = await send(world.gateway.baseUrl, { method: 'PUT', path: `/api/providers/${PROVIDER}`, key: account.key, body: { secret: SECRET } });
  expect(set.status).toBe(200);
  await answered(world, account);
}

/** Accounts' own credentials at providers (docs/byok.md). */
export function describeOwnCredentials(world: () => World): void {
  const put = (account: TestAccount, body: object, provider = PROVIDER): Promise<Got> => send(world().gateway.baseUrl, { method: 'PUT', path: `/api/providers/${provider}`, key: account.key, body });
  const get = (account: TestAccount, provider = PROVIDER): Promise<Got> => send(world().gateway.baseUrl, { method: 'GET', path: `/api/providers/${provider}`, key: account.key });
  const remove = (account: TestAccount): Promise<Got> => send(world().gateway.baseUrl, { method: 'DELETE', path: `/api/providers/${PROVIDER}`, key: account.key });
  const served = (account: TestAccount): Promise<void> => answered(world(), account);

  describe('own credentials', () => {
    test('serve models that the operator cannot, cost the account nothing, and are never shown', async () => {
      const account = await world().newAccount({});
      expect((await ask(world(), account)).status).toBe(404);
      const set = await put(account, { secret: SECRET });
      expect([set.status, JSON.parse(set.text)]).toEqual([200, { provider: PROVIDER, last4: '0123', zdr: false, created_at: expect.any(Number) }]);
      expect(JSON.parse((await get(account)).text)).toEqual(JSON.parse(set.text));
      await served(account);
      world().upstreams.own.enqueue(completion('Hello.'));
      const got = await ask(world(), account);
      expect([got.status, header(got, 'x-router-provider'), header(got, 'x-router-cost')]).toEqual([200, PROVIDER, expect.stringMatching(/^0\.0*[1-9]/)]);
      expect(world().upstreams.own.requests.at(-1)?.headers.authorization).toBe(`Bearer ${SECRET}`);
      const rows = await world().ledgerOf(account.id, completionOf(got).id);
      expect(rows.map(({ kind, charged }) => [kind, charged])).toEqual([['attempt', false], ['charge', false]]);
      expect([Number(rows[0]?.amount_nano_usd) > 0, rows[1]?.amount_nano_usd]).toEqual([true, '0']);
    });

    test('can be set and removed for each listed provider, and for no other', async () => {
      const account = await world().newAccount({});
      const list = await send(world().gateway.baseUrl, { method: 'GET', path: '/api/providers', key: account.key });
      const { data, providers } = JSON.parse(list.text) as { readonly data: readonly unknown[]; readonly providers: readonly string[] };
      expect([data, providers.includes(PROVIDER), providers.includes('google'), providers.includes('simulator'), [...providers].sort()]).toEqual([[], true, false, false, providers]);
      for (const [method, provider] of ['nobody', 'simulator'].flatMap((name) => [['PUT', name], ['DELETE', name]] as const)) {
        const refused = await send(world().gateway.baseUrl, { method, path: `/api/providers/${provider}`, key: account.key, ...(method === 'PUT' ? { body: { secret: SECRET } } : {}) });
        expect([refused.status, errorOf(refused).code, errorOf(refused).param]).toEqual([400, 'invalid_value', 'provider']);
      }
      for (const _time of [1, 2]) expect((await remove(account)).status).toBe(200);
    });

    test('belong to one account, and stop working everywhere soon after they are removed', async () => {
      const [mine, other] = [await world().newAccount({}), await world().newAccount({})];
      await put(mine, { secret: SECRET });
      await served(mine);
      expect([(await get(other)).status, (await ask(world(), other)).status]).toEqual([404, 404]);
      expect((await remove(mine)).status).toBe(200);
      expect((await get(mine)).status).toBe(404);
      const before = world().upstreams.own.requests.length;
      await Promise.all(world().edges().map((edge) => eventually('the credential is gone', async () => ((await ask(world(), mine, {}, edge)).status === 404 ? true : undefined))));
      expect(world().upstreams.own.requests.length - before).toBeLessThan(20);
    });

    test('that the provider refuses are not reported as a wrong key of this service', async () => {
      const account = await world().newAccount({});
      await put(account, { secret: SECRET });
      await served(account);
      world().upstreams.own.enqueue({ status: 401, body: { error: { message: 'Incorrect API key provided.' } } });
      const got = await ask(world(), account);
      expect([got.status, errorOf(got).code, errorOf(got).metadata?.['previous_errors']]).toEqual([503, 'all_models_unavailable', [{ provider: PROVIDER, status: 401, code: 'credential' }]]);
      expect(got.text).not.toContain(SECRET);
    });

    test('are the only ones that reach data stored at their provider under an id', async () => {
      const account = await world().newAccount({});
      const { single } = world().upstreams;
      const model = 'mistralai/mistral-medium-3.1';
      const asks = (content: unknown): Promise<Got> => send(world().gateway.baseUrl, { key: account.key, body: { model, messages: [{ role: 'user', content }] } });
      const uploaded = [{ type: 'text', text: 'Sum it up.' }, { type: 'file', file: { file_id: 'file-of-the-account' } }];
      const seen = (): readonly unknown[] => single.requests.filter(({ body }) => body.includes('file-of-the-account')).map(({ headers }) => headers.authorization);
      const before = seen().length;
      const refused = await asks(uploaded);
      expect([refused.status, errorOf(refused).code, errorOf(refused).param]).toEqual([400, 'invalid_value', 'messages.[0].content.[1].file.file_id']);
      // A credential at another provider does not count.
      await put(account, { secret: SECRET });
      await served(account);
      expect([(await asks(uploaded)).status, seen().length - before]).toEqual([400, 0]);
      await put(account, { secret: SECRET }, 'mistral');
      await eventually('the upload is asked for on it', async () => {
        single.clear();
        single.enqueue(completion('A sum.'));
        return (await asks(uploaded)).status === 200 ? true : undefined;
      });
      await eventually('the provider refuses that one', async () => {
        single.clear();
        single.enqueue({ status: 401, body: { error: { message: 'Incorrect API key provided.' } } });
        return (await asks(uploaded)).status === 503 ? true : undefined;
      });
      single.clear();
      expect(new Set(seen().slice(before))).toEqual(new Set([`Bearer ${SECRET}`]));
    });

    test('use an allotment of their own', async () => {
      const account = await world().newAccount({ tier: 'free', byok_tokens: '600' });
      await put(account, { secret: SECRET });
      await served(account);
      const refused = await eventually('the allotment is used up', async () => {
        world().upstreams.own.enqueue(completion('Hello.'));
        const got = await ask(world(), account, { messages: [{ role: 'user', content: 'word '.repeat(80) }], max_tokens: 500 });
        return got.status === 429 && errorOf(got).code === 'insufficient_quota' ? got : undefined;
      });
      expect([header(refused, 'x-should-retry'), header(refused, 'x-ratelimit-limit-tokens')]).toEqual(['false', '600']);
      expect(errorOf(refused).message).toContain('tokens over your own credentials');
      const { byok_tokens: allotment } = JSON.parse((await send(world().gateway.baseUrl, { path: '/api/limits', method: 'GET', key: account.key })).text) as { byok_tokens: { included: number; used: number } };
      expect([allotment.included, allotment.used > 0]).toEqual([600, true]);
      const { settled_nano_usd: settled } = JSON.parse((await world().admin('GET', `/admin/quota?account=${account.id}`)).text) as { settled_nano_usd: string };
      expect(settled).toBe('0');
    });

    test('count towards the allotment of the plan, and stop if it is hard', async () => {
      const account = await world().newAccount({ tier: 'team', included_tokens: '100000' });
      await put(account, { secret: SECRET });
      await served(account);
      expect((await world().admin('PATCH', `/admin/accounts/${account.id}`, { hard_cap: true, included_tokens: '5' })).status).toBe(200);
      const refused = await eventually('the allotment is hard', async () => {
        world().upstreams.own.enqueue(completion('Hello.'));
        const got = await ask(world(), account);
        return got.status === 200 ? undefined : got;
      });
      expect([refused.status, errorOf(refused).code, header(refused, 'x-ratelimit-remaining-tokens')]).toEqual([429, 'insufficient_quota', '0']);
      world().upstreams.own.clear();
    });

    test.each([
      ['an address inside', { base_url: 'http://127.0.0.1:1/v1' }, 'base_url'],
      ['an address of the cloud’s metadata', { base_url: 'https://169.254.169.254/v1' }, 'base_url'],
      ['no secret', {}, 'secret'],
      ['a secret that is no text', { secret: 5 }, 'secret'],
    ])('are not accepted with %s', async (_what, over, param) => {
      const got = await put(await world().newAccount({}), { ...(param === 'secret' ? {} : { secret: SECRET }), ...over });
      expect([got.status, errorOf(got).param]).toEqual([400, param]);
    });

    test('are used at an address of the account’s own, if the operator allows it', async () => {
      const account = await world().newAccount({});
      const { own } = world().upstreams;
      expect((await put(account, { secret: SECRET, base_url: `${own.baseUrl}/mine` })).status).toBe(200);
      await served(account);
      expect(own.requests.at(-1)?.path).toBe('/v1/mine/chat/completions');
      // The provider's policy does not apply to that address; the account's own setting does.
      const asked = own.requests.length;
      for (const wish of [{ zdr: true }, { data_collection: 'deny' }]) {
        const got = await ask(world(), account, wish);
        expect([got.status, errorOf(got).code]).toEqual([404, 'no_eligible_provider']);
      }
      expect(own.requests).toHaveLength(asked);
      expect((await put(account, { secret: SECRET, base_url: `${own.baseUrl}/mine`, zdr: true })).status).toBe(200);
      own.enqueue(completion('Hello.'));
      expect((await ask(world(), account, { zdr: true, data_collection: 'deny' })).status).toBe(200);
    });
  });
}
