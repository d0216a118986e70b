import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { DispatchEvent } from '@signalbox/contracts/worker';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import { sse } from '@signalbox/testkit/fake-provider';
import { chunk, requestOf, startDispatchRig, text, type DispatchRig, USAGE } from './testing/dispatch-rig.js';

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
});
afterEach(() => rig.stop());

test('a caller that leaves while its request is composed ends that, and the unsent attempt is journaled as abandoned', async () => {
  const events: DispatchEvent[] = [];
  const { signal } = new AbortController();
  await rig.dispatch(
    requestOf({ providerModelId: 'waiting' }),
    { requestId: 'chatcmpl-1', traceparent: '', signal, onAbort: (listener) => listener(new Fault('cancelled', 'left')), remainingMs: () => Infinity },
    {
      write: (event) => events.push(event) > 0,
      drained: () => Promise.resolve(),
    },
  );
  expect([events, rig.provider.requests]).toEqual([[], []]);
  expect(rig.log).toEqual(['start 1 after 0 requests', 'end', 'DISCARDED false']);
  expect(rig.ends).toMatchObject([{ costNanoUsd: 0n, status: 0 }]);
});

test('a client that hangs up mid-stream stops the provider and pays what was generated', async () => {
  rig.provider.enqueue({ chunks: [text('Hello wo')], hang: true });
  await rig.run(requestOf(), (event, leave) => {
    if (event.chunk?.content === true) leave();
  });
  expect(rig.log).toEqual(['start 1 after 0 requests', 'end', 'DELIVERED false']);
  expect(rig.ends[0]).toMatchObject({ source: 'ESTIMATED', flags: ['estimated'], tokens: { inputUncached: 10, outputText: 2 } });
});

test('a stream that its caller stops for a client that was cut off stops the provider, and its end tells what is charged', async () => {
  rig.provider.enqueue({ chunks: [text('Hello wo')], hang: true });
  const request = requestOf();
  const events = await rig.run(request, (event) => {
    if (event.chunk?.content !== true) return;
    // Stopping another attempt has no effect on this one.
    rig.stopAttempt(request.requestId, 2);
    rig.stopAttempt(request.requestId, 1);
    rig.stopAttempt(request.requestId, 1);
  });
  // The caller itself tells the outcome.
  expect(rig.log).toEqual(['start 1 after 0 requests', 'end', 'last event']);
  expect(rig.ends).toMatchObject([{ source: 'ESTIMATED', flags: ['estimated'], tokens: { inputUncached: 10, outputText: 2 }, finishReason: 'error', clientLeft: false, undelivered: false }]);
  const end = events.at(-1)?.end;
  expect(end).toMatchObject({ costNanoUsd: String(rig.ends[0]?.costNanoUsd), tokens: { inputUncached: 10, outputText: 2 }, finishReason: 'error', cut: { class: 'STOPPED' } });
  // It tells nothing about the endpoint.
  expect(rig.observed).toEqual([]);
  rig.stopAttempt(request.requestId, 1);
});

