import { describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { isDeepStrictEqual } from 'node:util';
import { ANTHROPIC, draftMessages } from './anthropic-messages/request.js';
import { draftConverse } from './bedrock-converse/request.js';
import { composeCohereChat } from './cohere-v2/request.js';
import { draftGenerateContent } from './google-generate-content/request.js';
import { LONG_STRING_BYTES, LongStrings } from './long-strings.js';
import { draftOllamaChat } from './ollama/request.js';
import { draftChatBody } from './openai-chat/draft.js';
import { NO_QUIRKS } from './openai-chat/quirks.js';
import { composeChatBody, type ChatRequestField } from './openai-chat/request.js';
import { Unsendable } from './unsendable.js';

const INPUT = { model: 'x/y', stream: true, maxTokens: 100, temperatureMax: 0, maxTokensParam: 'max_tokens', contextWindow: 1_000_000, maxOutputTokens: 8_000, promptTokens: 1_000 };
const NONE = new Map<string, never>();
type Compose = (fields: readonly ChatRequestField[]) => Buffer;
const WIRES: readonly (readonly [name: string, compose: Compose])[] = [
  ['anthropic', (fields) => draftMessages({ ...INPUT, providerModelId: 'claude-opus-4-1', fields }, ANTHROPIC).body(NONE)],
  ['anthropic without a prefill', (fields) => draftMessages({ ...INPUT, providerModelId: 'claude-opus-4-8', fields }, ANTHROPIC).body(NONE)],
  ['bedrock', (fields) => draftConverse({ ...INPUT, providerModelId: 'anthropic.claude-opus-4-1', fields }).body(NONE)],
  ['google', (fields) => draftGenerateContent({ ...INPUT, providerModelId: 'gemini-3-pro', fields }, { withCallIds: true }).body(NONE)],
  ['cohere', (fields) => composeCohereChat({ ...INPUT, providerModelId: 'command-a', fields })],
  ['ollama', (fields) => draftOllamaChat({ ...INPUT, providerModelId: 'llama', fields }, { keepAlive: '', contextTokensMin: 256 }).body(NONE)],
  ['a host that is given no addresses', (fields) => {
    const picture = ',{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://images.test/a.png"}}]}]';
    const withPicture = fields.map(({ name, value }) => (name === 'messages' ? { name, value: Buffer.concat([value.subarray(0, -1), Buffer.from(picture)]) } : { name, value }));
    return draftChatBody({ ...INPUT, providerModelId: 'm', fields: withPicture }, NO_QUIRKS).body(new Map([['https://images.test/a.png', { mediaType: 'image/png', base64: 'AAAA' }]]));
  }],
  ['a host where turns alternate', (fields) => composeChatBody({ ...INPUT, providerModelId: 'sonar', fields }, { ...NO_QUIRKS, alternates: true })],
  ['a host with fields of its own', (fields) => composeChatBody({ ...INPUT, providerModelId: 'm', fields }, { ...NO_QUIRKS, messageFields: ['role', 'content', 'tool_calls', 'tool_call_id'], shortToolCallIds: true, answersResults: true })],
];

const escaped = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`;

/** JSON of a string, each of its units escaped as `isEscaped` says. */
function written(text: string, isEscaped: (at: number) => boolean): string {
  let json = '"';
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    const isHigh = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
    if (isEscaped(at)) json += escaped(unit);
    else if (isHigh) {
      json += text.slice(at, at + 2);
      at += 1;
    } else json += JSON.stringify(text.charAt(at)).slice(1, -1);
  }
  return `${json}"`;
}

