import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startAdmin, type AdminDoor } from '../../testing/admin.js';

let door: AdminDoor;
let ledgerTotal: string;
let countersTotal: string;
let finished: string;
let overdue: readonly object[];
let booked: ReadonlySet<string>;
let imported: string[];
let recountsAsked: object[];
let recounted: readonly object[];

beforeEach(async () => {
  [finished, overdue, booked, imported, recountsAsked] = ['0', [], new Set(), [], []];
  const answers: Readonly<Record<string, (message: object) => object>> = {
    ListAccounts: () => ({ accounts: [{ id: 'acct_1' }], hasMore: false }),
    Totals: () => ({ ledgerSeq: '7', totals: [{ scope: 'account', periodId: 'total', chargeNanoUsd: ledgerTotal }] }),
    Show: () => ({
      settledNanoUsd: String(BigInt(countersTotal) + BigInt(finished)), reservedNanoUsd: '3', ledgerSeq: '7', overdue,
      buckets: [{ scope: 'account', periodId: 'day:2026-11-21', settledNanoUsd: '1', finishedNanoUsd: '0' }, { scope: 'account', periodId: 'total', settledNanoUsd: countersTotal, finishedNanoUsd: finished }],
    }),
    GetRequest: (message) => ({ found: booked.has((message as { readonly requestId: string }).requestId) }),
    Verify: (message) => {
      const { inParts, after } = message as { readonly inParts: boolean; readonly after: string };
      if (inParts && after === '') return { checks: [{ invariant: 'I2', description: '', violations: '1', examples: ['r'] }], underWay: [], accounts: '3', next: 'acct_3' };
      return { checks: [], underWay: [{ writer: 'w_1', records: '4', openSinceMs: '1700000000500' }, { writer: 'w_2', records: '1', openSinceMs: '0' }], accounts: '1', next: '' };
    },
    GetAccount: () => ({ found: true }),
    Recount: (message) => {
      recountsAsked.push(message);
      return { accounts: recounted.map((one) => ({ accountId: 'acct_1', usageDays: '0', attemptDays: '0', totals: '0', closedPeriods: [], brokenInvariants: [], ...one })) };
    },
    UnknownNames: () => ({ allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], models: [] }),
    ImportProviderUsage: (message) => (imported.push((message as { readonly provider: string }).provider), { problem: '', days: 1 }),
    Reconcile: () => ({ rows: [], unreconciledNanoUsd: '0', atMs: '0' }),
  };
  door = await startAdmin((method, message) => answers[method]?.(message) ?? {});
});
afterEach(() => door.stop());

async function call<T>(method: string, path: string): Promise<T> {
  const answer = await door.call(method, path);
  expect(answer.status).toBe(200);
  return (await answer.json()) as T;
}

test.each([
  ['an equal total', '9007199254740991', '9007199254740991', '0'],
  ['one nano less', '9007199254740991', '9007199254740990', '1'],
  ['one nano more', '1000', '1001', '-1'],
  // Above 2^53 the counters can only hold even amounts.
  ['an odd total as a double holds it', '9007199254740993', '9007199254740992', '0'],
  ['a hundred million dollars as a double holds them', '123456789012345678', '123456789012345680', '0'],
  ['more than rounding, beyond nine million dollars', '9007199254740993', '9007199254740996', '-3'],
])('counters that tell %s', async (_what, ours, theirs, difference) => {
  ledgerTotal = ours;
  countersTotal = theirs;
  const isRight = difference === '0';
  expect(await call('GET', '/admin/ledger/verify')).toMatchObject({ ok: isRight, checks: [{ invariant: 'I5', violations: isRight ? 0 : 1, examples: isRight ? [] : ['acct_1'] }] });
  const { rows, unreconciled_nano_usd: unreconciled } = await call<{ rows: readonly object[]; unreconciled_nano_usd: string }>('POST', '/admin/reconcile');
  expect(rows).toMatchObject([{ kind: 'account', ours_nano_usd: ours, theirs_nano_usd: theirs, difference_nano_usd: difference, status: isRight ? 'matched' : 'differs' }]);
  expect(unreconciled).toBe(difference.replace('-', ''));
});

