/** A customer's books over the public door, and the operator's over theirs, of a gateway with short periods. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { admin, ledgerOf } from '../harness/books.js';
import { until } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';

const PERIOD_SECONDS = 12;
const CALLS = 3;
let gateway: Gateway;
let account: { readonly id: string; readonly key: string };

beforeAll(async () => {
  gateway = await startGateway({ mode: 'standalone', environment: { SIMULATOR: 'on', BILLING_PERIOD_SECONDS: String(PERIOD_SECONDS) } });
  const made = await admin<{ account: { id: string }; key: { key: string } }>(gateway, '/accounts', 'POST', { name: 'books', tier: 'team', included_tokens: '10' });
  account = { id: made.account.id, key: made.key.key };
}, 120_000);
afterAll(() => gateway.stop(), 60_000);

const get = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> => fetch(gateway.baseUrl + path, { headers: { authorization: `Bearer ${account.key}`, ...headers } });
interface List<Entry> {
  readonly data: readonly Entry[];
}
const listOf = async <Entry>(path: string): Promise<readonly Entry[]> => ((await (await get(path)).json()) as List<Entry>).data;
interface Bill {
  readonly status: string;
  readonly used_tokens: number;
  readonly overage_tokens: number;
  readonly subscription_usd: number;
  readonly model_spend_usd: number;
}
const nanoOf = (usd: number): number => Math.round(usd * 1e9);

test('what was charged is the same sum in usage, requests, statements and the ledger, and stays so when the period has closed', async () => {
  const begun = new Map<string, number>();
  for (let i = 0; i < CALLS; i += 1) {
    const answer = await fetch(`${gateway.baseUrl}/v1/chat/completions`, {
      method: 'POST', headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' }, body: JSON.stringify({ model: 'simulator/smart', messages: [{ role: 'user', content: '[sim:delay-ms=2500] hello' }] }),
    });
    expect(answer.status).toBe(200);
    const { id, created } = (await answer.json()) as { readonly id: string; readonly created: number };
    begun.set(id, created);
  }
  await until(async () => (await listOf('/api/requests')).length === CALLS, 20_000, 200, 'the requests to be booked');
  const rows = await ledgerOf(gateway, account.id);
  const charged = rows.filter(({ kind }) => kind === 'charge').reduce((sum, row) => sum + Number(row.amount_nano_usd), 0);
  const usage = await listOf<{ charge_usd: number; requests: number; prompt_tokens: number; completion_tokens: number }>('/api/usage?group_by=model');
  expect(usage.map(({ charge_usd, requests }) => [nanoOf(charge_usd), requests])).toEqual([[charged, CALLS]]);
  const requests = await listOf<{ id: string; charge_usd: number; created: number; ended_at: number }>('/api/requests');
  // The record tells when the answer began, as the answer did, and when it was over, 2.5 s later.
  for (const { id, created, ended_at: ended } of requests) {
    expect(created - (begun.get(id) ?? 0)).toBeLessThanOrEqual(1);
    expect(ended - created).toBeGreaterThanOrEqual(2);
  }
  expect(requests.reduce((sum, { charge_usd }) => sum + nanoOf(charge_usd), 0)).toBe(charged);
  expect(new Set(requests.map(({ id }) => id))).toEqual(new Set(rows.map(({ request_id }) => request_id)));
  expect((await get(`/api/requests/${requests[0]?.id ?? ''}`)).status).toBe(200);
  expect((await fetch(`${gateway.baseUrl}/api/requests/${requests[0]?.id ?? ''}`, { headers: { authorization: `Bearer ${gateway.key}` } })).status).toBe(404);

  // The calls may have fallen into two periods.
  const billsOf = async (): Promise<readonly Bill[]> => {
    const periods = await listOf<{ period: string; model_spend_usd: number }>('/api/statements');
    return Promise.all(periods.filter(({ model_spend_usd: spend }) => spend > 0).map(async ({ period }) => (await (await get(`/api/statements/${period}`)).json()) as Bill));
  };
  const tokens = usage.reduce((sum, row) => sum + row.prompt_tokens + row.completion_tokens, 0);
  expect(rows.filter(({ kind }) => kind === 'charge').reduce((sum, row) => sum + row.tokens, 0)).toBe(tokens);
  const check = (bills: readonly Bill[]): void => {
    expect(bills.reduce((sum, bill) => sum + nanoOf(bill.model_spend_usd), 0)).toBe(charged);
    expect(bills.reduce((sum, bill) => sum + bill.used_tokens, 0)).toBe(tokens);
    for (const bill of bills) expect([bill.subscription_usd, bill.overage_tokens]).toEqual([99, Math.max(0, bill.used_tokens - 10)]);
  };
  check(await billsOf());
  await until(async () => (await billsOf()).every(({ status }) => status === 'closed'), 90_000, 1_000, 'the periods to close');
  check(await billsOf());
  const period = (await listOf<{ period: string; model_spend_usd: number }>('/api/statements')).find(({ model_spend_usd: spend }) => spend > 0)?.period ?? '';
  expect((await (await get(`/api/statements/${period}`, { accept: 'text/csv' })).text()).split('\r\n').map((line) => line.split(',')[1])).toEqual(['kind', 'subscription', 'included', 'overage', 'model_spend', 'total', undefined]);
  expect(await admin(gateway, `/statement?account=${account.id}&period=${period}`)).toEqual(await (await get(`/api/statements/${period}`)).json());
  expect(await admin<{ ok: boolean }>(gateway, '/ledger/verify')).toMatchObject({ ok: true });
  expect(await admin<{ unreconciled_nano_usd: string }>(gateway, '/reconcile', 'POST')).toMatchObject({ unreconciled_nano_usd: '0' });
}, 180_000);
