/** A worker that was suspended: what its provider sent meanwhile is read before a time-out applies. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { sse } from '@signalbox/testkit/fake-provider';
import { until } from '@signalbox/testkit/until';
import { chunk, requestOf, startDispatchRig, text, USAGE, type DispatchRig } from './testing/dispatch-rig.js';

let rig: DispatchRig;
let time: FakeClock;
beforeEach(async () => {
  rig = await startDispatchRig();
  time = createFakeClock();
  rig.use(time);
});
afterEach(() => rig.stop());

const FINISH = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]);
const REST = [chunk([], { usage: USAGE }), sse('[DONE]')];
/** Resolves when everything sent so far has been processed. */
const read = (sent: readonly string[]) => () => until(() => rig.readBytes() === Buffer.byteLength(sent.join('')));
/** Blocks the event loop: what was sent before is still in the socket when the timers fire. */
const stall = (ms: number) => () => {
  time.stall(ms);
  return Promise.resolve();
};

test.each([
  ['to begin', [], [text('hi')], [FINISH, ...REST], 6_000],
  ['to go on', [text('h')], [text('i')], [FINISH, ...REST], 6_000],
  ['to tell the price', [text('hi'), FINISH], REST, [], 3_000],
])('the time for a provider %s does not expire while its data is still unread', async (_what, before, unread, after, ms) => {
  rig.provider.enqueue({ chunks: [...before, ...(before.length === 0 ? [] : [read(before)]), ...unread, stall(ms), ...after] });
  const events = await rig.run(requestOf({ firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 }));
  expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', costNanoUsd: '20000', finishReason: 'stop' });
});

test.each([
  ['begin', [], 6_000, 'TIMEOUT_FIRST_BYTE'],
  ['go on', [text('hi')], 6_000, 'TIMEOUT_IDLE'],
])('it expires if there is no unread data: a provider that does not %s is given up', async (_what, before, ms, failure) => {
  rig.provider.enqueue({ chunks: [...before, ...(before.length === 0 ? [] : [read(before)])], hang: true });
  const isThere = until(() => rig.provider.requests.length === 1 && rig.readBytes() === Buffer.byteLength(before.join('')));
  const running = rig.run(requestOf({ firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 }));
  await isThere;
  time.stall(ms);
  await running;
  expect(rig.ends.at(-1)).toMatchObject({ failure });
});
