import { describe, expect, test } from '@jest/globals';
import { createMessagesTransducer } from './anthropic-messages/stream.js';
import type { StreamTransducer } from './canonical.js';
import { createCohereTransducer } from './cohere-v2/stream.js';
import { createGenerateContentTransducer } from './google-generate-content/stream.js';
import { createChatTransducer } from './openai-chat/stream.js';
import { SSE_EVENT_BYTES_MAX } from './sse.js';
import { everySplit, gather, replay } from './testing/replay.js';

/** What hosts and what stands before them answer with 200 to a request for a stream, where it is none. */
const openai = (): StreamTransducer => createChatTransducer('seed');
const errors: readonly (readonly [string, () => StreamTransducer, string, object])[] = [
  ['OpenAI wire, overload', openai, '{"error":{"message":"Overloaded","code":503}}', { class: 'PROVIDER_ERROR', status: 503 }],
  ['OpenAI wire, no credit', openai, '\n {\n"error": {"message":"You have none","type":"insufficient_quota"}\n}\n', { class: 'CREDENTIAL' }],
  ['OpenAI wire, length', openai, '{"object":"error","message":"maximum context length is 4096","code":400}', { class: 'CONTEXT_LENGTH', publicMessage: 'maximum context length is 4096' }],
  ['Anthropic', () => createMessagesTransducer('seed', false), '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', { class: 'PROVIDER_ERROR', status: 529 }],
  ['Google', () => createGenerateContentTransducer('seed'), '[{"error":{"code":429,"message":"Slow down","status":"RESOURCE_EXHAUSTED"}}]', { class: 'RATE_LIMITED', status: 429 }],
  ['Cohere', () => createCohereTransducer('seed'), '{"message":"too many tokens"}', { class: 'PROVIDER_ERROR' }],
];

describe('a body that is no stream', () => {
  test.each(errors)('%s: its error is told for what it is, however its bytes are split', (_name, create, body, failure) => {
    for (const parts of [[Buffer.from(body)], ...everySplit(Buffer.from(body))]) expect(replay(create, parts).events).toEqual([{ type: 'failed', failure: expect.objectContaining(failure) }]);
  });

  test('a whole answer is one, as it was paid for', () => {
    const calls = ['a', 'b'].map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } }));
    const body = Buffer.from(JSON.stringify({ id: 'x', object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: 'Héllo', tool_calls: calls }, finish_reason: 'tool_calls' }], usage: { prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 } }, null, 2));
    for (const parts of [[body], ...everySplit(body)]) {
      const { events, summary } = replay(openai, parts);
      expect(gather(events).get(0)).toMatchObject({ content: 'Héllo', calls: [{ id: 'a', name: 'f' }, { id: 'b', name: 'f' }], reasons: ['tool_calls'] });
      expect(events.at(-1)).toEqual({ type: 'done' });
      expect(summary.usage?.tokens).toMatchObject({ inputUncached: 5, outputText: 9 });
    }
  });

  test.each([['cut off', '{"choices":[{"index":0,"mess'], ['lines of JSON', '{"choices":[]}\n{"choices":[]}\n']])('%s is garbage', (_name, body) => {
    expect(replay(openai, [Buffer.from(body)]).events).toMatchObject([{ type: 'failed', failure: { class: 'GARBAGE' } }]);
  });

  test('nothing at all is still an answer that never came, and memory is bounded', () => {
    expect(replay(openai, []).events).toMatchObject([{ type: 'failed', failure: { class: 'DISCONNECTED' } }]);
    expect(openai().push(Buffer.alloc(SSE_EVENT_BYTES_MAX + 1, '{'))).toMatchObject([{ type: 'failed', failure: { class: 'GARBAGE' } }]);
  });
});
