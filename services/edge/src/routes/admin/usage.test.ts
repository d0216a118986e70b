import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startAdmin, type AdminDoor } from '../../testing/admin.js';

const row = (group: string, costNanoUsd: string): object => ({ group, requests: '2', promptTokens: '3', completionTokens: '4', costNanoUsd, chargeNanoUsd: '10', savingsNanoUsd: '-5', totalMsP50: 900, totalMsP95: 0, ttftMsP50: 0, ttftMsP95: 0 });

let door: AdminDoor;
let asked: object[];

beforeEach(async () => {
  asked = [];
  door = await startAdmin((method, message) => {
    if (method === 'GetAccount') {
      const { id } = message as { readonly id: string };
      return id === 'acct_gone' ? { found: false, account: null } : { found: true, account: { id, name: `of ${id}` } };
    }
    if (method === 'UnknownNames') return { allowModels: [], denyModels: [], allowProviders: (message as { readonly allowProviders: readonly string[] }).allowProviders.filter((name) => name === 'azzure'), denyProviders: [], models: [] };
    if (method === 'FindModel') return { id: (message as { readonly name: string }).name === 'mini' ? 'm/mini' : '' };
    if (method !== 'Usage') return {};
    asked.push(message);
    if (['mini', 'mimi'].includes((message as { readonly model: string }).model)) return { rows: [], hasMore: false };
    if ((message as { readonly provider: string }).provider === 'azzure') return { rows: [], hasMore: false };
    return { rows: [row('acct_1', '9007199254740993'), row('acct_gone', '2')], hasMore: false };
  });
});
afterEach(() => door.stop());

test('gives the usage of all accounts, with their names and an exact total', async () => {
  const response = await door.call('GET', '/admin/usage?order=cost&from=2026-11-01&to=2026-11-02&limit=7');
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(JSON.parse(text)).toMatchObject({ rows: [{ account: 'acct_1', name: 'of acct_1', requests: 2, charge_usd: 1e-8, latency_ms_p50: 900, latency_ms_p95: null }, { account: 'acct_gone', name: null }], total: { requests: 4, prompt_tokens: 6, completion_tokens: 8, savings_usd: -1e-8 }, has_more: false });
  expect(text).toContain('"total":{"requests":4,"prompt_tokens":6,"completion_tokens":8,"cost_usd":9007199.254740995,');
  expect(asked).toEqual([{ accountId: '', groupBy: 'account', order: 'cost', after: '', fromMs: String(Date.UTC(2026, 10, 1)), toMs: String(Date.UTC(2026, 10, 3)), model: '', provider: '', keyId: '', limit: 7 }]);
});

test('takes 1970 as an end of the span, and not as a missing one', async () => {
  expect((await door.call('GET', '/admin/usage?to=0')).status).toBe(200);
  expect(asked).toMatchObject([{ fromMs: '0', toMs: '1' }]);
});

test('can be narrowed to one account, by model', async () => {
  const response = await door.call('GET', '/admin/usage?account=acct_1&group_by=model&model=m&provider=p&key=key_1&after=a');
  expect(await response.json()).toMatchObject({ rows: [{ model: 'acct_1' }, { model: 'acct_gone' }] });
  expect(asked).toMatchObject([{ accountId: 'acct_1', groupBy: 'model', order: '', after: 'a', model: 'm', provider: 'p', keyId: 'key_1', limit: 100 }]);
});

test.each([
  ['group_by=team', 'group_by'], ['limit=0', 'limit'], ['limit=1001', 'limit'], ['limit=x', 'limit'], ['from=yesterday', 'from'], ['order=name', 'order'], ['order=cost&after=a', 'after'], ['model=a&model=b', 'model'], ['from=2026-11-03&to=2026-11-02', 'from must not be after to'],
])('%s is refused, and the error names what is wrong', async (query, name) => {
  const response = await door.call('GET', `/admin/usage?${query}`);
  expect([response.status, ((await response.json()) as { error: { message: string } }).error.message]).toEqual([400, expect.stringContaining(name)]);
  expect(asked).toEqual([]);
});

test('a provider can have any name that provider lists accept, and an unknown one is refused', async () => {
  expect((await door.call('GET', '/admin/usage?provider=azure')).status).toBe(200);
  expect(asked).toMatchObject([{ provider: 'azure-openai' }]);
  const response = await door.call('GET', '/admin/usage?provider=azzure');
  expect([response.status, ((await response.json()) as { error: { message: string } }).error.message]).toEqual([400, 'provider: "azzure" is the name of no provider.']);
});

test('an unknown account is 404', async () => {
  expect((await door.call('GET', '/admin/usage?account=acct_gone')).status).toBe(404);
});

test('a model can have any name that requests accept, and an unknown one is refused', async () => {
  expect(await (await door.call('GET', '/admin/usage?model=mini')).json()).toMatchObject({ total: { requests: 4 } });
  expect(asked).toMatchObject([{ model: 'mini' }, { model: 'm/mini' }]);
  const response = await door.call('GET', '/admin/usage?model=mimi');
  expect([response.status, (await response.json()) as unknown]).toMatchObject([400, { error: { message: 'model: "mimi" is the name of no single model; in full it is maker/model.', param: 'model' } }]);
});
