import { expect, test } from '@jest/globals';
import type { RpcClient } from '@signalbox/rpc/call';
import { createLedgerClient } from './claims-client.js';

const summary = { promptTokens: '0', completionTokens: '0', costNanoUsd: '0', chargeNanoUsd: '0' };
const found = (request: object | null, attempts: readonly object[] = []): object => ({ found: request !== null, request, attempts });
const bookedOf = (answer: object) => createLedgerClient({ unary: () => Promise.resolve(answer) } as unknown as RpcClient).bookedOf('acct_1', 'r1');

test.each([
  ['the account paid', found({ ...summary, costNanoUsd: '7', chargeNanoUsd: '7' }), { costNanoUsd: 7n, isBilled: true }],
  ['the account paid its provider', found({ ...summary, costNanoUsd: '7' }, [{ byok: true, costNanoUsd: '7' }]), { costNanoUsd: 7n, isBilled: true }],
  ['a model without a price drew on the allotment', found({ ...summary, promptTokens: '3' }), { costNanoUsd: 0n, isBilled: true }],
  ['so did words alone', found({ ...summary, completionTokens: '3' }), { costNanoUsd: 0n, isBilled: true }],
  ['nothing was given', found(summary, [{ byok: false, costNanoUsd: '7' }, { byok: true, costNanoUsd: '0' }]), { costNanoUsd: 0n, isBilled: false }],
  ['nothing is booked', found(null), undefined],
])('what became of a request of which the ledger says that %s', async (_what, answer, expected) => {
  expect(await bookedOf(answer)).toEqual(expected);
});
