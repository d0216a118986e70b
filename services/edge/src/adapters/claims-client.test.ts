import { expect, test } from '@jest/globals';
import { Fault, FAULTS } from '@signalbox/kernel/fault';
import type { CallOptions, RpcClient } from '@signalbox/rpc/call';
import { createClaimsClient, createLedgerClient } from './claims-client.js';

const REF = { accountId: 'acct_1', keyDigest: Buffer.from('key'), requestId: 'r1' };

test('a frozen accounts or billing is given up for its silence, a slow one is waited for; the failure is reported as claims_unavailable', async () => {
  const asked: unknown[] = [];
  const frozen = {
    unary: (method: string, _message: object, { deadlineMs, silenceMs }: CallOptions) => {
      asked.push([method, deadlineMs, silenceMs]);
      return Promise.reject(new Fault('deadline_exceeded', 'silent'));
    },
  } as unknown as RpcClient;
  const claims = createClaimsClient(frozen);
  for (const call of [claims.claim(REF, Buffer.from('body'), '', true), claims.renew(REF), claims.begin(REF), claims.end(REF, { kind: 'freed' })]) await expect(call).rejects.toMatchObject({ code: 'claims_unavailable' });
  await expect(createLedgerClient(frozen).bookedOf('acct_1', 'r1')).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(asked).toEqual(['ClaimRequest', 'RenewClaim', 'BeginClaim', 'EndClaim', 'GetRequest'].map((method) => [method, 5_000, 500]));
  expect(FAULTS.claims_unavailable).toMatchObject({ httpStatus: 503, publicCode: FAULTS.accounts_unavailable.publicCode });
});

const summary = { promptTokens: '0', completionTokens: '0', costNanoUsd: '0', chargeNanoUsd: '0' };
const found = (request: object | null, attempts: readonly object[] = []): object => ({ found: request !== null, request, attempts });
const bookedOf = (answer: object) => createLedgerClient({ unary: () => Promise.resolve(answer) } as unknown as RpcClient).bookedOf('acct_1', 'r1');

test.each([
  ['the account paid', found({ ...summary, costNanoUsd: '7', chargeNanoUsd: '7' }), { costNanoUsd: 7n, isBilled: true }],
  ['the account paid its provider', found({ ...summary, costNanoUsd: '7' }, [{ byok: true, costNanoUsd: '7' }]), { costNanoUsd: 7n, isBilled: true }],
  ['a model without a price drew on the allotment', found({ ...summary, promptTokens: '3' }), { costNanoUsd: 0n, isBilled: true }],
  ['output tokens drew on the allotment, too', found({ ...summary, completionTokens: '3' }), { costNanoUsd: 0n, isBilled: true }],
  ['nothing was delivered', found(summary, [{ byok: false, costNanoUsd: '7' }, { byok: true, costNanoUsd: '0' }]), { costNanoUsd: 0n, isBilled: false }],
  ['nothing is booked', found(null), undefined],
])('what is known of a request of which the ledger says that %s', async (_what, answer, expected) => {
  expect(await bookedOf(answer)).toEqual(expected);
});
