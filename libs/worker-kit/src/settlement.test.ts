import { expect, test } from '@jest/globals';
import type { HeartbeatRequest, ReregisterRequest } from '@signalbox/contracts/quota';
import type { RpcClient } from '@signalbox/rpc/call';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createSettlement, FINISHED_MAX, type FinishedHold } from './settlement.js';

const HEARTBEAT_MS = 10_000;

const holdOf = (seq: number): FinishedHold => ({
  accountId: 'acc_1', keyId: 'key_1', requestId: `req_${String(seq)}`, chargeNanoUsd: '7', tokens: '3', byok: false, periods: { day: '', week: '', month: '', plan: '', reservedAtMs: '0' },
});

/** Quota as a worker sees it: a life of its store, and what it was told of it. */
function quotaOf(): { readonly client: RpcClient; life: string; readonly told: string[] } {
  const told: string[] = [];
  const quota = { life: 'first', told, client: undefined as unknown as RpcClient };
  const unary = (name: string, request: HeartbeatRequest | ReregisterRequest): Promise<object> => {
    if (name === 'Reregister') told.push(...((request as ReregisterRequest).finished ?? []).map(({ requestId = '' }) => requestId));
    return Promise.resolve(name === 'Heartbeat' ? { epoch: quota.life, unheldRequestIds: [] } : {});
  };
  quota.client = { unary, stream: () => { throw new Error('none'); }, isConnected: () => true, close: () => Promise.resolve() } as RpcClient;
  return quota;
}

test('what was dropped from a list that is full is not told as all there is: a new life of the counters is told once the ledger has it', async () => {
  const clock = createFakeClock();
  const quota = quotaOf();
  const settlement = createSettlement({ writer: 'w', quota: quota.client, clock, liveHolds: () => [], unwatchedHolds: () => [] });
  settlement.begin();
  await clock.settle();
  const count = FINISHED_MAX + 2_500;
  for (let seq = 1; seq <= count; seq += 1) settlement.finishedBefore(holdOf(seq), seq);

  quota.life = 'second';
  await clock.advanceAsync(HEARTBEAT_MS);
  expect(quota.told).toEqual([]);
  expect(settlement.isPresent('second')).toBe(false);

  // Everything that is still in the list was dropped by nobody.
  settlement.committed(count - FINISHED_MAX + 1_000);
  await clock.advanceAsync(HEARTBEAT_MS);
  const kept = quota.told.map((requestId) => Number(requestId.slice(4)));
  expect(kept.at(-1)).toBe(count);
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, i) => count - kept.length + 1 + i));
  expect(kept.length).toBeGreaterThanOrEqual(FINISHED_MAX - 1_000);
  expect(settlement.isPresent('second')).toBe(true);
  settlement.close();
});
