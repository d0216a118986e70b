/** Whatever characters and signs of ours stand in a conversation: each text reaches the provider, once, and as valid JSON. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ANTHROPIC, draftMessages } from './anthropic-messages/request.js';
import { draftConverse } from './bedrock-converse/request.js';
import { composeCohereChat } from './cohere-v2/request.js';
import { draftGenerateContent } from './google-generate-content/request.js';
import { draftOllamaChat } from './ollama/request.js';
import { draftChatBody } from './openai-chat/draft.js';
import { NO_QUIRKS, OPENAI, type ChatQuirks } from './openai-chat/quirks.js';
import type { ChatRequestField } from './openai-chat/request.js';

const FETCHED = new Map([
  ['https://media.test/a.png', { mediaType: 'image/png', base64: 'iVBORw0KGgoAAAANAAAA' }],
  ['https://media.test/a.txt', { mediaType: 'text/plain', base64: Buffer.from('Of \u00910\u0091 a "\u0091 file').toString('base64') }],
]);
const INPUT = { model: 'x/y', stream: true, maxTokens: 100, temperatureMax: 0, maxTokensParam: 'max_tokens', contextWindow: 1_000_000, maxOutputTokens: 8_000, promptTokens: 1_000 };

type Compose = (fields: readonly ChatRequestField[]) => Buffer;
const host = (quirks: Partial<ChatQuirks>): Compose => (fields) => draftChatBody({ ...INPUT, providerModelId: 'm', fields }, { ...NO_QUIRKS, ...quirks }).body(FETCHED);
/** With what their requests may hold beside texts. */
const WIRES: readonly (readonly [name: string, media: readonly string[], compose: Compose])[] = [
  ['anthropic', ['image', 'file'], (fields) => draftMessages({ ...INPUT, providerModelId: 'claude-opus-4-8', fields }, ANTHROPIC).body(FETCHED)],
  ['bedrock', ['image', 'file'], (fields) => draftConverse({ ...INPUT, providerModelId: 'anthropic.claude-opus-4-1', fields }).body(FETCHED)],
  ['google', ['image', 'file'], (fields) => draftGenerateContent({ ...INPUT, providerModelId: 'gemini-3-pro', fields }, { withCallIds: true }).body(FETCHED)],
  ['cohere', ['image'], (fields) => composeCohereChat({ ...INPUT, providerModelId: 'command-a', fields })],
  ['ollama', ['image'], (fields) => draftOllamaChat({ ...INPUT, providerModelId: 'llama', fields }, { keepAlive: '', contextTokensMin: 256 }).body(FETCHED)],
  ['openai', ['image', 'file'], host(OPENAI)],
  ['a strict host', ['image', 'file'], host({ developerAsSystem: true, joinsTexts: true, messageFields: ['role', 'content', 'tool_calls', 'tool_call_id'], shortToolCallIds: true, answersResults: true })],
  ['a host where turns alternate', ['image', 'file'], host({ alternates: true, developerAsSystem: true })],
];

/** What is a sign somewhere on the way, or has more than one way to be written. */
const SIGNS = ['\u0091', '\u00910\u0091', '\\u0091', '"\u009112345678901234567890\u0091"', '@apart0', '\u2028', '\ud800', '😀', '猫', '"', '\\', '\\"', '\n', '\r', '\0', '\u007f', '{', '}', '[', ']', '<|im_end|>', '```json', 'data: [DONE]', '\ufeff', ' ', '\t', '__proto__', '12345678901234567890', '-0', '1e999'];
const sign = fc.constantFrom(...SIGNS);
/** Of these signs; longer than a kilobyte now and then. */
const textOf = (signs: readonly string[]) => {
  const each = fc.constantFrom(...signs);
  const filler = fc.oneof({ weight: 3, arbitrary: fc.constant('') }, fc.tuple(each, fc.constantFrom(300, 1_100, 3_000)).map(([one, times]) => one.repeat(times)));
  return fc.tuple(fc.array(each, { maxLength: 4 }), filler, fc.array(each, { maxLength: 4 })).map(([before, long, after]) => (token: string): string => `${before.join('')}${token}${long}${after.join('')}`);
};
type Text = (token: string) => string;

type Part = { readonly words: Text } | { readonly kind: string; readonly base64: string };

