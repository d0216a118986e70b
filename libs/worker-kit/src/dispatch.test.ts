import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { DispatchEvent } from '@signalbox/contracts/worker';
import { sse } from '@signalbox/testkit/fake-provider';
import { until } from '@signalbox/testkit/until';
import { chunk, requestOf, startDispatchRig, text, type DispatchRig, UNSENDABLE, USAGE } from './testing/dispatch-rig.js';

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
});
afterEach(() => rig.stop());

test('journals before a byte leaves and before the last event does, and charges what the provider says', async () => {
  rig.provider.enqueue({
    chunks: [text('Hel'), text('lo'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')],
  });
  const events = await rig.run(requestOf());
  expect(rig.log).toEqual(['start 1 after 0 requests', 'end', 'last event']);
  expect(events.at(0)?.head).toBeDefined();
  expect(events.at(-1)?.end).toMatchObject({ costNanoUsd: '20000', source: 'PROVIDER', finishReason: 'stop', flags: [] });
  expect(rig.provider.requests[0]?.headers['x-request-id']).toBe('chatcmpl-01JD8Z6T9M3W5R7V2K4X6B8N0Q/1');
  expect(rig.provider.requests[0]?.headers.authorization).toBe('Bearer sk-secret-one');
  expect(JSON.parse(rig.provider.requests[0]?.body ?? '')).toMatchObject({ model: 'fake-1', stream: true, stream_options: { include_usage: true } });
});

test('tells routing the decision of what `auto` chose, once it has answered', async () => {
  const answer = { body: { choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }], usage: USAGE } };
  rig.provider.enqueue(answer, { status: 500 }, answer);
  const told = { stream: false, clientStream: false, decisionId: 'dec_1' };
  await rig.run(requestOf({ ...told, routedFrom: 'auto' }));
  await rig.run(requestOf({ ...told, routedFrom: 'auto' }));
  await rig.run(requestOf({ ...told, routedFrom: 'openai/gpt-4o-mini' }));
  expect(rig.observed.map(({ ok, autoDecisionId }) => [ok, autoDecisionId])).toEqual([[true, 'dec_1'], [false, undefined], [true, undefined]]);
});

test('answers a whole body with its cost', async () => {
  rig.provider.enqueue({ body: { choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }], usage: USAGE } });
  const events = await rig.run(requestOf({ stream: false, clientStream: false }));
  expect(JSON.parse(String(events[0]?.body?.choices))).toEqual([
    { index: 0, message: { role: 'assistant', content: 'Hello', refusal: null }, logprobs: null, finish_reason: 'stop' },
  ]);
  expect(events[1]?.end).toMatchObject({ costNanoUsd: '20000' });
});

test('an attempt that supersedes others says so once it is journaled, before the provider is asked', async () => {
  rig.provider.enqueue({ body: { choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }], usage: USAGE } });
  let asked = -1;
  const events = await rig.run(requestOf({ attempt: 2, retryOf: [1], stream: false, clientStream: false }), (event) => {
    if (event.started !== undefined) asked = rig.provider.requests.length;
  });
  expect(Object.keys(events[0] ?? {})).toEqual(['started']);
  expect([rig.log[0], asked]).toEqual(['start 2 after 0 requests', 0]);
  expect(Object.keys((await rig.run(requestOf()))[0] ?? {})).not.toContain('started');
});

test('a request that the wire cannot carry fails with its reason, unsent and unjournaled', async () => {
  const events = await rig.run(requestOf({ providerModelId: 'unsendable' }));
  expect(events).toEqual([{ failed: UNSENDABLE }]);
  expect(rig.log).toEqual(['last event']);
  expect(rig.provider.requests).toHaveLength(0);
});

test('the bound of an answer counts all its choices together', async () => {
  const choices = 20;
  const long = 'abcd'.repeat(2_000);
  const finish = Array.from({ length: choices }, (_, index) => chunk([{ index, delta: {}, finish_reason: 'stop' }]));
  rig.provider.enqueue({
    chunks: [
      ...Array.from({ length: choices }, (_, index) => chunk([{ index, delta: { content: long }, finish_reason: null }])),
      ...finish,
      chunk([], { usage: USAGE }),
      sse('[DONE]'),
    ],
  });
  const events = await rig.run(
    requestOf({
      maxTokens: 2_000,
      fields: [
        { name: 'messages', value: Buffer.from('[{"role":"user","content":"hi"}]') },
        { name: 'n', value: Buffer.from(String(choices)) },
      ],
    }),
  );
  expect(events.at(-1)?.end).toMatchObject({ finishReason: 'stop', source: 'PROVIDER' });
});

test.each([
  ['a round that gave a stream nothing but calls', true, '', [], true],
  ['one that spoke before its calls', true, 'Let me see. ', [], false],
  ['one whose client takes no stream', false, 'Let me see. ', [], true],
  ['one that called tools of ours alone', false, '', ['image_gen', 'code_exec'], true],
  ["one that called a tool of its client's, whole", false, '', ['image_gen'], false],
  ["one that called a tool of its client's, as a stream", true, '', ['image_gen'], false],
  ['calls of a request that is asked once', true, '', [], undefined],
])('the journal marks correctly whether only tool calls were made: %s', async (_case, clientStream, said, toolNames, callsOnly) => {
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'code_exec', arguments: '{}' } };
  rig.provider.enqueue({
    chunks: [
      chunk([{ index: 0, delta: { role: 'assistant', content: said }, finish_reason: null }]),
      chunk([{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }]),
      chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]),
      chunk([], { usage: USAGE }),
      sse('[DONE]'),
    ],
  });
  await rig.run(requestOf({ rounds: callsOnly !== undefined, toolNames, clientStream, gather: !clientStream }));
  expect(rig.ends[0]?.callsOnly).toBe(callsOnly ?? false);
});

test('fails on the first byte timer when the provider says nothing', async () => {
  rig.use(rig.clock);
  rig.provider.enqueue({ hang: true });
  const events = rig.run(requestOf({ firstByteTimeoutMs: 50 }));
  await until(() => rig.provider.requests.length > 0);
  await rig.clock.advanceAsync(50);
  expect((await events).at(-1)?.failed).toMatchObject({ class: 'TIMEOUT_FIRST_BYTE' });
});

test('a caller without room is waited for, and gets the rest once it has room', async () => {
  rig.provider.enqueue({ chunks: [text('Hel'), text('lo'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
  let makeRoom: () => void = () => undefined;
  const room = new Promise<void>((resolve) => (makeRoom = resolve));
  const events: DispatchEvent[] = [];
  let asks = 0;
  const { signal } = new AbortController();
  const done = rig.dispatch(
    requestOf(),
    { requestId: 'chatcmpl-1', traceparent: '', signal, onAbort: () => undefined, remainingMs: () => Infinity },
    {
      write: (event) => {
        events.push(event);
        return event.chunk === undefined || asks > 0;
      },
      drained: () => {
        asks += 1;
        return room;
      },
    },
  );
  while (asks === 0) await new Promise(setImmediate);
  makeRoom();
  await done;
  expect(events.at(-1)?.end).toMatchObject({ finishReason: 'stop', source: 'PROVIDER' });
  expect(asks).toBe(1);
});
