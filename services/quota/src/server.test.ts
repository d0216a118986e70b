import { beforeEach, expect, test } from '@jest/globals';
import type { HeartbeatResponse, ShowResponse } from '@signalbox/contracts/quota';
import type { Handlers } from '@signalbox/rpc/call';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createMemoryStore } from './adapters/memory-store.js';
import { createQuota } from './domain/quota.js';
import { createQuotaMetrics } from './metrics.js';
import { createHandlers } from './server.js';

const PERIODS = { day: '2026-11-21', week: '2026-W47', month: '2026-11', plan: '2026-11', reservedAtMs: '1' };
let handlers: Handlers;
let clock: FakeClock;

beforeEach(async () => {
  clock = createFakeClock();
  const quota = createQuota(createMemoryStore({ clock }), () => Promise.resolve({ seq: 0n, totals: [], requestIds: [] }));
  handlers = createHandlers({ quota, metrics: createQuotaMetrics(false), periodSeconds: undefined });
  const { epoch } = await heartbeat([]);
  const live = [{ accountId: 'a', keyId: 'k', requestId: 'held', amountNanoUsd: '10', tokens: '1', byok: false, periods: PERIODS, started: true, draw: null }];
  await handlers.unary['Reregister']?.({ writer: 'w', epoch, live, finished: [], last: true } as never, {} as never);
});

function heartbeat(holds: readonly { readonly requestId: string; readonly extendToNanoUsd?: string }[], confirm = false): Promise<HeartbeatResponse> {
  const asked = { writer: 'w', confirm, holds: holds.map((hold) => ({ accountId: 'a', extendToNanoUsd: '0', extendToTokens: '0', draw: null, ...hold })) };
  return handlers.unary['Heartbeat']?.(asked as never, {} as never) as Promise<HeartbeatResponse>;
}

test.each<[string, Parameters<typeof heartbeat>, readonly string[], readonly string[]]>([
  ['says that they live', [[{ requestId: 'held' }, { requestId: 'lost' }]], ['lost'], []],
  ['asks whether they are held', [[{ requestId: 'held' }, { requestId: 'lost' }], true], ['lost'], []],
  // A hold restored by its worker has lost its limits.
  ['asks for more', [[{ requestId: 'held', extendToNanoUsd: '20' }, { requestId: 'lost', extendToNanoUsd: '20' }]], ['lost'], ['held', 'lost']],
])('a heartbeat that %s is told which of its requests have no hold', async (_what, asked, unheld, refused) => {
  const { unheldRequestIds, refusedRequestIds } = await heartbeat(...asked);
  expect([unheldRequestIds, refusedRequestIds ?? []]).toEqual([unheld, refused]);
});

test('requests that finished long ago and are not settled are told to who asks for them', async () => {
  const show = (overdueMs: string): Promise<ShowResponse> => handlers.unary['Show']?.({ accountId: 'a', overdueMs } as never, {} as never) as Promise<ShowResponse>;
  await handlers.unary['Finish']?.({ writer: 'w', finished: [{ accountId: 'a', keyId: 'k', requestId: 'held', chargeNanoUsd: '7', tokens: '1', byok: false, periods: PERIODS, draw: null }] } as never, {} as never);
  expect((await show('60000')).overdue).toEqual([]);
  clock.advance(60_000);
  expect((await show('60000')).overdue).toEqual([{ requestId: 'held', chargeNanoUsd: '7', silent: false }]);
  expect((await show('0')).overdue).toEqual([]);
});