test.each([['azure', 200, ['azure-openai']], ['google', 400, []]])('usage of %s is stored under the catalog’s name of the provider, or refused if the name is ambiguous', async (provider, status, kept) => {
  const answer = await door.call('POST', '/admin/provider-usage', { body: JSON.stringify({ provider, days: [{ day: '2026-11-21', cost_usd: '0.5', tokens: 3 }] }) });
  expect([answer.status, imported]).toEqual([status, kept]);
});

test.each([['1000000000', 200], ['1000000000.000000001', 400], ['999999999999999', 400]])('a day that cost %s dollars: %s, never a failure of ours', async (cost, status) => {
  const answer = await door.call('POST', '/admin/provider-usage', { body: JSON.stringify({ provider: 'openai', days: [{ day: '2026-11-21', cost_usd: cost }] }) });
  expect([answer.status, imported]).toEqual([status, status === 200 ? ['openai'] : []]);
});

test('a finished request that is not booked yet is listed and is no violation', async () => {
  [ledgerTotal, countersTotal, finished] = ['1000', '1000', '20'];
  expect(await call('GET', '/admin/ledger/verify')).toMatchObject({
    ok: true, checks: [{ invariant: 'I5', violations: 0 }],
    under_way: { writers: [{ writer: 'w_1', records: 4, oldest_reserved_at: 1_700_000_000 }, { writer: 'w_2', records: 1, oldest_reserved_at: null }], finished_nano_usd: '20', reserved_nano_usd: '3' },
  });
  expect(await call('POST', '/admin/reconcile')).toMatchObject({ unreconciled_nano_usd: '0', rows: [{ theirs_nano_usd: '1000', finished_nano_usd: '20', reserved_nano_usd: '3', status: 'matched' }] });
});

test('a verification in parts compares the counters in its last part alone, and without parts is one answer', async () => {
  [ledgerTotal, countersTotal] = ['1000', '1000'];
  expect(await call('GET', '/admin/ledger/verify?after=')).toEqual({ ok: false, checks: [{ invariant: 'I2', description: '', violations: 1, examples: ['r'] }], accounts: 3, next: 'acct_3' });
  expect(await call('GET', '/admin/ledger/verify?after=acct_3')).toMatchObject({ ok: true, checks: [{ invariant: 'I5' }], under_way: { reserved_nano_usd: '3' }, accounts: 1, next: null });
  expect(await call('GET', '/admin/ledger/verify')).not.toHaveProperty('next');
});

test('a finished request that never reaches the ledger is a violation, and so is one that the ledger never settles', async () => {
  [ledgerTotal, countersTotal, finished] = ['1000', '1000', '20'];
  overdue = [{ requestId: 'unknown', chargeNanoUsd: '9', silent: false }, { requestId: 'another-round-to-come', chargeNanoUsd: '6', silent: false }, { requestId: 'left', chargeNanoUsd: '2', silent: true }];
  booked = new Set(['another-round-to-come', 'left']);
  expect(await call('GET', '/admin/ledger/verify')).toMatchObject({ ok: false, checks: [{ invariant: 'I5', violations: 2, examples: ['acct_1 unknown', 'acct_1 left'] }], under_way: { finished_nano_usd: '9' } });
  expect(await call('POST', '/admin/reconcile')).toMatchObject({
    unreconciled_nano_usd: '11', rows: [{ ours_nano_usd: '1000', theirs_nano_usd: '1011', finished_nano_usd: '9', difference_nano_usd: '-11', status: 'differs', lost_requests: ['unknown', 'left'] }],
  });
});

test.each([
  ['all', {}, { accountId: '', withClosed: false }, [], true, []],
  ['one account, closed periods too', { account_id: 'acct_1', closed: true }, { accountId: 'acct_1', withClosed: true }, [{ usageDays: '3', attemptDays: '1' }], true, [{ account_id: 'acct_1', written: { usage_days: 3, attempt_days: 1, totals: 0 } }]],
  ['one with sums of a closed period, which are left', {}, { accountId: '', withClosed: false }, [{ totals: '2', closedPeriods: ['2026-10'] }], false, [{ account_id: 'acct_1', written: { usage_days: 0, attempt_days: 0, totals: 2 }, closed_periods_left: ['2026-10'] }]],
  ['an account whose rows do not verify', {}, { accountId: '', withClosed: false }, [{ brokenInvariants: ['I9 chain'] }], false, [{ account_id: 'acct_1', written: { usage_days: 0, attempt_days: 0, totals: 0 }, broken_invariants: ['I9 chain'] }]],
])('a recount of %s lists what was written, and is ok only if nothing is left', async (_what, body, told, found, ok, accounts) => {
  recounted = found;
  const answer = await door.call('POST', '/admin/ledger/recount', { body: JSON.stringify(body) });
  expect(recountsAsked).toEqual([told]);
  expect(await answer.json()).toEqual({ ok, accounts });
});

