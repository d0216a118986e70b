import { afterEach, expect, test } from '@jest/globals';
import { accountWith } from '../../testing/callers.js';
import { startAdmin, type AdminDoor } from '../../testing/admin.js';
import type { Account__Output } from '@signalbox/contracts/accounts';

const DAY_MS = Date.UTC(2026, 10, 21, 12);
const bucket = (periodId: string, settled: string, finished = '0', reserved = '0', scope = 'account'): object => ({ scope, periodId, settledNanoUsd: settled, finishedNanoUsd: finished, reservedNanoUsd: reserved, tokens: '0', reservedTokens: '0' });

let door: AdminDoor;
afterEach(() => door.stop());

/** What is left for an account with the counters `buckets`. */
async function leftOf(account: Partial<Account__Output>, buckets: readonly object[], variant: 'A' | 'B' = 'A'): Promise<unknown> {
  door = await startAdmin((method) => {
    if (method === 'GetAccount') return { found: true, account: accountWith(account) };
    // From the account's last admission, under other limits.
    return { settledNanoUsd: '0', reservedNanoUsd: '0', remainingNanoUsd: '1', ledgerSeq: '0', atMs: String(DAY_MS), buckets };
  }, { variant });
  const response = await door.call('GET', '/admin/quota?account=acct_1');
  return ((await response.json()) as { readonly remaining_nano_usd: unknown }).remaining_nano_usd;
}

const monthly = { capNanoUsd: '50', period: 'month' };
test.each<[string, Partial<Account__Output>, readonly object[], 'A' | 'B', string | null]>([
  ['all of a cap before the first request', { costCaps: [monthly] }, [], 'A', '50'],
  ['what settled, finished and held amounts leave of a cap', { costCaps: [monthly] }, [bucket('month:2026-11', '10', '5', '1'), bucket('day:2026-11-21', '49')], 'A', '34'],
  ['what the tightest cap leaves, including the policy’s', { costCaps: [monthly], policyCostCaps: [{ capNanoUsd: '20', period: 'day' }] }, [bucket('month:2026-11', '10'), bucket('day:2026-11-21', '3')], 'A', '17'],
  ['nothing of a cap that was lowered below the spent amount', { costCaps: [monthly] }, [bucket('month:2026-11', '60')], 'A', '0'],
  ['yesterday’s spending does not count today', { costCaps: [{ capNanoUsd: '20', period: 'day' }] }, [bucket('day:2026-11-20', '20')], 'A', '20'],
  ['spending under a key’s cap does not count for the account’s', { costCaps: [monthly] }, [bucket('month:2026-11', '9', '0', '0', 'key_1')], 'A', '50'],
  ['no limit once the caps were removed', {}, [bucket('month:2026-11', '60')], 'A', null],
  ['trial credit', { tier: 'free' }, [bucket('total', '1000000000')], 'A', '4000000000'],
  ['no trial credit in a variant without one', { tier: 'free' }, [], 'B', null],
  ['trial credit by the account’s own variant', { tier: 'free', variant: 'A' }, [], 'B', '5000000000'],
])('tells what the present limits leave: %s', async (_case, account, buckets, variant, left) => {
  expect(await leftOf(account, buckets, variant)).toBe(left);
});
