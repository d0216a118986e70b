/** Work that grows with what came, and no faster: counted in bytes and calls, not in time. */
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { ARGUMENTS_CHARS_MAX } from './canonical.js';
import { ANSWER_BOUNDS, AnswerTally, EVENT_BOUNDS } from './json-bounds.js';
import { readCohereAnswer } from './cohere-v2/response.js';
import { createEventStreamParser } from './event-stream.js';
import { classifyErrorFrame } from './openai-chat/errors.js';
import { readChatAnswer } from './openai-chat/response.js';
import { createChatTransducer } from './openai-chat/stream.js';
import { Gatherer } from './gather.js';
import { createLineSplitter } from './lines.js';
import { joinReasoningDetails } from './reasoning-details.js';
import { createSseParser } from './sse.js';
import { eventMessage, jsonEvent } from './testing/event-stream.js';
import { SCRIPTED_WIRES } from './testing/scripts.js';

afterEach(() => {
  jest.restoreAllMocks();
});

/** Bytes that were joined into others while `work` ran. */
function joinedBytes(work: () => void): number {
  const concat = jest.spyOn(Buffer, 'concat');
  work();
  return concat.mock.results.reduce((sum, { value }) => sum + (Buffer.isBuffer(value) ? value.length : 0), 0);
}

/** Characters that were read as JSON while `work` ran. */
function parsedChars(work: () => void): number {
  const parse = jest.spyOn(JSON, 'parse');
  work();
  return parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
}

const frame = (delta: object): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;
const streamed = (text: string): void => {
  const transducer = createChatTransducer('s');
  transducer.push(Buffer.from(text));
  transducer.close();
};

describe('twice as much costs twice as much', () => {
  test.each<[string, (size: number) => number]>([
    ['an event whose data comes in many lines', (lines) => joinedBytes(() => createSseParser(() => undefined).push(Buffer.from(`${'data: 0123456789\n'.repeat(lines)}\n`)))],
    ['an event that comes in many pieces', (pieces) => joinedBytes(() => {
      const parser = createSseParser(() => undefined);
      parser.push(Buffer.from('data: '));
      for (let i = 0; i < pieces; i += 1) parser.push(Buffer.from('0123456789'));
      parser.push(Buffer.from('\n\n'));
    })],
    ['a call whose every piece has its name and none an id', (pieces) => parsedChars(() => streamed(Array.from({ length: pieces }, (_, i) => frame({ tool_calls: [{ index: 0, function: { name: 'f', arguments: i === 0 ? '{"a":"' : '0123456789' } }] })).join('')))],
    ['a call whose every piece seems to end it', (pieces) => parsedChars(() => streamed(Array.from({ length: pieces }, (_, i) => frame({ tool_calls: [{ index: 0, function: { name: 'f', arguments: i === 0 ? '{}}' : '{}' } }] })).join('')))],
  ])('%s', (_what, work) => {
    const once = work(400);
    jest.restoreAllMocks();
    expect(work(800)).toBeLessThan(2.5 * once);
  });
});

describe('what comes byte by byte is not kept so', () => {
  const BYTES = 400_000;
  const text = (before: string, after: string): Buffer => Buffer.from(`${before}${'x'.repeat(BYTES)}${after}`);

  test.each<[string, Buffer, (onWhole: (bytes: number) => void) => { readonly push: (bytes: Buffer) => boolean; readonly close: () => unknown }]>([
    ['an event', text('data: ', '\n\n'), (onWhole) => createSseParser((_bytes, from, to) => onWhole(to - from))],
    ['JSON in the place of a stream', text('{"', '"}'), (onWhole) => createSseParser((_bytes, from, to) => onWhole(to - from))],
    ['a line', text('', '\n'), (onWhole) => createLineSplitter((line) => (onWhole(line.length), true))],
    ['a message', eventMessage(Buffer.alloc(0), 'x'.repeat(BYTES)), (onWhole) => createEventStreamParser(({ payload }) => onWhole(payload.length))],
    ['the beginning of a whole answer', text('"', '"'), (onWhole) => {
      const tally = new AnswerTally(ANSWER_BOUNDS);
      return { push: (bytes) => tally.push(bytes), close: () => onWhole(BYTES) };
    }],
  ])('%s', (_what, bytes, create) => {
    const join = jest.spyOn(Buffer, 'concat');
    const wholes: number[] = [];
    const parser = create((whole) => void wholes.push(whole));
    for (let at = 0; at < bytes.length; at += 1) if (!parser.push(bytes.subarray(at, at + 1))) throw new Error('refused');
    parser.close();
    expect(wholes.length).toBe(1);
    expect(wholes[0]).toBeGreaterThanOrEqual(BYTES);
    // What is joined at last is what was kept until then.
    const kept = join.mock.calls.map(([parts]) => parts.length);
    expect(Math.max(...kept)).toBeGreaterThan(1);
    expect(Math.max(...kept)).toBeLessThan(BYTES / 4_000);
  });
});

