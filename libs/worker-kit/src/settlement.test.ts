import { beforeEach, describe, expect, test } from '@jest/globals';
import type { FinishRequest, HeartbeatRequest, ReregisterRequest } from '@signalbox/contracts/quota';
import type { RpcClient } from '@signalbox/rpc/call';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createSettlement, FINISHED_MAX, type FinishedHold, type Settlement } from './settlement.js';

const HEARTBEAT_MS = 10_000;

const holdOf = (seq: number): FinishedHold => ({
  accountId: 'acc_1', keyId: 'key_1', requestId: `req_${String(seq)}`, chargeNanoUsd: '7', tokens: '3', byok: false, periods: { day: '', week: '', month: '', plan: '', reservedAtMs: '0' },
});

/** A fake quota: a life of its store, and what it was told. */
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

test('after facts were dropped from a full list, a new life of the store gets its report only once the ledger has them', async () => {
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

  // What is still in the list was not dropped.
  settlement.committed(count - FINISHED_MAX + 1_000);
  await clock.advanceAsync(HEARTBEAT_MS);
  const kept = quota.told.map((requestId) => Number(requestId.slice(4)));
  expect(kept.at(-1)).toBe(count);
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, i) => count - kept.length + 1 + i));
  expect(kept.length).toBeGreaterThanOrEqual(FINISHED_MAX - 1_000);
  expect(settlement.isPresent('second')).toBe(true);
  settlement.close();
});

describe('the draw of a request from an advance', () => {
  const draw = { advanceId: 'adv_1', amountNanoUsd: '9', tokens: '4' };
  const told: { name: string; request: HeartbeatRequest & FinishRequest & ReregisterRequest }[] = [];
  const answers = { isAway: false };
  const client = {
    unary: (name: string, request: (typeof told)[number]['request']) => {
      told.push({ name, request });
      if (answers.isAway) return Promise.reject(new Error('away'));
      return Promise.resolve(name === 'Heartbeat' ? { epoch: 'first', unheldRequestIds: [] } : {});
    },
  } as unknown as RpcClient;
  let clock: FakeClock;
  let settlement: Settlement;
  beforeEach(() => {
    clock = createFakeClock();
    told.length = 0;
    answers.isAway = false;
    settlement = createSettlement({ writer: 'w', quota: client, clock, liveHolds: () => [], unwatchedHolds: () => [] });
  });
  const finishes = (): (readonly (readonly [string | undefined, unknown])[])[] => told.filter(({ name }) => name === 'Finish').map(({ request }) => (request.finished ?? []).map(({ requestId, draw: drawn }) => [requestId, drawn ?? null] as const));

  test('is sent with each heartbeat, with the confirmation call, and with the charge', async () => {
    settlement.live('acc_1', 'req_1', draw);
    await clock.advanceAsync(HEARTBEAT_MS);
    await settlement.confirm('acc_1', 'req_1', 'first', draw);
    await settlement.tellUnwatched('acc_1', 'req_1', draw);
    const beats = told.filter(({ name, request }) => name === 'Heartbeat' && (request.holds ?? []).length > 0);
    expect(beats.map(({ request }) => request.holds?.map((hold) => hold.draw))).toEqual([[draw], [draw], [draw], [draw]]);
    settlement.finished({ ...holdOf(1), draw }, 1);
    await clock.advanceAsync(250);
    expect(finishes()).toEqual([[['req_1', draw]]]);
  });

  test('lets the charge wait for others up to 250 ms, unless a charge that somebody may wait for takes it along', async () => {
    settlement.finished({ ...holdOf(1), draw }, 1);
    await clock.advanceAsync(249);
    expect(finishes()).toEqual([]);
    settlement.finished({ ...holdOf(2), draw }, 2);
    await clock.advanceAsync(1);
    expect(finishes()).toEqual([[['req_1', draw], ['req_2', draw]]]);
    settlement.finished({ ...holdOf(3), draw }, 3);
    settlement.finished(holdOf(4), 4);
    await clock.advanceAsync(10);
    expect(finishes().at(-1)).toEqual([['req_3', draw], ['req_4', null]]);
  });

  test('is told even if the ledger has the request by then, since its totals give nothing back to the advance', async () => {
    settlement.finished({ ...holdOf(1), draw }, 1);
    settlement.finished({ ...holdOf(2), draw }, 2);
    settlement.committed(2);
    await clock.advanceAsync(250);
    expect(finishes()).toEqual([[['req_1', draw], ['req_2', draw]]]);
  });

  test('is told completely when the worker stops, with a single try if quota is away', async () => {
    for (let seq = 1; seq <= 1_200; seq += 1) settlement.finished({ ...holdOf(seq), draw }, seq);
    await settlement.flush();
    expect(finishes().map(({ length }) => length)).toEqual([512, 512, 176]);
    answers.isAway = true;
    settlement.finished({ ...holdOf(1_201), draw }, 1_201);
    await settlement.flush();
    expect(finishes().length).toBe(4);
  });

  test('does not cause more calls to a quota that is away', async () => {
    answers.isAway = true;
    settlement.finished({ ...holdOf(1), draw }, 1);
    await clock.advanceAsync(250);
    for (let seq = 2; seq <= 20; seq += 1) {
      settlement.finished(holdOf(seq), seq);
      await clock.advanceAsync(20);
    }
    expect(finishes().length).toBe(1);
    answers.isAway = false;
    await clock.advanceAsync(500);
    expect(finishes().at(-1)?.length).toBe(20);
  });
});

