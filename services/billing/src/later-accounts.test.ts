import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { tierTerms } from '@signalbox/kernel/tiers';
import { silentLog } from '@signalbox/runtime/log';
import { createFakeClock } from '@signalbox/testkit/clock';
import { stopTestStores } from '@signalbox/testkit/stores';
import type { Database } from '@signalbox/sql/database';
import { createPostgresBooks } from './adapters/postgres-books.js';
import { createPostgresLedger } from './adapters/postgres-ledger.js';
import { createConsumer } from './consumer.js';
import { createBookkeeper, type AccountTerms } from './domain/bookkeeper.js';
import { Hearing } from './domain/hearing.js';
import { createBillingMetrics } from './metrics.js';
import { filledDatabase } from './testing/many-rows.js';

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const FEBRUARY = Date.UTC(2026, 1, 1);
const GRACE_MS = 30_000;
const clock = createFakeClock(FEBRUARY);
let database: Database<unknown>;

beforeAll(async () => {
  database = await filledDatabase([]);
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

test('what an account used in a period before its creation, by clocks that differ, is on the bill of that period, and its subscription begins with the next', async () => {
  const store = createPostgresLedger(database);
  const team = (createdAtMs: number): AccountTerms => ({ createdAtMs, terms: { ...tierTerms('A', 'team'), tier: 'team', variant: 'A', hardCap: false } });
  const accounts = new Map([['early', team(FEBRUARY - 1)], ['used', team(FEBRUARY + 2_000)], ['unused', team(FEBRUARY + 2_000)]]);
  const keeper = createBookkeeper({
    store: createPostgresBooks(database, { graceMs: GRACE_MS }), accounts: { termsOf: (id) => Promise.resolve(accounts.get(id)), all: () => Promise.resolve(accounts) }, periodSeconds: undefined, hearing: new Hearing(clock), graceMs: GRACE_MS,
  });
  const consume = createConsumer({ store, clock, log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  const periods = { day: '2026-01-31', week: '2026-W05', month: '2026-01', plan: '2026-01' };
  const ended = { requestId: 'r', attempt: 1, accountId: 'used', keyId: 'k', card: { id: 'c', inputUncached: '1000000', outputText: '1000000' }, periods, tokens: { inputUncached: 20 }, costNanoUsd: '20', savingsNanoUsd: '0', source: 'PROVIDER' as const, provider: 'p', model: 'm', endedAtMs: String(FEBRUARY - 500) };
  const usage: UsageRecorded = { writer: 'w', firstSeq: '1', lastSeq: '1', ended: [ended], outcomes: [{ requestId: 'r', attempt: 1, accountId: 'used', outcome: 'DELIVERED', toldByEdge: true }] };
  expect(await consume([{ subject: 'usage.v1.0', payload: codec.encode(usage), deliveries: 1 }])).toEqual(['done']);
  await store.register('w', '', 1n, FEBRUARY + GRACE_MS, 0);

  const totals = async (): Promise<unknown> => Promise.all([...accounts.keys()].map(async (id) => (await keeper.bill(id, '2026-01', FEBRUARY + GRACE_MS))?.statement.totalNanoUsd));
  const right = [99_000_000_000n, 20n, undefined];
  expect(await totals()).toEqual(right);
  expect(await keeper.closePeriods(FEBRUARY + GRACE_MS)).toEqual({ closed: ['2026-01'], waiting: [] });
  expect(await totals()).toEqual(right);
  expect((await keeper.bill('used', '2026-01', FEBRUARY + GRACE_MS))?.statement.lines).toMatchObject([{ kind: 'included' }, { kind: 'overage' }, { kind: 'model_spend', amountNanoUsd: 20n }]);
  expect((await keeper.bill('used', '2026-02', FEBRUARY + GRACE_MS))?.statement).toMatchObject({ subscriptionNanoUsd: 99_000_000_000n, totalNanoUsd: 99_000_000_000n });
});
