import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startAdmin, type AdminDoor } from '../../testing/admin.js';

let door: AdminDoor;
let ledgerTotal: string;
let countersTotal: string;

beforeEach(async () => {
  const answers: Readonly<Record<string, () => object>> = {
    ListAccounts: () => ({ accounts: [{ id: 'acct_1' }], hasMore: false }),
    Totals: () => ({ totals: [{ scope: 'account', periodId: 'total', chargeNanoUsd: ledgerTotal }] }),
    Show: () => ({ settledNanoUsd: countersTotal, reservedNanoUsd: '0' }),
    Verify: () => ({ checks: [] }),
    Reconcile: () => ({ rows: [], unreconciledNanoUsd: '0', atMs: '0' }),
  };
  door = await startAdmin((method) => answers[method]?.() ?? {});
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
  // Beyond 2^53 the counters hold even nanos alone.
  ['what a double holds of a total that is not even', '9007199254740993', '9007199254740992', '0'],
  ['what a double holds of a hundred million dollars', '123456789012345678', '123456789012345680', '0'],
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