test('a whole answer cannot be stopped in this way, since nothing of it would be owed', async () => {
  rig.provider.enqueue({ chunks: [text('Hello'), () => Promise.resolve(rig.stopAttempt(requestOf().requestId, 1)), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
  const events = await rig.run(requestOf({ clientStream: false, gather: true }));
  expect([rig.ends[0]?.source, events.at(-1)?.end?.cut]).toEqual(['PROVIDER', undefined]);
});

test('a caller that leaves a stream which it has asked to end is told nothing more', async () => {
  rig.provider.enqueue({ chunks: [text('Hello wo')], hang: true });
  const events = await rig.run(requestOf(), (event, leave) => {
    if (event.chunk?.content !== true) return;
    leave();
    rig.stopAttempt(requestOf().requestId, 1);
  });
  expect([rig.log, events.some(({ end }) => end !== undefined)]).toEqual([['start 1 after 0 requests', 'end', 'DELIVERED false'], false]);
});

test.each([true, false])('a client that left before the provider was asked costs nothing (stream: %s)', async (clientStream) => {
  await rig.run(requestOf({ retryOf: [1], attempt: 2, clientStream }), (event, leave) => {
    if (event.started !== undefined) leave();
  });
  expect(rig.provider.requests).toHaveLength(0);
  expect(rig.ends[0]).toMatchObject({ costNanoUsd: 0n });
  expect(rig.log.at(-1)).toBe('DISCARDED false');
});

test.each<FaultCode>(['link_lost', 'deadline_exceeded'])(
  'a call that ends by %s stops the provider and leaves the outcome to edge',
  async (code) => {
    rig.provider.enqueue({ chunks: [text('Hello wo')], hang: true });
    await rig.run(requestOf(), (event, leave) => {
      if (event.chunk?.content === true) leave(code);
    });
    expect(rig.log).toEqual(['start 1 after 0 requests', 'end']);
    expect(rig.ends[0]).toMatchObject({ source: 'ESTIMATED' });
  },
);

test.each<[boolean, FaultCode, boolean]>([
  [false, 'link_lost', true],
  [false, 'deadline_exceeded', true],
  [false, 'cancelled', true],
  [false, 'client_left', false],
  [true, 'cancelled', false],
  [true, 'link_lost', false],
])('the end record of a call that ended early (streamed: %s, by %s) says that the client has seen nothing: %s', async (clientStream, code, undelivered) => {
  rig.provider.enqueue({ chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
  await rig.run(requestOf({ clientStream }), (event, leave) => {
    if (event.chunk?.content === true) leave(code);
  });
  expect(rig.ends[0]?.undelivered).toBe(undelivered);
});

test.each<[boolean, boolean, boolean]>([
  [false, false, true],
  [false, true, false],
  [true, false, false],
])('the end record of an answer that the provider broke off (streamed: %s, client left before: %s) says that the client has seen nothing: %s', async (clientStream, hasLeft, undelivered) => {
  let release: () => void = () => undefined;
  const left = new Promise<void>((resolve) => {
    release = resolve;
  });
  rig.provider.enqueue({ chunks: [text('Hello wo'), () => left], cut: true });
  await rig.run(requestOf({ clientStream }), (event, leave) => {
    if (event.chunk?.content !== true) return;
    if (hasLeft) leave('client_left');
    release();
  });
  expect(rig.ends[0]).toMatchObject({ source: 'ESTIMATED', finishReason: 'error', undelivered });
});

test.each<[string, string, boolean, FaultCode | undefined, boolean]>([
  ['its provider', '', true, undefined, true],
  ['a link', '', true, 'link_lost', true],
  ['a deadline', '', true, 'deadline_exceeded', true],
  ['its provider, after words', 'Let me see. ', true, undefined, false],
  ['a link, after words', 'Let me see. ', true, 'link_lost', false],
  ['its caller, which says what became of it', '', true, 'cancelled', false],
  ['its provider, of a request that is asked once', '', false, undefined, false],
])('a round that %s ended within its tool calls is marked in the journal if its client has seen nothing', async (_who, said, rounds, code, callsOnly) => {
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'code_exec', arguments: '{"code":"6*7' } };
  const chunks = [chunk([{ index: 0, delta: { role: 'assistant', content: said }, finish_reason: null }]), chunk([{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }])];
  rig.provider.enqueue(code === undefined ? { chunks, cut: true } : { chunks, hang: true });
  await rig.run(requestOf({ rounds, toolNames: ['code_exec'] }), (event, leave) => {
    if (code !== undefined && event.chunk?.choices?.toString().includes('tool_calls') === true) leave(code);
  });
  expect(rig.ends[0]).toMatchObject({ source: 'ESTIMATED', finishReason: 'error', callsOnly });
});

test('a client that hangs up on a whole answer leaves it to be fetched and booked in full', async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  rig.provider.enqueue({
    chunks: [text('Hello'), () => held, chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')],
  });
  await rig.run(requestOf({ clientStream: false }), (event, leave) => {
    if (event.chunk?.content === true) {
      leave('client_left');
      release();
    }
  });
  expect(rig.ends[0]).toMatchObject({ source: 'PROVIDER', costNanoUsd: 20000n });
  expect(rig.log.at(-1)).toBe('DELIVERED false');
});

test.each([[true, ['tend 1']], [false, []]])('a round counts as tended (%s) from its start if edge says so, since edge may die before it tends the round', async (tended, tends) => {
  rig.provider.enqueue({ chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
  await rig.run(requestOf({ rounds: true, tended }));
  const written = rig.log.slice(1, rig.log.indexOf('end'));
  expect(written.filter((entry) => entry.startsWith('tend'))).toEqual(tends);
});