describe('messages to quota are combined, since each one wakes quota and its store', () => {
  const draw = { advanceId: 'adv_1', amountNanoUsd: '9', tokens: '4' };
  const told: (readonly [ms: number, what: string])[] = [];
  const answers: { hold: Promise<unknown> } = { hold: Promise.resolve() };
  let clock: FakeClock;
  let settlement: Settlement;
  beforeEach(() => {
    clock = createFakeClock();
    told.length = 0;
    answers.hold = Promise.resolve();
    const startMs = clock.monotonicMs();
    const client = {
      unary: async (name: string, request: HeartbeatRequest & FinishRequest) => {
        const ids = [...(request.holds ?? []), ...(request.finished ?? [])].map(({ requestId }) => requestId);
        if (ids.length > 0) told.push([clock.monotonicMs() - startMs, `${name} ${ids.join(' ')}`]);
        if (name === 'Finish') await answers.hold;
        return name === 'Heartbeat' ? { epoch: 'first', unheldRequestIds: [] } : {};
      },
    } as unknown as RpcClient;
    settlement = createSettlement({ writer: 'w', quota: client, clock, liveHolds: () => [], unwatchedHolds: () => [] });
  });

  test('waiting charges are sent with the first heartbeat of new requests', async () => {
    settlement.live('acc_1', 'req_9');
    await clock.advanceAsync(50);
    settlement.finished({ ...holdOf(1), draw }, 1);
    await clock.advanceAsync(450);
    expect(told).toEqual([[250, 'Finish req_1'], [250, 'Heartbeat req_9']]);
  });

  test('the first heartbeat of new requests is sent with charges once half its delay has passed', async () => {
    settlement.finished({ ...holdOf(1), draw }, 1);
    await clock.advanceAsync(125);
    settlement.live('acc_1', 'req_9');
    await clock.advanceAsync(375);
    expect(told).toEqual([[250, 'Finish req_1'], [250, 'Heartbeat req_9']]);
  });

  test('requests that have just begun are not told of with charges, since they may be over soon', async () => {
    settlement.finished({ ...holdOf(1), draw }, 1);
    await clock.advanceAsync(126);
    settlement.live('acc_1', 'req_9');
    await clock.advanceAsync(200);
    settlement.released('req_9');
    await clock.advanceAsync(200);
    expect(told).toEqual([[250, 'Finish req_1']]);
  });

  test('the message every two seconds takes along what is waiting', async () => {
    await clock.advanceAsync(1_800);
    settlement.finished({ ...holdOf(1), draw }, 1);
    await clock.advanceAsync(200);
    expect(told).toEqual([[2_000, 'Finish req_1']]);
  });

  test('charges added while others are being sent are gathered, not sent as soon as those have arrived', async () => {
    let arrive = (_: unknown): void => undefined;
    answers.hold = new Promise((resolve) => (arrive = resolve));
    settlement.finished(holdOf(1), 1);
    await clock.advanceAsync(10);
    settlement.finished({ ...holdOf(2), draw }, 2);
    arrive(undefined);
    await clock.advanceAsync(100);
    settlement.finished({ ...holdOf(3), draw }, 3);
    await clock.advanceAsync(150);
    expect(told).toEqual([[10, 'Finish req_1'], [260, 'Finish req_2 req_3']]);
  });

  test('charges whose gathering time is over by then are sent as soon as the others have arrived', async () => {
    let arrive = (_: unknown): void => undefined;
    answers.hold = new Promise((resolve) => (arrive = resolve));
    settlement.finished(holdOf(1), 1);
    await clock.advanceAsync(10);
    settlement.finished(holdOf(2), 2);
    await clock.advanceAsync(40);
    arrive(undefined);
    await clock.settle();
    await clock.advanceAsync(0);
    expect(told).toEqual([[10, 'Finish req_1'], [50, 'Finish req_2']]);
  });
});
