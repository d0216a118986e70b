import { expect, test } from '@jest/globals';
import type { ChatRequest } from './chat-request.js';
import { callerWith, plannedAt, planWith } from '../testing/callers.js';
import { events, type PlayedCall } from '../testing/neighbours.js';
import { chunkOf, ours, story, streaming } from '../testing/rounds-story.js';

const CREDENTIAL = { accountId: 'acct_1', provider: 'a', handle: 'cred_1', last4: '', zdr: false, createdAt: '1' };
const calls = (text: string) => chunkOf({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'code_exec', arguments: text } }] });

const callsOf = (index: number, id: string, more: object = {}) => chunkOf({ tool_calls: [{ index, id, type: 'function', function: { name: 'code_exec', arguments: '{}' }, ...more }] });
/** Is no content, and therefore waits for some. */
const figuresOf = (text: string) => ({ event: 'chunk' as const, chunk: { choices: Buffer.from(JSON.stringify([{ index: 0, delta: {}, logprobs: { content: [], text }, finish_reason: null }])), content: false, finish: false } });

/** A stream on the account's own credential, with room for `roomBytes` of what is kept of it. */
function onOwn(roomBytes: number, baseUrl: string, rounds: readonly ((call: PlayedCall) => void)[], request: Partial<ChatRequest> = {}) {
  const { fake, answer, turn, run } = story({ request: { stream: true, ...request }, rounds });
  fake.plan = planWith([plannedAt('a', { byok: true })]);
  let taken = 0;
  Object.assign(turn, { caller: callerWith({ account: { providerKeys: [{ ...CREDENTIAL, baseUrl }] } }), takeRoom: (bytes: number) => (taken += bytes) <= roomBytes });
  return { fake, answer, run, taken: () => taken };
}

/** Hidden from the client, which therefore sets no pace. */
const endless = (call: PlayedCall): void => {
  call.listener.onEvent(events.role());
  for (let i = 0; i < 64 && !call.isCancelled; i += 1) call.listener.onEvent(calls('x'.repeat(65_536)));
};

test('a call of our tools without end, from an account’s own server, is broken off where its room ends', async () => {
  const { fake, answer, run, taken } = onOwn(2_000_000, 'https://example.com/v1', [endless]);
  expect(await run()).toMatchObject({ result: 'refused' });
  expect([fake.calls.length, fake.calls[0]?.isCancelled, fake.outcomes]).toEqual([1, true, ['a#1 DISCARDED']]);
  expect(answer.refusal).toMatchObject({ kind: 'attempts', attempts: [{ failed: { class: 'GARBAGE' } }] });
  expect(taken()).toBeLessThan(2_100_000);
});

test('so is text that is kept for the next round, whose client has seen it', async () => {
  const says = (call: PlayedCall): void => {
    for (let i = 0; i < 64 && !call.isCancelled; i += 1) call.listener.onEvent(events.text('x'.repeat(65_536)));
  };
  const { answer, run, taken } = onOwn(2_000_000, 'https://example.com/v1', [says]);
  expect(await run()).toMatchObject({ result: 'cut' });
  expect(answer.said.at(-1)).toBe('cut GARBAGE');
  expect(taken()).toBeLessThan(2_100_000);
});

test.each([
  ['of chunks without content', () => figuresOf('x'.repeat(65_536))],
  ['of ever so small ones', () => figuresOf('')],
  ['of ids of calls of our tools', (at: number) => callsOf(at % 128, 'x'.repeat(65_536))],
  ['of what belongs to such calls', (at: number) => callsOf(at % 128, 'call', { extra_content: { signature: 'x'.repeat(65_536) } })],
])('so is a stream %s', async (_what, chunk) => {
  let sent = 0;
  const floods = (call: PlayedCall): void => {
    call.listener.onEvent(events.role());
    for (; sent < 20_000 && !call.isCancelled; sent += 1) call.listener.onEvent(chunk(sent));
  };
  const { fake, run, taken } = onOwn(2_000_000, 'https://example.com/v1', [floods]);
  expect(await run()).toMatchObject({ result: 'refused' });
  expect(fake.calls[0]?.isCancelled).toBe(true);
  expect(taken()).toBeLessThan(2_100_000);
});

test('what each round keeps is counted once', async () => {
  const [first, second] = ['Let me see. '.repeat(100), 'It is 42. '.repeat(100)];
  const { answer, run, taken } = onOwn(10_000, 'https://example.com/v1', [(call) => call.play(events.role(), events.text(first), ...streaming(ours()).slice(1)), (call) => call.play(events.role(), events.text(second), events.finish(), events.end())]);
  expect(await run()).toMatchObject({ result: 'answered' });
  expect(answer.said.at(-1)).toContain('!stop');
  expect(taken()).toBe(first.length + ours().id.length + ours().arguments.length + second.length);
});

test('answers of a provider that is paid for are given whatever the room', async () => {
  const { answer, run, taken } = onOwn(0, '', [(call) => call.play(events.role(), events.text('It is 42.'), events.finish(), events.end())]);
  expect(await run()).toMatchObject({ result: 'answered' });
  expect([answer.said.at(-1), taken()]).toEqual([expect.stringContaining('!stop'), 0]);
});
