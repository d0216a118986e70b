/** Long strings in messages are parsed only in part, which must not change anything that is read of a request. */
import { describe, expect, test } from '@jest/globals';
import { LONG_STRING_BYTES } from '../../wire/json-long-text.js';
import { parseJsonObject, type ParsedJson } from '../../wire/json-scan.js';
import { checkMessages, type MessageFacts } from './messages.js';
import { promptWindow } from './prompt-window.js';
import { readChatRequest } from './schema.js';

/** A seeded generator of numbers below a bound. */
function numbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

/** JSON text of a string of about this many bytes, with characters and escapes of all lengths. */
function longJson(next: (bound: number) => number, bytes: number): string {
  const pieces = ['abcd ', 'x', 'é', '字', '😀', '\\n', '\\"', '\\\\', '\\u0041', '\\ud83d\\ude00', '\\ud83d', '\\u00e9', '\\/', '{', 'the box at the junction '.repeat(20)];
  // Long runs of a few kinds of characters, as in real texts.
  let json = '';
  while (json.length < bytes) {
    const kinds = Array.from({ length: 1 + next(3) }, () => pieces[next(pieces.length)] ?? '');
    for (let i = 0; i < 200; i += 1) json += kinds[next(kinds.length)] ?? '';
  }
  return json;
}

const parsed = (body: string, shortens: boolean): ParsedJson => {
  const json = parseJsonObject(Buffer.from(body), shortens);
  if (json.kind === 'invalid') throw new Error(json.reason);
  return json;
};

const factsOf = ({ object, wholeLengths }: ParsedJson): Omit<MessageFacts, 'wholeLengths'> => {
  const facts: MessageFacts & { wholeLengths?: unknown } = checkMessages(object['messages'], wholeLengths);
  delete facts.wholeLengths;
  return facts;
};

const sizeOf = (value: unknown): number => JSON.stringify(value).length;