/** Of half a kilobyte to five: some are long, some are not. */
const words = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: fc.oneof(fc.constantFrom('a', '"', '\\', '\n', '\t', ' ', '\u0001', '\u0091', '\u3000', 'é', '猫', '😀', '\ud83d', '\ude00', '{', '}', '[', ']', ','), fc.string({ unit: 'binary', minLength: 1, maxLength: 3 })), minLength: 0, maxLength: 90 }) },
  { weight: 1, arbitrary: fc.constantFrom('', ' ', '{"a":1}', '[1', '"x"', '12', '-', 'true', '\u00910\u0091') },
);
const body = fc.tuple(words, fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }), fc.nat(400), words).map(([head, filler, times, tail]) => head + filler.repeat(times) + tail);
const blank = fc.tuple(fc.constantFrom(' ', '\n', '\u3000', '\\u0020'), fc.constantFrom(1, 2_000)).map(([space, times]) => space.repeat(times));
const jsonish = body.chain((text) => fc.constantFrom(JSON.stringify({ text }), ` ${JSON.stringify([text])}`, JSON.stringify(text), `{"cut":${JSON.stringify(text)}`, '7'.repeat(1_500)));
const text = fc.oneof({ weight: 5, arbitrary: body }, blank, jsonish);
/** Which units are escaped: none, all, or here and there. */
const style = fc.oneof(fc.constant((): boolean => false), fc.constant((): boolean => true), fc.integer({ min: 2, max: 7 }).map((step) => (at: number): boolean => at % step === 0));

/** Beginnings of files, by their first bytes. */
const beginnings = ['89504e470d0a1a0a0000000d', 'ffd8ffe0', '255044462d312e37', '0d0a0d0a255044462d312e37', '52494646', '', '3c737667'];
const inStyle: Readonly<Record<string, (base64: string) => string>> = {
  plain: (base64) => base64,
  unpadded: (base64) => base64.replace(/=+$/, ''),
  'of addresses': (base64) => base64.replaceAll('+', '-').replaceAll('/', '_'),
  'in lines': (base64) => base64.replace(/(.{76})/g, '$1\\n'),
  'slashes escaped': (base64) => base64.replaceAll('/', '\\/'),
  'in escapes': (base64) => base64.replaceAll('+', '%2B'),
  wrong: (base64) => `${base64.slice(0, -90)}!${base64.slice(-89)}`,
  'cut short': (base64) => base64.slice(0, -1),
  'with another mark': (base64) => `${base64.slice(0, -90)}\\u00910\\u0091${base64.slice(-80)}`,
};
const base64 = fc.tuple(fc.constantFrom(...beginnings), fc.integer({ min: 0, max: 4_000 }), fc.integer({ min: 1, max: 255 }), fc.constantFrom(...Object.keys(inStyle), 'plain', 'plain')).map(([hex, length, seed, style]) => {
  const bytes = Buffer.concat([Buffer.from(hex, 'hex'), Buffer.from(Array.from({ length }, (_, at) => (at * seed * 7 + (at >> 3)) & 0xff))]);
  return (inStyle[style] as (text: string) => string)(bytes.toString('base64'));
});
const claim = fc.constantFrom('image/png', 'image/jpeg', 'IMAGE/PNG', 'image/svg+xml', 'application/pdf', 'application/x-pdf', 'audio/wav', 'text/plain', 'application/octet-stream', '', 'image/png;x=y');
/** A part that is no text, as JSON, its keys as `k` writes them. */
const media = fc.tuple(fc.constantFrom('image_url', 'input_audio', 'file'), base64, fc.option(claim, { nil: undefined })).map(([type, data, claimed]) => (k: (name: string) => string): string => {
  const value = claimed === undefined ? data : `data:${claimed};base64,${data}`;
  if (type === 'image_url') return `{"type":"image_url","image_url":{"${k('url')}":"${value}","detail":"low"}}`;
  if (type === 'input_audio') return `{"type":"input_audio","input_audio":{"${k('data')}" : "${value}","format":"wav"}}`;
  return `{"type":"file","file":{"filename":"a b.pdf","${k('file_data')}":"${value}"}}`;
});
const ESCAPED_KEYS: Readonly<Record<string, string>> = { content: 'c\\u006fntent', text: 'te\\u0078t', url: 'u\\u0072l', data: 'd\\u0061ta', file_data: 'file_d\\u0061ta' };
/** The keys as they are looked for, or so that they are not found: then every string is read as it was before any was set apart. */
const keysOf = (isFound: boolean) => (name: string): string => (isFound ? name : (ESCAPED_KEYS[name] ?? name));

type Said = readonly [role: string, text: string, isParts: boolean, isEscaped: (at: number) => boolean];
const said = fc.tuple(fc.constantFrom('system', 'user', 'assistant', 'tool', 'call'), text, fc.boolean(), style);

