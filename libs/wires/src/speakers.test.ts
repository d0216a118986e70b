/** Several people in one conversation can be told apart on every wire. */
import { describe, expect, test } from '@jest/globals';
import { ANTHROPIC, draftMessages } from './anthropic-messages/request.js';
import { draftConverse } from './bedrock-converse/request.js';
import { composeCohereChat } from './cohere-v2/request.js';
import { draftGenerateContent } from './google-generate-content/request.js';
import { draftOllamaChat } from './ollama/request.js';
import { NO_QUIRKS } from './openai-chat/quirks.js';
import { composeChatBody, type ChatRequestField } from './openai-chat/request.js';

const INPUT = { model: 'x/y', stream: true, maxTokens: 100, temperatureMax: 0, maxTokensParam: 'max_tokens', contextWindow: 1_000_000, maxOutputTokens: 8_000, promptTokens: 1_000 };
type Compose = (fields: readonly ChatRequestField[]) => Buffer;
const WIRES: readonly (readonly [name: string, compose: Compose])[] = [
  ['anthropic', (fields) => draftMessages({ ...INPUT, providerModelId: 'claude-opus-4-1', fields }, ANTHROPIC).body(new Map())],
  ['bedrock', (fields) => draftConverse({ ...INPUT, providerModelId: 'anthropic.claude-opus-4-1', fields }).body(new Map())],
  ['google', (fields) => draftGenerateContent({ ...INPUT, providerModelId: 'gemini-3-pro', fields }, { withCallIds: true }).body(new Map())],
  ['cohere', (fields) => composeCohereChat({ ...INPUT, providerModelId: 'command-a', fields })],
  ['ollama', (fields) => draftOllamaChat({ ...INPUT, providerModelId: 'llama', fields }, { keepAlive: '', contextTokensMin: 256 }).body(new Map())],
  ['a host whose messages have no name', (fields) => composeChatBody({ ...INPUT, providerModelId: 'm', fields }, { ...NO_QUIRKS, messageFields: ['role', 'content'] })],
  ['a host where turns alternate', (fields) => composeChatBody({ ...INPUT, providerModelId: 'm', fields }, { ...NO_QUIRKS, alternates: true, messageFields: ['role', 'content'] })],
];
const PICTURE = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA' } };
const told = (compose: Compose, messages: readonly object[]): string => compose([{ name: 'messages', value: Buffer.from(JSON.stringify(messages)) }]).toString();

describe.each(WIRES)('%s', (_name, compose) => {
  test('is told who says what', () => {
    const long = 'x'.repeat(3_000);
    const body = told(compose, [
      { role: 'user', name: 'Alice', content: 'Hi' },
      { role: 'user', name: 'Bob', content: [{ type: 'text', text: long }, { type: 'text', text: 'more' }] },
      { role: 'assistant', content: 'Hello' },
      { role: 'user', name: 'Eve', content: [PICTURE, { type: 'text', text: 'Look' }] },
      { role: 'user', content: 'Me' },
    ]);
    expect(['Alice: Hi', `Bob: ${long}`, 'more', 'Eve:', 'Look', 'Me'].map((text) => body.includes(text))).toEqual([true, true, true, true, true, true]);
    expect(body).not.toContain('"name"');
    expect([body.indexOf('Eve:') < body.indexOf('iVBORw0KGgo') || body.includes('"images"'), body.includes(': Me'), body.includes('Eve: Look')]).toEqual([true, false, false]);
  });

  test('is told nothing of those who say nothing', () => {
    const messages = [{ role: 'user', content: 'Hi' }, { role: 'user', name: 'Alice', content: ' ' }, { role: 'user', name: 'Alice', content: [{ type: 'text', text: '' }] }, { role: 'user', name: '', content: 'Ho' }];
    expect(told(compose, messages)).toBe(told(compose, messages.map(({ role, content }) => ({ role, content }))));
  });
});

test('where messages have names they stay names', () => {
  const messages = [{ role: 'user', name: 'Alice', content: 'Hi' }];
  expect(JSON.parse(told((fields) => composeChatBody({ ...INPUT, providerModelId: 'm', fields }, { ...NO_QUIRKS, messageFields: ['role', 'content', 'name'] }), messages))).toMatchObject({ messages });
});