test('of a thought in many pieces each keeps what it says, whatever it is called', () => {
  const pieces = Array.from({ length: 3 }, (_, i) => ({ type: 'reasoning.text', index: 0, text: String(i), [`own${String(i)}`]: i }));
  expect(joinReasoningDetails(pieces)).toEqual([{ type: 'reasoning.text', index: 0, text: '012', own0: 0, own1: 1, own2: 2 }]);
  // The pieces are whoever gave them's.
  expect(pieces[0]).toEqual({ type: 'reasoning.text', index: 0, text: '0', own0: 0 });
});

test('lists of a gathered answer hold what all its chunks brought', () => {
  const gatherer = new Gatherer();
  const chunk = Buffer.from(JSON.stringify([{ index: 0, delta: { images: [{ type: 'image_url' }] }, logprobs: { content: [{ token: 'x' }] }, finish_reason: null }]));
  for (let i = 0; i < 100; i += 1) gatherer.add(chunk);
  const [choice] = JSON.parse(gatherer.whole().toString('utf8')) as [{ readonly message: { readonly images: readonly unknown[] }; readonly logprobs: { readonly content: readonly unknown[] } }];
  expect([choice.message.images.length, choice.logprobs.content.length]).toEqual([100, 100]);
});

describe.each(SCRIPTED_WIRES)('$name', ({ name, create, read, frames, body, isSse }) => {
  const values = (count: number): string => `[${'0,'.repeat(count - 1)}0]`;
  const members = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"${at}":0`).join()}}`;
  const event = (count: number, of = values): Buffer => {
    const json = `{"type":"x","choices":[],"x":${of(count)}}`;
    return name === 'bedrock-converse' ? jsonEvent('messageStart', JSON.parse(json)) : Buffer.from(isSse ? `data: ${json}\n\n` : `${json}\n`);
  };

  test('arguments that are longer than any model\'s are garbage, in one piece as in many, of one call as of several', () => {
    const pieces = ['{"a":"', ...Array.from({ length: 5 }, () => 'x'.repeat(ARGUMENTS_CHARS_MAX / 4)), '"}'];
    const told = (length: number, times = 1): readonly unknown[] => {
      const script = { reasoning: [], text: [], calls: Array.from({ length: times }, () => ({ name: 'f', pieces: [...pieces.slice(0, length), '"}'] })), input: 1, output: 1, isCut: false, habit: 0 };
      const transducer = create();
      const events = [...frames(script).flatMap((bytes) => transducer.push(bytes)), ...transducer.close()];
      const last = events.at(-1);
      const whole = read(body(script));
      return [last?.type === 'failed' ? last.failure.class : last?.type, whole.ok ? 'done' : whole.failure.class];
    };
    expect([told(4), told(6), told(2, 3), told(2, 5)]).toEqual([['done', 'done'], ['GARBAGE', 'GARBAGE'], ['done', 'done'], ['GARBAGE', 'GARBAGE']]);
  });

  test('an event of more values than any answer has is garbage, and is not parsed', () => {
    const bytes = event(EVENT_BOUNDS.values + 1);
    const transducer = create();
    let events: ReturnType<typeof transducer.push> = [];
    expect(parsedChars(() => (events = transducer.push(bytes)))).toBe(0);
    expect(events).toEqual([{ type: 'failed', failure: expect.objectContaining({ class: 'GARBAGE', retryable: true }) as unknown }]);
  });

  test('nor is one whose objects have more members', () => {
    const bytes = event(EVENT_BOUNDS.members + 1, members);
    expect(parsedChars(() => expect(create().push(bytes)).toEqual([{ type: 'failed', failure: expect.objectContaining({ class: 'GARBAGE' }) as unknown }]))).toBe(0);
  });

  test('one of nearly as many is read', () => {
    expect(create().push(event(EVENT_BOUNDS.values / 2))).not.toContainEqual(expect.objectContaining({ type: 'failed' }));
  });
});