function messagesJson(turns: readonly Said[], isFound: boolean): Buffer {
  const [content, part] = ['content', 'text'].map(keysOf(isFound));
  const all = turns.map(([role, words, isParts, isEscaped], at) => {
    const json = written(words, isEscaped);
    const inParts = `[{"type":"text","${part}" : ${json}},{"type":"text","${part}":"${role}"}]`;
    const told = isParts ? inParts : json;
    if (role === 'call') return `{"role":"assistant","${content}":${told},"tool_calls":[{"id":"c${String(at)}","type":"function","function":{"name":"f","arguments":${JSON.stringify(JSON.stringify({ content: words, text: words }))}}}]}`;
    return role === 'tool' ? `{"role":"tool","tool_call_id":"c${String(at - 1)}","${content}":${told}}` : `{"role":"${role}", "${content}"\n:\t${told}}`;
  });
  return Buffer.from(`[${all.join()}]`);
}

const sent = (compose: Compose, turns: readonly Said[], isFound: boolean): unknown => {
  const tools = JSON.stringify([{ type: 'function', function: { name: 'f', description: 'Does it. \u00910', parameters: { type: 'object', properties: { text: { type: 'string' } } } } }]);
  try {
    return JSON.parse(compose([{ name: 'messages', value: messagesJson(turns, isFound) }, ...(turns.some(([role]) => role === 'call') ? [{ name: 'tools', value: Buffer.from(tools.replace('\u0091', '')) }] : [])]).toString('utf8'));
  } catch (error) {
    if (error instanceof Unsendable) return error.failure;
    throw error;
  }
};

const stringsIn = (value: unknown): readonly string[] => {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
};

// Compared as a whole: of texts that long, jest's differences for each step of a search for a smaller example would fill its memory.
describe.each(WIRES)('%s', (_name, compose) => {
  test('is sent the same whether long texts are read or set apart', () => {
    fc.assert(fc.property(fc.array(said, { minLength: 1, maxLength: 5 }), (turns) => isDeepStrictEqual(sent(compose, turns, true), sent(compose, turns, false))), { numRuns: 120 });
  });

  test('is sent the same media, or refused for the same reason', () => {
    const outcome = (parts: readonly ((k: (name: string) => string) => string)[], isFound: boolean): unknown => {
      const k = keysOf(isFound);
      const messages = `[{"role":"user","${k('content')}":[${parts.map((part) => part(k)).join()},{"type":"text","text":"What is it?"}]}]`;
      try {
        return JSON.parse(compose([{ name: 'messages', value: Buffer.from(messages) }]).toString('utf8'));
      } catch (error) {
        if (error instanceof Unsendable) return error.failure;
        throw error;
      }
    };
    fc.assert(fc.property(fc.array(media, { minLength: 1, maxLength: 2 }), (parts) => isDeepStrictEqual(outcome(parts, true), outcome(parts, false))), { numRuns: 200 });
  });

  test.each(['a \u0091 b', 'a \u00910\u0091 b', '\u0091', '"\u00911234567890123456789\u0091"'])('is sent a text file as it is, or refuses it, where its text holds %j', (words) => {
    const file = { type: 'file', file: { filename: 'a.txt', file_data: `data:text/plain;base64,${Buffer.from(words).toString('base64')}` } };
    const messages = JSON.stringify([{ role: 'user', content: [{ type: 'text', text: `Words ${'of a long text '.repeat(200)}` }, file, { type: 'text', text: 'What is it?' }] }]);
    const tools = '[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"id":{"const":1234567890123456789}}}}}]';
    let body = '';
    try {
      body = compose([{ name: 'messages', value: Buffer.from(messages) }, { name: 'tools', value: Buffer.from(tools) }]).toString('utf8');
    } catch (error) {
      expect(error).toBeInstanceOf(Unsendable);
      return;
    }
    expect(body.split('of a long text ').length - 1).toBe(200);
    expect(stringsIn(JSON.parse(body)).some((text) => text === words || text.includes(Buffer.from(words).toString('base64')))).toBe(true);
  });

  test('reads nothing of a long text', () => {
    const turns: readonly Said[] = ['system', 'user', 'call', 'tool', 'user'].map((role, at): Said => [role, at === 2 ? '' : `Words ${'of a long text \n"and more" '.repeat(400)}, and the end.`, at % 2 === 0, () => false]);
    const fields = [{ name: 'messages', value: messagesJson(turns, true) }];
    const parse = jest.spyOn(JSON, 'parse');
    const bytes = compose(fields);
    const read = Math.max(...parse.mock.calls.map(([json]) => json.length));
    parse.mockRestore();
    expect(bytes.length).toBeGreaterThan(40_000);
    expect(read).toBeLessThan(4_096);
  });
});

