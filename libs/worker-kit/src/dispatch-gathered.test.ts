import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { sse } from '@signalbox/testkit/fake-provider';
import { chunk, requestOf, startDispatchRig, text, type DispatchRig, USAGE } from './testing/dispatch-rig.js';

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
});
afterEach(() => rig.stop());

describe('gathered for a client without a stream', () => {
  test('one body contains what all chunks contained', async () => {
    const call = (more: object) => chunk([{ index: 0, delta: { tool_calls: [{ index: 0, ...more }] }, finish_reason: null }]);
    rig.provider.enqueue({
      chunks: [
        chunk([{ index: 0, delta: { role: 'assistant', reasoning_content: 'Hm' }, logprobs: null, finish_reason: null }]),
        text('Hel'),
        text('lo'),
        chunk([{ index: 1, delta: { content: 'You' }, finish_reason: null }]),
        call({ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a"' } }),
        call({ function: { arguments: ':1}' } }),
        chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]),
        chunk([{ index: 1, delta: {}, finish_reason: 'stop' }]),
        chunk([], { usage: USAGE }),
        sse('[DONE]'),
      ],
    });
    const events = await rig.run(requestOf({ clientStream: false, gather: true }));
    expect(events.map((event) => Object.keys(event)[0])).toEqual(['head', 'body', 'end']);
    expect(JSON.parse(String(events[1]?.body?.choices))).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Hello',
          refusal: null,
          reasoning_content: 'Hm',
          tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }].map(({ index, ...rest }) =>
            index === 0 ? rest : {},
          ),
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
      { index: 1, message: { role: 'assistant', content: 'You', refusal: null }, logprobs: null, finish_reason: 'stop' },
    ]);
    expect(events[2]?.end).toMatchObject({ costNanoUsd: '20000', finishReason: 'tool_calls' });
  });

  test('no checkpoint counts anything as delivered before the body is', async () => {
    const long = { chunks: [text('x'.repeat(8_192)), text('y'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), sse('[DONE]')] };
    rig.provider.enqueue(long, long);
    await rig.run(requestOf({ maxTokens: 9_000 }));
    expect(rig.checkpoints).not.toEqual([]);
    rig.checkpoints.length = 0;
    await rig.run(requestOf({ maxTokens: 9_000, clientStream: false, gather: true }));
    expect(rig.checkpoints).toEqual([]);
  });

  test('nor does one of a round that gave its client nothing but tool calls', async () => {
    const call = (args: string) =>
      chunk([
        {
          index: 0,
          delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'code_exec', arguments: args } }] },
          finish_reason: null,
        },
      ]);
    const round = (said: string) => ({
      chunks: [text(said), call(`"${'x'.repeat(8_192)}`), call('y"'), chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]), sse('[DONE]')],
    });
    rig.provider.enqueue(round(''), round('Let me see.'));
    await rig.run(requestOf({ maxTokens: 9_000, rounds: true }));
    expect(rig.checkpoints).toEqual([]);
    await rig.run(requestOf({ maxTokens: 9_000, rounds: true }));
    expect(rig.checkpoints).not.toEqual([]);
  });

  test('a stream that breaks off yields no body, so that another attempt may answer', async () => {
    rig.provider.enqueue({ chunks: [text('Hel')], cut: true });
    const events = await rig.run(requestOf({ clientStream: false, gather: true }));
    expect(events.map((event) => Object.keys(event)[0])).toEqual(['head', 'end']);
    expect(events[1]?.end).toMatchObject({ cut: { class: 'DISCONNECTED' } });
  });
});