test('an event that is not parsed ends a stream that has begun', () => {
  const transducer = createChatTransducer('s');
  transducer.push(Buffer.from(frame({ role: 'assistant', content: 'hello' })));
  expect(transducer.push(Buffer.from(`data: {"x":[${'[],'.repeat(EVENT_BOUNDS.values)}0]}\n\n`))).toEqual([{ type: 'failed', failure: expect.objectContaining({ class: 'GARBAGE' }) as unknown }]);
  expect(transducer.summary().contentSeen).toBe(true);
});

test('an answer of escapes is counted without a text for each of them', () => {
  const body = Buffer.from(`{"choices":[{"index":0,"message":{"role":"assistant","content":"${'\\u00e9'.repeat(10_000)}"},"finish_reason":"stop"}]}`);
  const texts = jest.spyOn(Buffer.prototype, 'toString');
  expect(readChatAnswer(body, 's')).toMatchObject({ ok: true, answer: { outputBytes: 20_000 } });
  expect(texts.mock.calls.length).toBeLessThan(10);
});

test('of an error of megabytes the beginning is held against the patterns', () => {
  const tested = jest.spyOn(RegExp.prototype, 'test');
  const message = `The context length is exceeded. ${'word '.repeat(200_000)}`;
  expect(classifyErrorFrame({ message })).toMatchObject({ class: 'CONTEXT_LENGTH' });
  expect(Math.max(...tested.mock.calls.map(([text]) => text.length))).toBeLessThan(10_000);
});

test('a chunk of megabytes is counted before it is read, also in an envelope that is known', () => {
  const chunk = (text: string): Buffer => Buffer.from(`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"${text}"},"finish_reason":null}]}\n\n`);
  const begun = (): ReturnType<typeof createChatTransducer> => {
    const transducer = createChatTransducer('s');
    for (const text of ['a', 'b']) transducer.push(chunk(text));
    return transducer;
  };
  expect(begun().push(chunk('\\n'.repeat(EVENT_BOUNDS.escapes + 1)))).toEqual([{ type: 'failed', failure: expect.objectContaining({ class: 'GARBAGE' }) as unknown }]);
  const transducer = begun();
  expect(transducer.push(chunk('é'.repeat(100_000)))).toEqual([expect.objectContaining({ type: 'chunk', content: true })]);
  expect(transducer.summary().outputBytes).toBe(200_002);
});

describe('the text of calls whose arguments are objects is looked for in one pass', () => {
  const many = (count: number, holder: 'delta' | 'message'): string =>
    Array.from({ length: count }, () => `{"index":0,"${holder}":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":{}}}]}}`).join(',');
  const calls = (count: number): string => Array.from({ length: count }, () => '{"id":"c","function":{"name":"f","arguments":{}}}').join(',');
  test.each<[string, (count: number) => void]>([
    ['of the choices of an event', (count) => streamed(`data: {"choices":[${many(count, 'delta')}]}\n\n`)],
    ['of the choices of an answer', (count) => void readChatAnswer(Buffer.from(`{"choices":[${many(count, 'message')}]}`), 's')],
    ['of the calls of Cohere', (count) => void readCohereAnswer(Buffer.from(`{"message":{"tool_calls":[${calls(count)}]},"finish_reason":"TOOL_CALL"}`), 's')],
  ])('%s', (_what, read) => {
    const looks = (count: number): number => {
      const looked = jest.spyOn(String.prototype, 'charCodeAt');
      read(count);
      const { length } = looked.mock.calls;
      jest.restoreAllMocks();
      return length;
    };
    const once = looks(20);
    expect(once).toBeGreaterThan(1_000);
    expect(looks(40)).toBeLessThan(2.5 * once);
  });
});

test('what each chunk of an answer repeats is short, or is not told', () => {
  const transducer = createChatTransducer('s');
  transducer.push(Buffer.from(`data: ${JSON.stringify({ system_fingerprint: 'f'.repeat(100_000), service_tier: 'default', choices: [{ index: 0, delta: { content: 'a' } }] })}\n\n`));
  expect(transducer.summary()).toMatchObject({ systemFingerprint: '', serviceTier: 'default' });
});
