/** Numbers beyond 2^53 in schemas of tools and answers, such as ids in an enum, reach the provider with every digit. */
import { expect, test } from '@jest/globals';
import { draftMessages, ANTHROPIC } from './anthropic-messages/request.js';
import { draftConverse } from './bedrock-converse/request.js';
import { composeCohereChat } from './cohere-v2/request.js';
import { draftGenerateContent } from './google-generate-content/request.js';
import { draftOllamaChat } from './ollama/request.js';
import { NO_QUIRKS, type ChatQuirks } from './openai-chat/quirks.js';
import { composeChatBody } from './openai-chat/request.js';

type Fields = Parameters<typeof composeCohereChat>[0]['fields'];

const IDS = ['9007199254740993', '-9223372036854775808', '18446744073709551615'];
const SCHEMA = `{"type":"object","properties":{"id":{"type":"integer","enum":[${IDS.join(',')}]}},"required":["id"]}`;
const TOOLS = `[{"type":"function","function":{"name":"pick","parameters":${SCHEMA}},"cache_control":{"type":"ephemeral"}},{"type":"function","function":{"name":"other"}}]`;
const FORMAT = `{"type":"json_schema","json_schema":{"name":"a","schema":${SCHEMA}}}`;
const LONG = 'word '.repeat(1_000);

const FIELDS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['tools', { tools: TOOLS }],
  ['a tool that must be called', { tools: TOOLS, tool_choice: '{"type":"function","function":{"name":"pick"}}' }],
  ['a schema', { response_format: FORMAT }],
  ['a schema beside tools', { response_format: FORMAT, tools: '[{"type":"function","function":{"name":"f"}}]' }],
];

const fieldsOf = (fields: Readonly<Record<string, string>>): Fields => Object.entries({ messages: JSON.stringify([{ role: 'user', content: LONG }]), ...fields }).map(([name, value]) => ({ name, value: Buffer.from(value) }));
const common = (fields: Fields, providerModelId: string) => ({ providerModelId, stream: false, temperatureMax: 0, fields, promptTokens: 10, contextWindow: 200_000, maxOutputTokens: 64_000, maxTokensParam: '' });
const chat = (quirks: Partial<ChatQuirks>) => (fields: Fields) => composeChatBody(common(fields, 'm'), { ...NO_QUIRKS, ...quirks });

const WIRES: readonly (readonly [string, (fields: Fields) => Buffer])[] = [
  ['anthropic-messages', (fields) => draftMessages(common(fields, 'claude-sonnet-4-5-20250929'), ANTHROPIC).body(new Map())],
  ['anthropic-messages without a setting for JSON', (fields) => draftMessages(common(fields, 'claude-3-5-haiku-20241022'), ANTHROPIC).body(new Map())],
  ['bedrock-converse', (fields) => draftConverse(common(fields, 'us.anthropic.claude-sonnet-4-20250514-v1:0')).body(new Map())],
  ['bedrock-converse with a setting for JSON', (fields) => draftConverse(common(fields, 'global.anthropic.claude-opus-4-8')).body(new Map())],
  ['google-generate-content', (fields) => draftGenerateContent(common(fields, 'gemini-3.8-flash'), { withCallIds: true }).body(new Map())],
  ['cohere-v2', (fields) => composeCohereChat(common(fields, 'command-a-03-2025'))],
  ['ollama', (fields) => draftOllamaChat(common(fields, 'qwen3:8b'), { keepAlive: '', contextTokensMin: 4_096 }).body(new Map())],
  ['openai-chat', chat({})],
  ['openai-chat with marks of a cache', chat({ takesCacheMarks: true })],
  ['openai-chat with another word for a named tool', chat({ toolChoice: 'any' })],
];

test.each(WIRES.flatMap(([wire, compose]) => FIELDS.map(([what, fields]) => [wire, what, fields, compose] as const)))('%s: %s', (_wire, _what, fields, compose) => {
  const sent = compose(fieldsOf(fields)).toString();
  expect(() => JSON.parse(sent) as unknown).not.toThrow();
  expect(sent).toContain(LONG);
  expect(sent).toContain(`[${IDS.join(',')}]`);
  expect(sent).not.toContain('\u0091');
});
