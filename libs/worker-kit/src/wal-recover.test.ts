import { expect, test } from '@jest/globals';
import type { RpcClient } from '@signalbox/rpc/call';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { journalRig } from './testing/journal-rig.js';
import { recoverDirectories } from './wal-recover.js';

const clientOf = (answer: (method: string, request: object) => Promise<object>): RpcClient => ({
  unary: async (method, request) => (await answer(method, request as object)) as never,
  stream: () => ({ cancel: () => undefined, pause: () => undefined, resume: () => undefined }),
  isConnected: () => true,
  close: () => Promise.resolve(),
});

test.each([true, false])('recovery tells quota that a stopped writer has nothing under way, so that nobody waits for it (quota reachable: %p)', async (isThere) => {
  const { clock, bus, directory, open } = await journalRig();
  await (await open()).close();
  const told: object[] = [];
  const quota = clientOf(async (method, request) => {
    // Delayed as over a network: a caller that closes at once does not get the answer.
    await nextTurn();
    if (!isThere) throw new Error('away');
    if (method === 'Reregister') told.push(request);
    return { epoch: 'life 2', unheldRequestIds: [], refusedRequestIds: [] };
  });
  const ended: object[] = [];
  const billing = clientOf((method, request) => {
    if (method === 'Deregister') ended.push(request);
    return Promise.resolve({ ledgerSeq: '0', reportId: 'report', ended: true });
  });
  const [writer] = await recoverDirectories(directory, { clock, randomBytes, log: silentLog, bus, quota, billing });
  const whole = { writer, epoch: 'life 2', live: [], finished: [], last: true };
  expect(told.slice(0, 1)).toEqual(isThere ? [whole] : []);
  expect(ended).toEqual([{ writer, lastSeq: '0', reportId: 'report' }]);
});