describe('what is set apart', () => {
  const parsed = (json: string): unknown => new LongStrings(Buffer.from(json)).parse();
  const long = 'x'.repeat(LONG_STRING_BYTES);

  test('is the middle of a long text, of which both ends stay', () => {
    expect(JSON.stringify(parsed(`[{"role":"user","content":"${long}"}]`)).length).toBeLessThan(200);
    expect(parsed(`[{"content":"${'x'.repeat(LONG_STRING_BYTES - 1)}"}]`)).toEqual([{ content: 'x'.repeat(LONG_STRING_BYTES - 1) }]);
  });

  test.each<[string, string]>([
    ['a text whose end is blank', `[{"content":"${long}${' '.repeat(200)}"}]`],
    ['a string that only ends as a key does', JSON.stringify([{ x: `"content`, y: long }, { x: `"content": ${long}` }])],
    ['an address', JSON.stringify([{ url: `https://x.test/${long.repeat(3)}` }])],
    ['media that are read as a text', JSON.stringify([{ file_data: `data:text/plain;base64,${long.repeat(3)}` }])],
    ['media that are not all base64', JSON.stringify([{ url: `data:image/png;base64,${long.repeat(2)}!${long}` }])],
    ['a text of another member', JSON.stringify([{ arguments: long, reasoning_content: long }])],
    ['a text beside the sign that stands for one', JSON.stringify([{ content: long }, { content: '\u0091' }])],
    ['one beside the sign escaped', `[{"content":"${long}"},{"content":"\\u0091"}]`],
  ])('is nothing of %s', (_what, json) => {
    expect(parsed(json)).toEqual(JSON.parse(json));
  });

  test('is nothing where the sign stands beside the messages', () => {
    const json = JSON.stringify([{ content: long }]);
    expect(new LongStrings(Buffer.from(json), [Buffer.from('"\u0091"')]).parse()).toEqual([{ content: long }]);
  });

  test('is the middle of media in base64', () => {
    const data = 'AAAA'.repeat(2_000);
    for (const media of [{ url: `data:image/png;base64,${data}` }, { file_data: `data:application/pdf;base64,${data}` }, { data }, { data: `data:audio/wav;base64,${data}` }]) {
      const json = JSON.stringify([media]);
      expect(JSON.stringify(parsed(json)).length).toBeLessThan(1_600);
      expect(new LongStrings(Buffer.from(json)).write(JSON.stringify(parsed(json))).toString()).toBe(json);
    }
  });

  test('is found in one pass, however many texts and escapes there are', () => {
    const searched = (count: number): number => {
      const indexOf = jest.spyOn(Buffer.prototype, 'indexOf');
      const json = Buffer.from(JSON.stringify([...Array.from({ length: count }, () => ({ content: `a\n${'b'.repeat(40)}` })), { content: '\n'.repeat(count) + 'c'.repeat(40) }]));
      new LongStrings(json);
      const calls = indexOf.mock.calls.length;
      indexOf.mockRestore();
      return calls;
    };
    expect(searched(800)).toBeLessThan(2.5 * searched(400));
  });

  test('can be had back as it was', () => {
    fc.assert(fc.property(text, style, (words, isEscaped) => {
      const texts = new LongStrings(Buffer.from(`[{"content":${written(words, isEscaped)}}]`));
      const [{ content }] = texts.parse() as [{ readonly content: string }];
      expect(texts.whole(content)).toBe(words);
      expect(texts.byteLength(`${content}!`)).toBe(Buffer.byteLength(`${words}!`));
    }));
  });
});
