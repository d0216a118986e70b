import { expect, test } from '@jest/globals';
import type { HeartbeatResponse__Output } from '@signalbox/contracts/quota';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import { extendingAt } from './extend-hold.js';

const extend = (answer: () => Promise<HeartbeatResponse__Output>, heldIn = 'life 1'): Promise<unknown> =>
  extendingAt({ unary: answer } as unknown as RpcClient, 'wrt_1')('acct_1', 'r1', 1n, 1n, heldIn).catch((error: unknown) => (error instanceof Fault ? error.code : error));

test.each<[string, HeartbeatResponse__Output, unknown]>([
  ['grew', { refusedRequestIds: [], unheldRequestIds: [], epoch: 'life 1' }, true],
  ['finds no room within its limits', { refusedRequestIds: ['r1'], unheldRequestIds: [], epoch: 'life 1' }, false],
  ['is not there any more', { refusedRequestIds: ['r1'], unheldRequestIds: ['r1'], epoch: 'life 1' }, 'quota_unavailable'],
  ['lost its limits with the store', { refusedRequestIds: ['r1'], unheldRequestIds: [], epoch: 'life 2' }, 'quota_unavailable'],
  // Reported again after a loss, it is held for the whole answer: all streams of an account together would exceed its cap.
  ['grew in a store that has lost its limits', { refusedRequestIds: [], unheldRequestIds: [], epoch: 'life 2' }, 'quota_unavailable'],
])('a hold that %s: only a limit is a refusal, and a grant counts only if the limits are known', async (_name, answer, expected) => {
  expect(await extend(() => Promise.resolve(answer))).toBe(expected);
});

test('a quota that does not answer rejects, and a hold without a life of the store is extended in any', async () => {
  expect(await extend(() => Promise.reject(new Fault('deadline_exceeded', 'test')))).toBe('deadline_exceeded');
  expect(await extend(() => Promise.resolve({ refusedRequestIds: [], unheldRequestIds: [], epoch: 'life 2' }), '')).toBe(true);
});

test('the draw from an advance is sent with the request to extend', async () => {
  const draw = { advanceId: 'adv_1', amountNanoUsd: '9', tokens: '4' };
  const asked: unknown[] = [];
  const quota = { unary: (_method: string, request: unknown) => Promise.resolve(asked.push(request) > 0 ? { refusedRequestIds: [], unheldRequestIds: [], epoch: 'life 1' } : {}) } as unknown as RpcClient;
  await extendingAt(quota, 'wrt_1')('acct_1', 'r1', 2n, 3n, 'life 1', draw);
  expect(asked).toEqual([{ writer: 'wrt_1', holds: [{ accountId: 'acct_1', requestId: 'r1', extendToNanoUsd: '2', extendToTokens: '3', draw }] }]);
});