const PICTURE = `data:image/png;base64,${Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(3_001, 7)]).toString('base64')}`;
function mediaPart(kind: string, base64: string): object {
  if (kind === 'image') return { type: 'image_url', image_url: { url: PICTURE } };
  if (kind === 'image address') return { type: 'image_url', image_url: { url: 'https://media.test/a.png' } };
  return { type: 'file', file: { filename: 'a.txt', file_data: kind === 'file' ? `data:text/plain;base64,${base64}` : 'https://media.test/a.txt' } };
}

const conversationOf = (signs: readonly string[]) => {
  const text = textOf(signs);
  // A sign in a text has nothing taken out of any; one in a file must not matter.
  const file = fc.oneof(fc.constant('\u00910\u0091'), sign).map((each) => Buffer.from(`Words ${each} of a file.`).toString('base64'));
  const part: fc.Arbitrary<Part> = fc.oneof(text.map((words) => ({ words })), fc.tuple(fc.constantFrom('image', 'image address', 'file', 'file address'), file).map(([kind, base64]) => ({ kind, base64 })));
  const turn = fc.oneof(
    fc.record({ role: fc.constant('user' as const), parts: fc.array(part, { minLength: 1, maxLength: 3 }) }),
    fc.record({ role: fc.constant('both' as const), asked: text, answered: text }),
    fc.record({ role: fc.constant('calls' as const), words: fc.option(text), calls: fc.array(fc.tuple(text, text, fc.boolean()), { minLength: 1, maxLength: 2 }) }),
  );
  return fc.record({ system: fc.option(text), turns: fc.array(turn, { minLength: 1, maxLength: 4 }), last: text, isEscaped: fc.boolean() });
};
const conversation = fc.oneof(conversationOf(SIGNS), conversationOf(SIGNS.filter((each) => !each.includes('\u0091') && !each.includes('u0091'))));
type Conversation = typeof conversation extends fc.Arbitrary<infer Told> ? Told : never;

/** Messages as JSON, with the numbers that their texts hold. */
function written({ system, turns, last, isEscaped }: Conversation, taken: readonly string[]): { readonly json: string; readonly tokens: readonly string[] } {
  const tokens: string[] = [];
  const told = (of: Text): string => {
    tokens.push(`T${String(tokens.length)}T`);
    return of(tokens.at(-1) ?? '');
  };
  const messages: object[] = system === null ? [] : [{ role: 'system', content: told(system) }];
  let calls = 0;
  for (const each of turns) {
    if (each.role === 'both') messages.push({ role: 'user', content: told(each.asked) }, { role: 'assistant', content: told(each.answered) });
    else if (each.role === 'user') {
      const parts = each.parts.flatMap((one) => ('words' in one ? [{ type: 'text', text: told(one.words) }] : taken.includes(one.kind.split(' ')[0] ?? '') ? [mediaPart(one.kind, one.base64)] : []));
      if (parts.length > 0) messages.push({ role: 'user', content: parts });
    } else {
      const made = each.calls.map(([given, result, isJson]) => ({ id: `call_${String((calls += 1))}`, args: JSON.stringify({ text: told(given), n: 1 }), result: isJson ? JSON.stringify({ result: told(result) }) : told(result) }));
      messages.push({ role: 'user', content: told((token) => token) });
      messages.push({ role: 'assistant', content: each.words === null ? null : told(each.words), tool_calls: made.map(({ id, args }) => ({ id, type: 'function', function: { name: 'f', arguments: args } })) });
      for (const { id, result } of made) messages.push({ role: 'tool', tool_call_id: id, content: result });
    }
  }
  messages.push({ role: 'user', content: told(last) });
  const json = JSON.stringify(messages);
  return { json: isEscaped ? json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`) : json, tokens };
}

const TOOLS = Buffer.from('[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"text":{"type":"string"},"n":{"const":1234567890123456789}}}}}]');

describe.each(WIRES)('%s', (_name, taken, compose) => {
  test('is sent each text once', () => {
    fc.assert(fc.property(conversation, (told) => {
      const { json, tokens } = written(told, taken);
      const body = compose([{ name: 'messages', value: Buffer.from(json) }, { name: 'tools', value: TOOLS }]).toString('utf8');
      JSON.parse(body);
      return tokens.every((token) => body.split(token).length === 2);
    }), { numRuns: 100 });
  });
});

test('texts hold what the wires use as signs', () => {
  expect(fc.sample(conversation, 200).some((told) => written(told, ['file']).json.includes('\u0091'))).toBe(true);
});
