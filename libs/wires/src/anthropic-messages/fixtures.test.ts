/** The maker's own client reads the fixtures as we do: they are the wire, not our idea of it. */
import { readFileSync } from 'node:fs';
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { gather, replay } from '../testing/replay.js';
import { readMessagesAnswer } from './response.js';
import { createMessagesTransducer } from './stream.js';

const fixture = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}`, import.meta.url));
const ASKED = { model: 'claude-sonnet-4-6', max_tokens: 64, messages: [{ role: 'user' as const, content: 'Hi' }] };
const REASONS: Readonly<Record<string, string>> = { end_turn: 'stop', max_tokens: 'length', tool_use: 'tool_calls', refusal: 'content_filter' };

let provider: FakeProvider;
let client: Anthropic;
beforeAll(async () => {
  provider = await startFakeProvider();
  client = new Anthropic({ apiKey: 'sk-ant-test', baseURL: provider.baseUrl.replace(/\/v1$/, ''), maxRetries: 0 });
});
afterAll(() => provider.stop());

/** Text, calls and thinking of the client's message, in our terms. */
function told(message: Anthropic.Message): object {
  const of = <Type extends Anthropic.ContentBlock['type']>(type: Type) => message.content.filter((block): block is Extract<Anthropic.ContentBlock, { type: Type }> => block.type === type);
  return {
    content: of('text').map((block) => block.text).join(''),
    reasoning: of('thinking').map((block) => block.thinking).join(''),
    calls: of('tool_use').map((block) => ({ id: block.id, name: block.name, input: block.input })),
    reason: REASONS[message.stop_reason ?? ''],
    output: message.usage.output_tokens,
    signatures: [...of('thinking').map((block) => block.signature), ...of('redacted_thinking').map((block) => block.data)],
  };
}

const detailsOf = (holder: object): string[] => ((holder as { reasoning_details?: { signature?: string; data?: string }[] }).reasoning_details ?? []).map((detail) => detail.signature ?? detail.data ?? '');

test.each(['text', 'tools', 'thinking-crlf', 'json-tool', 'refusal'])('stream %s', async (name) => {
  provider.enqueue({ chunks: [fixture(`${name}.sse`)] });
  const message = await client.messages.stream(ASKED).finalMessage();
  const { events, summary } = replay(() => createMessagesTransducer('seed', false), [fixture(`${name}.sse`)]);
  const ours = gather(events).get(0);
  expect(told(message)).toEqual({
    content: ours?.content,
    reasoning: ours?.reasoning,
    calls: ours?.calls.map((call) => ({ id: call.id, name: call.name, input: JSON.parse(call.arguments) as unknown })),
    reason: ours?.reasons[0],
    output: (summary.usage?.tokens.outputText ?? 0) + (summary.usage?.tokens.outputReasoning ?? 0),
    signatures: events.flatMap((event) => (event.type === 'chunk' ? event.choices.flatMap(({ delta }) => detailsOf(delta)) : [])),
  });
});

test('whole answer', async () => {
  const body = fixture('answer.json');
  provider.enqueue({ body: JSON.parse(body.toString()) as object });
  const message = await client.messages.create(ASKED);
  const result = readMessagesAnswer(body, 'seed', false);
  if (!result.ok) throw new Error('no answer');
  const [choice] = JSON.parse(String(result.answer.choices)) as { message: { content: string; reasoning_content: string; tool_calls: { id: string; function: { name: string; arguments: string } }[] }; finish_reason: string }[];
  expect(told(message)).toEqual({
    content: choice?.message.content,
    reasoning: choice?.message.reasoning_content,
    calls: choice?.message.tool_calls.map((call) => ({ id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) as unknown })),
    reason: choice?.finish_reason,
    output: 503,
    signatures: detailsOf(choice?.message ?? {}),
  });
});

test.each([
  [401, 'authentication_error', Anthropic.AuthenticationError],
  [404, 'not_found_error', Anthropic.NotFoundError],
  [429, 'rate_limit_error', Anthropic.RateLimitError],
  [529, 'overloaded_error', Anthropic.InternalServerError],
])('refusal %d', async (status, type, expected) => {
  provider.enqueue({ status, body: { type: 'error', error: { type, message: 'x' } } });
  await expect(client.messages.create(ASKED)).rejects.toBeInstanceOf(expected);
});

test('overload inside a 200', async () => {
  provider.enqueue({ chunks: ['event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'] });
  await expect(client.messages.stream(ASKED).finalMessage()).rejects.toMatchObject({ type: 'overloaded_error' });
});