test('a request is found by its id only, with its account', async () => {
  const asked: object[] = [];
  const told = await startAdmin((method, message) => {
    if (method !== 'GetRequest') return {};
    asked.push(message);
    const request = {
      id: 'req_1', atMs: '1700000000000', keyId: 'key_1', model: 'm/one', provider: 'p', status: 'completed', promptTokens: '10', completionTokens: '5', costNanoUsd: '20', chargeNanoUsd: '20', savingsNanoUsd: '7',
      byok: false, routedFrom: '', decisionId: '', ttftMs: 0, totalMs: 9, finishReason: 'stop', source: 'reported',
    };
    const attempt = {
      attempt: 1, provider: 'p', model: 'm/one', endpointId: 'e', httpStatus: 200, failure: '', tokens: null, costNanoUsd: '20', savingsNanoUsd: '7', charged: true, byok: false, source: 'reported', flags: [], cardId: '', ttftMs: 0,
      totalMs: 9, finishReason: 'stop', startedAtMs: '0', endedAtMs: '0',
    };
    return (message as { readonly requestId: string }).requestId === 'req_1' ? { found: true, accountId: 'acct_1', period: '2023-11', request, attempts: [attempt], adjustments: [] } : { found: false };
  });
  const known = await told.call('GET', '/admin/requests/req_1');
  expect([known.status, await known.json()]).toMatchObject([200, { account_id: 'acct_1', key_id: 'key_1', charge_usd: 0.00000002, charge: { period: '2023-11', attempts: [1] }, attempts: [{ attempt: 1, charged: true, cost_usd: 0.00000002 }] }]);
  const unknown = await told.call('GET', '/admin/requests/req_2');
  expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { code: 'not_found' } }]);
  expect(asked).toEqual([{ accountId: '', requestId: 'req_1' }, { accountId: '', requestId: 'req_2' }]);
  await told.stop();
});

test.each([
  ['calendar months', undefined, '2026-11', '2026-11'],
  ['calendar months, as counters name them', undefined, 'month:2026-11', '2026-11'],
  ['periods of a set length', 60, 'p29927667', 'p29927667'],
  ['periods of a set length, as counters name them', 60, 'month:p29927667', 'p29927667'],
])('a statement can be asked for by the names of %s', async (_what, periodSeconds, named, asked) => {
  const periods: string[] = [];
  const own = await startAdmin(
    (method, message) => {
      if (method === 'GetAccount') return { found: true };
      periods.push((message as { readonly period: string }).period);
      return { found: false };
    },
    { nowMs: Date.UTC(2026, 10, 21), periodSeconds },
  );
  const response = await own.call('GET', `/admin/statement?account=acct_1&period=${named}`);
  const told: unknown = await response.json();
  await own.stop();
  expect(periods).toEqual([asked]);
  expect([response.status, told]).toMatchObject([404, { error: { message: `The account has no statement of that period; the present one is ${periodSeconds === undefined ? '2026-11' : 'p29920320'}.` } }]);
});

test.each([[99, null], [100, 100]])('with %i events kept aside the next page begins after %j', async (count, next) => {
  const own = await startAdmin((method) => (method === 'DeadEvents' ? { events: Array.from({ length: count }, (_, at) => ({ id: String(at + 1), subject: 's', reason: 'r', writer: 'w', atMs: '0', payloadBytes: '0', resolved: false })) } : {}));
  const page: unknown = await (await own.call('GET', '/admin/dead-events')).json();
  await own.stop();
  expect(page).toMatchObject({ next });
});
