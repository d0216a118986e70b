/** An endpoint that is due for a probe: five failures have closed it, and half a minute has passed. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { DispatchEvent, DispatchRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { sse, type ScriptedAnswer } from '@signalbox/testkit/fake-provider';
import { until } from '@signalbox/testkit/until';
import { createEndpointBreakers } from './endpoint-breakers.js';
import type { Journal } from './journal.js';
import { chunk, requestOf, startDispatchRig, text, type DispatchRig, USAGE } from './testing/dispatch-rig.js';

const BROKEN = { status: 500, body: { error: { message: 'no' } } };
const FINISHED = [chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')];
const nth = (n: number): DispatchRequest__Output => requestOf({ requestId: `chatcmpl-${String(n)}` });

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
  rig.provider.enqueue(BROKEN, BROKEN, BROKEN, BROKEN, BROKEN);
  for (let n = 0; n < 5; n += 1) await rig.run(nth(n));
  rig.clock.advance(30_000);
});
afterEach(() => rig.stop());

test('is probed by the next call at once if a client leaves before any content', async () => {
  const leave = new AbortController();
  rig.provider.enqueue({ hang: true });
  const left = rig.dispatch(
    nth(6),
    {
      requestId: 'chatcmpl-6',
      traceparent: '',
      signal: leave.signal,
      onAbort: (listener) => leave.signal.addEventListener('abort', () => listener(new Fault('cancelled', 'left'))),
      remainingMs: () => Infinity,
    },
    { write: () => true, drained: () => Promise.resolve() },
  );
  await until(() => rig.provider.requests.length >= 6);
  expect(await rig.run(nth(7))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0 } }]);
  leave.abort();
  await left;
  rig.provider.enqueue(BROKEN);
  expect(await rig.run(nth(8))).toMatchObject([{ failed: { class: 'PROVIDER_ERROR', status: 500 } }]);
  expect(await rig.run(nth(9))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0, retryAfterMs: 30_000 } }]);
});

test('is probed by the next call at once if the failure was ours', async () => {
  const failing: Journal = {
    start: () => Promise.reject(new Fault('quota_unavailable', 'away')),
    checkpoint: () => undefined,
    end: () => Promise.resolve(),
    outcome: () => undefined,
    tend: () => undefined,
    state: () => ({ writer: 'wrt_1', lastSeq: 0, shippedSeq: 0, ledgerSeq: 0 }),
  };
  const breakers = createEndpointBreakers({ clock: rig.clock, origin: 'call_1', onProbe: () => undefined });
  for (let n = 0; n < 5; n += 1) breakers.record('e1', 'PROVIDER_ERROR', false);
  rig.clock.advance(30_000);
  rig.use(systemClock, { breakers, journal: failing });
  await expect(rig.run(nth(6))).rejects.toMatchObject({ code: 'quota_unavailable' });
  rig.use(systemClock, { breakers });
  rig.provider.enqueue(BROKEN);
  expect(await rig.run(nth(7))).toMatchObject([{ failed: { class: 'PROVIDER_ERROR', status: 500 } }]);
});

test('is probed by the next call at once if this process could not open a connection, and nobody is told of a failure', async () => {
  const lines: string[] = [];
  const call = { pause: () => undefined, resume: () => undefined, release: () => undefined, abort: () => undefined, isSent: () => false };
  const breakers = createEndpointBreakers({ clock: rig.clock, origin: 'call_1', onProbe: () => undefined });
  for (let n = 0; n < 5; n += 1) breakers.record('e1', 'PROVIDER_ERROR', false);
  rig.clock.advance(30_000);
  const before = rig.observed.length;
  rig.use(systemClock, {
    breakers,
    log: { ...silentLog, warn: (line) => void lines.push(line) },
    upstream: {
      post: (_request, _id, listener) => {
        queueMicrotask(() => listener.onError('unable'));
        return call;
      },
      close: () => Promise.resolve(),
    },
  });
  for (let n = 6; n < 12; n += 1) expect(await rig.run(nth(n))).toMatchObject([{ failed: { class: 'CONNECT', status: 0, retryable: true } }]);
  expect(rig.ends.slice(-6).map(({ failure }) => failure)).toEqual(Array.from({ length: 6 }, () => 'CONNECT'));
  expect(rig.observed.length).toBe(before);
  expect(lines).toEqual([expect.stringContaining('no file descriptor left')]);
  rig.use(systemClock, { breakers });
  rig.provider.enqueue(BROKEN);
  expect(await rig.run(nth(12))).toMatchObject([{ failed: { class: 'PROVIDER_ERROR', status: 500 } }]);
});

test('admits the next call once a stream has begun, all calls after five, and none once one of them breaks off', async () => {
  const goOn: (() => void)[] = [];
  const begun = (isWhole: boolean): ScriptedAnswer => ({
    chunks: [text('Hello'), () => new Promise<void>((resolve) => goOn.push(resolve)), ...(isWhole ? FINISHED : [])],
    cut: !isWhole,
  });
  rig.provider.enqueue(begun(false), ...Array.from({ length: 6 }, () => begun(true)));
  const running: Promise<DispatchEvent[]>[] = [];
  const start = (n: number): Promise<void> => new Promise((resolve) => running.push(rig.run(nth(n), (event) => event.chunk !== undefined && resolve())));
  const isRefused = async (n: number): Promise<boolean> => (await rig.run(nth(n)))[0]?.failed?.status === 0;
  const first = start(6);
  expect(await isRefused(7)).toBe(true);
  for (let n = 8; n < 12; n += 1) {
    await (n === 8 ? first : Promise.resolve());
    await start(n);
  }
  // None is complete yet, and two may begin together.
  await Promise.all([start(12), start(13)]);
  goOn[0]?.();
  await running[0];
  expect(await isRefused(14)).toBe(true);
  for (const go of goOn) go();
  await Promise.all(running);
});

test('is open to all again after the first whole answer', async () => {
  const whole = { chunks: [text('Hello'), ...FINISHED] };
  rig.provider.enqueue(whole, BROKEN, BROKEN, BROKEN, BROKEN, whole);
  for (let n = 6; n < 12; n += 1) await rig.run(nth(n));
  expect(rig.provider.requests.length).toBe(11);
});
