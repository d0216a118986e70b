/** Reads amounts from the admin API, and compares them as they must agree at rest. */
import { hash } from 'node:crypto';
import { expect } from '@jest/globals';
import type { SeenAnswer } from './client.js';
import { until } from './client.js';
import type { Gateway } from './gateway.js';

export interface PrintedRow {
  readonly seq: number;
  readonly kind: 'attempt' | 'charge' | 'adjustment';
  readonly request_id: string;
  readonly attempt: number;
  readonly amount_nano_usd: string;
  readonly tokens: number;
  readonly byok_tokens: number;
  readonly source: string;
  readonly flags: readonly string[];
  readonly provider: string;
  readonly period: string;
  readonly at: number;
  readonly card_id: string;
  readonly prev_hash: string;
  readonly hash: string;
  readonly applies_to?: 'charge' | 'cost';
}

/** Computes the hash of a row from its printed fields, as in docs/billing.md. */
function hashOf(accountId: string, row: PrintedRow): string {
  const covered = [
    accountId, String(row.seq), row.kind, row.request_id, row.attempt, row.amount_nano_usd, String(row.tokens), String(row.byok_tokens), row.source, row.flags, row.provider, row.period, String(row.at), row.applies_to ?? '', row.card_id,
  ];
  return hash('sha256', `${row.prev_hash}\n${JSON.stringify(covered)}`, 'hex');
}

/** One call of the admin API; throws on anything but 2xx. */
export async function admin<T>(gateway: Gateway, path: string, method = 'GET', body?: unknown): Promise<T> {
  const response = await fetch(`${gateway.adminUrl}/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.adminToken}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

export async function devAccount(gateway: Gateway): Promise<string> {
  const { accounts } = await admin<{ accounts: readonly { id: string; name: string }[] }>(gateway, '/accounts');
  return accounts.find(({ name }) => name === 'dev')?.id ?? '';
}

export async function ledgerOf(gateway: Gateway, accountId: string): Promise<readonly PrintedRow[]> {
  const rows: PrintedRow[] = [];
  for (let after: number | string | null = 0; after !== null; ) {
    const page: { rows: readonly PrintedRow[]; next: number | string | null } = await admin(gateway, `/ledger?account=${accountId}&after=${after}`);
    rows.push(...page.rows);
    after = page.next;
  }
  return rows;
}

interface Quota {
  readonly settled_nano_usd: string;
  readonly reserved_nano_usd: string;
}
interface Watermarks {
  readonly writers: readonly { readonly last_seq: number; readonly ledger_seq: number; readonly gaps: number }[];
}

const nanoOf = (usd: string): bigint => {
  const [whole = '0', fraction = ''] = usd.split('.');
  return BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
};

const chargeTotal = (rows: readonly PrintedRow[]): bigint => rows.filter(({ kind, applies_to }) => kind === 'charge' || (kind === 'adjustment' && applies_to === 'charge')).reduce((sum, row) => sum + BigInt(row.amount_nano_usd), 0n);

const REST_MS = 60_000;

/** Waits until the books are at rest. Then each answer must have one charge of the reported amount, the hash chain must be intact, and counters and watermarks must agree. */
export async function expectBalancedBooks(gateway: Gateway, accountId: string, answers: readonly SeenAnswer[]): Promise<void> {
  let seen = '';
  await until(
    async () => {
      try {
        const quota = await admin<Quota>(gateway, `/quota?account=${accountId}`);
        const { writers } = await admin<Watermarks>(gateway, '/watermarks');
        const total = chargeTotal(await ledgerOf(gateway, accountId));
        seen = JSON.stringify({ settled: quota.settled_nano_usd, reserved: quota.reserved_nano_usd, total: String(total), writers });
        return quota.reserved_nano_usd === '0' && quota.settled_nano_usd === String(total) && writers.length > 0 && writers.every(({ last_seq, ledger_seq, gaps }) => last_seq === ledger_seq && gaps === 0);
      } catch (error) {
        seen = error instanceof Error ? error.message : 'unknown';
        return false;
      }
    },
    REST_MS,
    250,
    'the books to rest',
  ).catch((error: unknown) => {
    throw new Error(`The books did not come to rest: ${seen}`, { cause: error });
  });
  const rows = await ledgerOf(gateway, accountId);
  expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, index) => index + 1));
  expect(rows.slice(1).map(({ prev_hash }) => prev_hash)).toEqual(rows.slice(0, -1).map(({ hash }) => hash));
  expect(rows[0]?.prev_hash).toMatch(/^0{64}$/);
  expect(rows.filter((row) => hashOf(accountId, row) !== row.hash)).toEqual([]);
  const charges = new Map<string, string[]>();
  for (const row of rows) if (row.kind === 'charge') charges.set(row.request_id, [...(charges.get(row.request_id) ?? []), row.amount_nano_usd]);
  expect([...charges].filter(([, amounts]) => amounts.length !== 1)).toEqual([]);
  expect(answers.filter(({ requestId }) => !charges.has(requestId))).toEqual([]);
  const unlike = answers.filter(({ requestId, costUsd }) => costUsd !== undefined && charges.get(requestId)?.[0] !== String(nanoOf(costUsd)));
  expect(unlike).toEqual([]);
}