describe('long strings of messages', () => {
  test('are read like whole ones, whatever they contain', () => {
    const next = numbers(7);
    for (let round = 0; round < 20; round += 1) {
      const long = longJson(next, LONG_STRING_BYTES + next(60_000));
      const other = longJson(next, next(30_000));
      const bodies = [
        `{"messages":[{"role":"system","content":"${other}"},{"role":"user","content":"${long}"}]}`,
        `{"messages":[{"content":"${long}","role":"user"},{"role":"assistant","content":"${other}"},{"role":"user","content":[{"type":"text","text":"${other}"},{"text":"${long}","type":"text"}]}]}`,
        `{"messages":[{"role":"user","content":[{"type":"text","text":"${long}"},{"type":"text","text":"${long}"}]}],"model":"x"}`,
      ];
      for (const body of bodies) {
        const short = parsed(body, true);
        const whole = parsed(body, false);
        expect(factsOf(short)).toEqual(factsOf(whole));
        expect(promptWindow(short.object['messages'])).toBe(promptWindow(whole.object['messages']));
        expect([...short.fields]).toEqual([...whole.fields]);
      }
    }
  });

  test('are refused if the parser refuses them', () => {
    const next = numbers(11);
    const spoilers = ['\n', '\u0000', '\u001f', '\\', '\\x', '\\u12g4', '\\u00', '\t', '"', '\u007f', '\u2028', '\\\\', 'é'];
    let refused = 0;
    for (let round = 0; round < 200; round += 1) {
      const long = longJson(next, LONG_STRING_BYTES + 2_000);
      const at = next(3) === 0 ? next(40) : next(3) === 0 ? long.length - next(40) : next(long.length);
      const body = `{"messages":[{"role":"user","content":"${long.slice(0, at)}${spoilers[next(spoilers.length)] ?? ''}${long.slice(at)}"}]}`;
      let isJson = true;
      try {
        JSON.parse(body);
      } catch {
        isJson = false;
        refused += 1;
      }
      expect(parseJsonObject(Buffer.from(body), true).kind).toBe(isJson ? 'ok' : 'invalid');
    }
    expect(refused).toBeGreaterThan(60);
  });

  test('are not copied: of a megabyte only both ends are parsed, and of media nothing', () => {
    const text = 'a line of text\n'.repeat(70_000);
    const data = 'QUJD'.repeat(250_000);
    const messages = [
      { role: 'user', content: text },
      { role: 'user', content: [{ type: 'text', text }, { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }, { type: 'input_audio', input_audio: { data, format: 'wav' } }, { type: 'file', file: { filename: 'a.pdf', file_data: data } }] },
    ];
    const short = parsed(JSON.stringify({ messages }), true);
    expect(sizeOf(short.object['messages'])).toBeLessThan(2 * 24_000 + 1_000);
    expect(factsOf(short)).toEqual(factsOf(parsed(JSON.stringify({ messages }), false)));
    expect(checkMessages(short.object['messages'], short.wholeLengths).inlineMediaChars).toBe(3 * data.length + 'data:image/png;base64,'.length);
  });

  test('are not confused with strings that look like their shortened form', () => {
    const long = `data:${'x'.repeat(40_000)}`;
    const ends = parsed(JSON.stringify({ messages: [{ role: 'user', content: long }] }), true).object['messages'] as readonly { content: string }[];
    const look = ends[0]?.content ?? '';
    expect(look.length).toBeLessThan(long.length);
    const messages = [{ role: 'user', content: long }, { role: 'user', content: [{ type: 'image_url', image_url: { url: look } }] }];
    // Media count no tokens by their length, so a text must not be mistaken for media.
    expect(checkMessages(parsed(JSON.stringify({ messages }), true).object['messages']).inlineMediaChars).toBe(look.length);
    expect(factsOf(parsed(JSON.stringify({ messages }), true))).toEqual(factsOf(parsed(JSON.stringify({ messages }), false)));
  });

  test('are sent to the provider unchanged, also if nulls beside them are removed', () => {
    const content = 'say "this"\n'.repeat(5_000);
    const nameSession = (_id: string | undefined, opening: string): string => opening;
    for (const refusal of [undefined, null]) {
      const messages = [{ role: 'user', content }, { role: 'assistant', content, ...(refusal === null ? { refusal } : {}) }, { role: 'user', content: [{ type: 'text', text: content }] }];
      const read = readChatRequest(Buffer.from(JSON.stringify({ model: 'auto', messages })), 'A', nameSession);
      if (read.kind === 'invalid') throw new Error('refused');
      const sent: unknown = JSON.parse(String(read.request.fields.find(({ name }) => name === 'messages')?.value));
      expect(sent).toEqual([{ role: 'user', content }, { role: 'assistant', content }, { role: 'user', content: [{ type: 'text', text: content }] }]);
      expect(read.request.promptBytes).toBe(JSON.stringify(sent).length);
    }
  });

  test('of many messages are parsed in pieces with the same result', () => {
    const next = numbers(23);
    for (let round = 0; round < 10; round += 1) {
      const messages: string[] = [];
      for (let bytes = 0; bytes < 200_000; bytes += messages.at(-1)?.length ?? 0) {
        const text = longJson(next, next(4) === 0 ? next(50_000) : next(9_000));
        const role = next(2) === 0 ? 'user' : 'assistant';
        messages.push([`{"role":"${role}","content":"${text}"}`, `{"role":"user","content":[{"type":"text","text":"${text}"}, {"type":"text","text":"${text}"}]}`, ' { "role" : "user" , "content" : "," } ', `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"${text}"}}]}`][next(4)] ?? '');
      }
      const body = `{"model":"x","messages":[${messages.join(next(2) === 0 ? ',' : ' ,\n')}],"tools":[${'{"type":"function"},'.repeat(9_000)}{}],"temperature":1}`;
      const short = parsed(body, true);
      const whole = parsed(body, false);
      expect(factsOf(short)).toEqual(factsOf(whole));
      expect(promptWindow(short.object['messages'])).toBe(promptWindow(whole.object['messages']));
      expect(Object.keys(short.object)).toEqual(Object.keys(whole.object));
      expect({ ...short.object, messages: 0 }).toEqual({ ...whole.object, messages: 0 });
      expect(short.object['messages']).toHaveLength(messages.length);
    }
  });

  test.each([['invalid JSON in a late message', '"\\x"', 'syntax'], ['a duplicate key', '{"a":1,"a":2}', 'duplicate-key'], ['a missing value', '', 'syntax'], ['two values without a comma', '1 2', 'syntax'], ['a bracket', ']', 'syntax']])('with %s are refused in a large body as in a small one', (_name, spoiler, reason) => {
    const message = JSON.stringify({ role: 'user', content: 'x'.repeat(20_000) });
    for (const count of [0, 12]) {
      const messages = Array.from({ length: count }, () => message);
      const body = `{"messages":[${[...messages, spoiler, message].join(',')}]}`;
      const json = parseJsonObject(Buffer.from(body), true);
      expect(json.kind === 'invalid' ? json.reason : 'ok').toBe(reason);
    }
  });

  test('in other fields are parsed whole', () => {
    const text = 'y'.repeat(40_000);
    const body = { user: text, tools: [{ content: text }], messages: [{ role: 'user', content: 'x', name: text, extra: { content: text } }], content: text };
    expect(parsed(JSON.stringify(body), true).object).toEqual(body);
    const messages = [{ role: 'user', content: text }];
    expect(parsed(JSON.stringify({ messages }), false).object).toEqual({ messages });
  });
});
