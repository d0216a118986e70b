/** Waiting for a connection to the provider, which is not the endpoint's fault. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CallInfo } from '@signalbox/rpc/call';
import { Fault } from '@signalbox/kernel/fault';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { oneTurn } from '@signalbox/testkit/until';
import { requestOf, startDispatchRig, type DispatchRig } from './testing/dispatch-rig.js';
import { createUpstream, type Place, type Upstream } from './upstream.js';

const PLACES = 3;

let rig: DispatchRig;
let clock: FakeClock;
let upstream: Required<Upstream>;
let places: readonly Place[];
let asked: string[];
beforeEach(async () => {
  rig = await startDispatchRig();
  clock = createFakeClock();
  upstream = createUpstream(rig.provider.origin, undefined, PLACES);
  asked = [];
  rig.use(clock, { upstream: { ...upstream, enter: (request, accountId) => (asked.push(accountId), upstream.enter(request, accountId)) } });
  places = Array.from({ length: PLACES }, () => upstream.enter({}, 'acct_other'));
});
afterEach(async () => {
  await upstream.close();
  await rig.stop();
});

test('a request that gets none in time is refused because the replica is overloaded: nothing is journaled, and the endpoint is not blamed', async () => {
  let fault: unknown;
  const over = rig.run(requestOf()).catch((error: unknown) => (fault = error));
  await clock.advanceAsync(4_999);
  expect(fault).toBeUndefined();
  await clock.advanceAsync(1);
  await over;
  expect(fault).toMatchObject({ code: 'overloaded' });
  expect([rig.log, rig.observed, rig.provider.requests, clock.pendingTimers()]).toEqual([[], [], [], 0]);
  // Its place does not stay in the queue.
  places[0]?.leave();
  expect(upstream.enter({}, 'acct_other').turn).toBeUndefined();
});

test('a request that gets its turn is sent, and gives the place back at its end', async () => {
  rig.provider.enqueue({ status: 500, body: 'no' }, { status: 500, body: 'no' });
  const run = rig.run(requestOf());
  await clock.advanceAsync(4_000);
  places[0]?.leave();
  expect(await run).toMatchObject([{ failed: { class: 'PROVIDER_ERROR' } }]);
  expect(await rig.run(requestOf({ accountId: 'acct_2' }))).toMatchObject([{ failed: { class: 'PROVIDER_ERROR' } }]);
  expect(asked).toEqual(['acct_1', 'acct_2']);
});

test('if the caller leaves meanwhile, the place is free at once and the request is journaled as abandoned', async () => {
  let leave: (reason: Fault) => void = () => undefined;
  let reason: Fault | undefined;
  const call: CallInfo = {
    requestId: 'chatcmpl-1', traceparent: '', signal: new AbortController().signal, remainingMs: () => Infinity,
    onAbort: (listener) => (reason === undefined ? void (leave = listener) : listener(reason)),
  };
  const run = rig.dispatch(requestOf(), call, { write: () => true, drained: () => Promise.resolve() });
  for (let turn = 0; turn < 10; turn += 1) await oneTurn();
  expect(rig.log).toEqual([]);
  reason = new Fault('cancelled', 'left');
  leave(reason);
  await run;
  expect(rig.log).toEqual(['start 1 after 0 requests', 'end', 'DISCARDED false']);
  places[0]?.leave();
  expect([rig.provider.requests.length, upstream.enter({}, 'acct_other').turn]).toEqual([0, undefined]);
});

test('a request that the journal refuses gives its place back', async () => {
  places[0]?.leave();
  rig.use(clock, { upstream, journal: { start: () => Promise.reject(new Fault('store_unavailable', 'test')) } as never });
  for (let n = 0; n < 2; n += 1) await expect(rig.run(requestOf())).rejects.toMatchObject({ code: 'store_unavailable' });
});
