/** Work that grows with what came, and no faster: counted in bytes and calls, not in time. */
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { createChatTransducer } from './openai-chat/stream.js';
import { Gatherer } from './gather.js';
import { joinReasoningDetails } from './reasoning-details.js';
import { createSseParser } from './sse.js';

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
