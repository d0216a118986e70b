import { describe, expect, test } from '@jest/globals';
import { ANTHROPIC, draftMessages, MINIMAX } from './anthropic-messages/request.js';
import { readMessagesAnswer } from './anthropic-messages/response.js';
import { draftConverse } from './bedrock-converse/request.js';
import type { ChatInput } from './chat-request.js';
import { composeCohereChat } from './cohere-v2/request.js';
import { draftGenerateContent } from './google-generate-content/request.js';
import { draftOllamaChat } from './ollama/request.js';
import { NO_QUIRKS } from './openai-chat/quirks.js';
import { composeChatBody } from './openai-chat/request.js';

/** What the models of each vendor gave their client to bring back, in one conversation that met them all. */
const STATE = { anthropic: ['anthropic-signature', 'anthropic-redacted'], google: ['google-signature-of-call', 'google-signature-of-text'], openai: ['openai-encrypted'], minimax: ['minimax-signature'] } as const;
type Vendor = keyof typeof STATE;

const MESSAGES = [
  { role: 'user', content: 'Hi' },
  {
    role: 'assistant',
    content: 'Let me look.',
    reasoning_content: 'Hm.',
    reasoning_details: [
      { type: 'reasoning.text', text: 'Hm.', signature: STATE.anthropic[0], format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.encrypted', data: STATE.anthropic[1], format: 'anthropic-claude-v1', index: 1 },
      { type: 'reasoning.encrypted', data: STATE.openai[0], format: 'openai-responses-v1', index: 2 },
      { type: 'reasoning.text', text: 'Hm.', signature: STATE.minimax[0], format: 'minimax-v1', index: 3 },
    ],
    extra_content: { google: { thought_signature: STATE.google[1] } },
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' }, extra_content: { google: { thought_signature: STATE.google[0] } } }],
  },
  { role: 'tool', tool_call_id: 'call_1', content: '4' },
];
const TOOLS = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: { a: { type: 'integer' } } } } }];

const inputFor = (providerModelId: string): ChatInput => ({ providerModelId, stream: true, temperatureMax: 1, fields: Object.entries({ messages: MESSAGES, tools: TOOLS, reasoning_effort: 'high' }).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) })) });
const none = new Map<never, never>();

describe('a conversation that goes on at another vendor', () => {
  test.each<[string, (input: ChatInput) => Buffer, string, readonly string[]]>([
    ['Anthropic', (input) => draftMessages({ ...input, maxOutputTokens: 0 }, ANTHROPIC).body(none), 'claude-sonnet-4-5-20250929', STATE.anthropic],
    ['MiniMax, on the same wire', (input) => draftMessages({ ...input, maxOutputTokens: 0 }, MINIMAX).body(none), 'MiniMax-M2', STATE.minimax],
    ['Claude on Bedrock', (input) => draftConverse({ ...input, maxOutputTokens: 0 }).body(none), 'us.anthropic.claude-sonnet-4-20250514-v1:0', STATE.anthropic],
    ['another model on Bedrock', (input) => draftConverse({ ...input, maxOutputTokens: 0 }).body(none), 'meta.llama3-3-70b-instruct-v1:0', []],
    ['Google', (input) => draftGenerateContent(input, { withCallIds: true }).body(none), 'gemini-3-flash-preview', STATE.google],
    ['Cohere', composeCohereChat, 'command-a-03-2025', []],
    ['Ollama', (input) => draftOllamaChat(input, { keepAlive: '', contextTokensMin: 8_192 }).body(none), 'llama3.3:70b', []],
    ['a host of the OpenAI wire', (input) => composeChatBody({ ...input, maxTokensParam: '', temperatureMax: 0 }, NO_QUIRKS), 'gpt-5.5', []],
  ])('%s gets its own state back and that of nobody else', (_name, compose, model, own) => {
    const sent = compose(inputFor(model)).toString();
    expect(sent).toContain('Let me look.');
    const all = (Object.keys(STATE) as Vendor[]).flatMap((vendor): readonly string[] => STATE[vendor]);
    expect(all.filter((secret) => sent.includes(secret))).toEqual(own);
  });

  test.each([ANTHROPIC, MINIMAX])('what a host of Anthropic’s wire signed goes back to its own maker: $thoughtFormat', ({ thoughtFormat }) => {
    const answer = { content: [{ type: 'thinking', thinking: 'Hm.', signature: 'signed' }, { type: 'text', text: 'Yes.' }], stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 1 } };
    const read = readMessagesAnswer(Buffer.from(JSON.stringify(answer)), 'seed', false, thoughtFormat);
    const [choice] = JSON.parse(String(read.ok && read.answer.choices)) as { message: object }[];
    const messages = Buffer.from(JSON.stringify([{ role: 'user', content: 'Hi' }, choice?.message, { role: 'user', content: 'And?' }]));
    const takers = [ANTHROPIC, MINIMAX].filter((quirks) => draftMessages({ providerModelId: 'm', stream: false, temperatureMax: 1, maxOutputTokens: 0, fields: [{ name: 'messages', value: messages }] }, quirks).body(none).includes('signed'));
    expect(takers.map((quirks) => quirks.thoughtFormat)).toEqual([thoughtFormat]);
  });
});
