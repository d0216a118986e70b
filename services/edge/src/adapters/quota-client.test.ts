import { expect, test } from '@jest/globals';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { HeartbeatResponse__Output } from '@signalbox/contracts/quota';
import type { CallOptions, RpcClient } from '@signalbox/rpc/call';
import { createFakeClock } from '@signalbox/testkit/clock';
import type { LocalAdmission } from '../domain/local-admission.js';
import { createQuotaClient } from './quota-client.js';

const LOCALLY = { decision: 'ADMITTED', epoch: '' } as NonNullable<ReturnType<LocalAdmission['admit']>>;

/** A quota that fails with `code`, and an edge that decides by itself or not. */
function failing(code: FaultCode, isServedLocally: boolean) {
  const called: string[] = [];
  const client = {
    unary: (method: string) => {
      called.push(method);
      return method === 'Admit' ? Promise.reject(new Fault(code, 'test')) : Promise.resolve({});
    },
  } as unknown as RpcClient;
  const quota = createQuotaClient(client, createFakeClock(), 150, { admit: () => (isServedLocally ? LOCALLY : undefined) });
  return { called, admit: () => quota.admit({ requestId: 'chatcmpl-0001', accountId: 'acct_1' }) };
}

test.each<FaultCode>(['quota_unavailable', 'peer_unavailable', 'link_lost', 'overloaded'])('%s: edge decides by itself, and releases what quota may have stored', async (code) => {
  const { admit, called } = failing(code, true);
  expect(await admit()).toBe(LOCALLY);
  expect(called).toEqual(['Admit', 'Admit', 'Release']);
});

test('after a silent replica no further one is asked, since the call did so itself; the possible hold is released', async () => {
  const { admit, called } = failing('deadline_exceeded', true);
  expect(await admit()).toBe(LOCALLY);
  expect(called).toEqual(['Admit', 'Release']);
});

test('a quota that shows signs of life is waited for longer than a silent one, at most 5 s with the retry', async () => {
  const clock = createFakeClock();
  const asked: unknown[] = [];
  const client = {
    unary: (method: string, _request: object, { deadlineMs, silenceMs }: CallOptions) => {
      if (method !== 'Admit') return Promise.resolve({});
      asked.push({ deadlineMs, silenceMs });
      clock.advance(2_000);
      return Promise.reject(new Fault('quota_unavailable', 'test'));
    },
  } as unknown as RpcClient;
  await expect(createQuotaClient(client, clock, 150).admit({ requestId: 'chatcmpl-0001', accountId: 'acct_1' })).rejects.toMatchObject({ code: 'quota_unavailable' });
  expect(asked).toEqual([{ deadlineMs: 5_000, silenceMs: 150 }, { deadlineMs: 3_000, silenceMs: 150 }]);
});

test('edge does not decide by itself when quota rejects the request itself', async () => {
  await expect(failing('bad_message', true).admit()).rejects.toMatchObject({ code: 'quota_unavailable' });
});

test('a refused client comes back after 2 to 5 s, spread over that time', async () => {
  const error: unknown = await failing('link_lost', false).admit().then(() => undefined, (reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'quota_unavailable' });
  expect((error as Fault).retryAfterMs).toBeGreaterThanOrEqual(2_000);
  expect((error as Fault).retryAfterMs).toBeLessThan(5_000);
});

test.each<[string, HeartbeatResponse__Output, boolean | 'fault']>([
  ['grew', { refusedRequestIds: [], unheldRequestIds: [], epoch: 'life 1' }, true],
  ['finds no room within its limits', { refusedRequestIds: ['r1'], unheldRequestIds: [], epoch: 'life 1' }, false],
  ['no longer exists', { refusedRequestIds: ['r1'], unheldRequestIds: ['r1'], epoch: 'life 1' }, 'fault'],
  ['lost its limits with the store', { refusedRequestIds: ['r1'], unheldRequestIds: [], epoch: 'life 2' }, 'fault'],
  ['grew in another epoch of the store, without its limits', { refusedRequestIds: [], unheldRequestIds: [], epoch: 'life 2' }, 'fault'],
])('a hold that %s between two rounds: only a limit is a refusal, and it grows only while its limits are known', async (_name, answer, expected) => {
  const quota = createQuotaClient({ unary: () => Promise.resolve(answer) } as unknown as RpcClient, createFakeClock());
  const told = await quota.extend('acct_1', 'r1', 1n, 1n, 'life 1').catch((error: unknown) => (error instanceof Fault && error.code === 'quota_unavailable' ? 'fault' : error));
  expect(told).toBe(expected);
});

test('the draw of a request goes with its release and with each extension', async () => {
  const draw = { advanceId: 'adv_1', amountNanoUsd: '9', tokens: '4' };
  const told: unknown[] = [];
  const client = {
    unary: (method: string, request: { readonly draw?: unknown; readonly holds?: readonly { readonly draw?: unknown }[] }) => {
      told.push([method, request.draw ?? request.holds?.[0]?.draw ?? null]);
      return Promise.resolve({ refusedRequestIds: [], unheldRequestIds: [], epoch: 'life' });
    },
  } as unknown as RpcClient;
  const quota = createQuotaClient(client, createFakeClock());
  quota.release('acct_1', 'r', draw);
  quota.release('acct_1', 'r');
  await quota.extend('acct_1', 'r', 1n, 1n, 'life', draw);
  expect(told).toEqual([['Release', draw], ['Release', null], ['Heartbeat', draw]]);
});

test('the release of a draw is repeated each second while quota is away, until the lease is over; any other release is sent once', async () => {
  const clock = createFakeClock();
  let isAway = true;
  const told: string[] = [];
  const client = {
    unary: (_method: string, { requestId }: { readonly requestId: string }) => {
      told.push(requestId);
      return isAway ? Promise.reject(new Fault('quota_unavailable', 'test')) : Promise.resolve({});
    },
  } as unknown as RpcClient;
  const quota = createQuotaClient(client, clock);
  quota.release('acct_1', 'drawn', { advanceId: 'adv_1', amountNanoUsd: '9', tokens: '4' });
  quota.release('acct_1', 'held');
  await clock.advanceAsync(3_500);
  expect(told).toEqual(['drawn', 'held', 'drawn', 'drawn', 'drawn']);
  isAway = false;
  await clock.advanceAsync(10_000);
  expect(told.length).toBe(6);
  isAway = true;
  quota.release('acct_1', 'drawn', { advanceId: 'adv_1', amountNanoUsd: '9', tokens: '4' });
  await clock.advanceAsync(120_000);
  expect(told.length).toBe(6 + 30);
});
