import { expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { events, type PlayedCall } from '../testing/neighbours.js';
import { chunkOf, ours, story, streaming, theirs, wire } from '../testing/rounds-story.js';

const stream = { request: { stream: true }, providers: ['a', 'b'] };
const cut = events.end({ cut: events.failed('DISCONNECTED').failed ?? null, finishReason: 'error' });
const within = streaming(ours()).slice(0, -2);
const words = [events.role(), events.text('It is 42.'), events.finish(), events.end()];
const calls = (call: PlayedCall): void => call.play(...streaming(ours()));
const says = (call: PlayedCall): void => call.play(...words);
const breaksOff = (call: PlayedCall): void => call.play(...within, cut);
const isLost = (call: PlayedCall): void => {
  for (const event of within) call.listener.onEvent(event);
  call.listener.onEnd(new Fault('link_lost', 'test'));
};
const asked = ({ fake }: ReturnType<typeof story>): readonly string[] => fake.calls.map(({ provider }) => provider);

test.each([['its provider', breaksOff], ['a link', isLost]])('a stream that breaks within a call of our tools by %s causes an attempt at another provider, since its client saw nothing', async (_whom, breaks) => {
  const told = story({ ...stream, rounds: [breaks, calls, says] });
  expect((await told.run()).result).toBe('answered');
  expect([asked(told), told.ran.length, told.answer.said]).toEqual([['a', 'b', 'b'], 1, ['chunk 0:It is 42.', 'finish 0:!stop']]);
  expect(told.fake.outcomes).toEqual(['a#1 SUPERSEDED', 'b#2 DELIVERED followed', 'b#3 DELIVERED']);
  expect(told.answer.settlement).toMatchObject({ end: { costNanoUsd: '40000' }, attempts: [{ provider: 'a', failed: { class: 'DISCONNECTED' } }, { provider: 'b' }, { provider: 'b' }] });
});

test('so does a later round, as long as no earlier round sent text', async () => {
  const told = story({ ...stream, rounds: [calls, breaksOff, says] });
  expect((await told.run()).result).toBe('answered');
  expect([asked(told), told.ran.length, told.answer.said.at(-1)]).toEqual([['a', 'a', 'b'], 1, 'finish 0:!stop']);
  expect(told.fake.outcomes).toEqual(['a#2 SUPERSEDED', 'a#1 DELIVERED followed', 'b#3 DELIVERED']);
});

test('if all fail the client gets an error that names every attempt, and pays nothing', async () => {
  const told = story({ ...stream, rounds: [breaksOff] });
  expect((await told.run()).result).toBe('refused');
  expect(told.answer.refusal).toMatchObject({ kind: 'attempts', attempts: [{ provider: 'a', failed: { class: 'DISCONNECTED' } }, { provider: 'b', failed: { class: 'DISCONNECTED' } }] });
  expect([told.answer.raw, told.fake.outcomes]).toEqual([[], ['a#1 SUPERSEDED', 'b#2 DISCARDED']]);
});

test.each([
  ['words', [events.role(), events.text('Let me see.'), ...within.slice(1), cut]],
  ["a call of the client's own tools", [...within, chunkOf({ tool_calls: [{ index: 1, ...wire(theirs) }] }), cut]],
])('once the client has %s no other provider is asked', async (_what, played) => {
  const told = story({ ...stream, tools: '[{"type":"function","function":{"name":"get_weather"}}]', rounds: [(call) => call.play(...played), says] });
  expect((await told.run()).result).toBe('cut');
  expect([asked(told), told.answer.said.at(-1)]).toEqual([['a'], 'cut DISCONNECTED']);
});

test('a call that grows without end is kept back only up to a bound', async () => {
  const endless = (call: PlayedCall): void => call.play(...within, chunkOf({ tool_calls: [{ index: 0, function: { arguments: 'x'.repeat(1 << 20) } }] }), cut);
  const told = story({ ...stream, rounds: [endless, says] });
  expect([(await told.run()).result, asked(told), told.answer.raw]).toEqual(['refused', ['a'], []]);
});

test('while a call is written the client gets a comment every ten seconds', async () => {
  const told = story({ ...stream, rounds: [(call) => within.forEach((event) => call.listener.onEvent(event))] });
  void told.run();
  await told.fake.clock.advanceAsync(25_000);
  expect(told.answer.said).toEqual(['keep-alive', 'keep-alive']);
});
