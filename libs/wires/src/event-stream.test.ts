import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createEventStreamParser, EVENT_MESSAGE_BYTES_MAX } from './event-stream.js';
import { eventMessage, jsonEvent, textHeader } from './testing/event-stream.js';

interface Parsed {
  readonly messages: readonly (readonly [Readonly<Record<string, string>>, string])[];
  readonly isSound: boolean;
}

function parse(parts: readonly Uint8Array[]): Parsed {
  const messages: [Record<string, string>, string][] = [];
  const parser = createEventStreamParser(({ headers, payload }) => messages.push([Object.fromEntries(headers), payload.toString('utf8')]));
  const isRead = parts.map((part) => parser.push(part)).every(Boolean);
  return { messages, isSound: parser.close() && isRead };
}

const STREAM = Buffer.concat([jsonEvent('one', { text: '東京' }), eventMessage(Buffer.alloc(0), ''), jsonEvent('two', {})]);

describe('event stream', () => {
  test('gives whole messages however the bytes are split', () => {
    const whole = parse([STREAM]);
    expect(whole.isSound).toBe(true);
    expect(whole.messages).toEqual([
      [{ ':event-type': 'one', ':content-type': 'application/json', ':message-type': 'event' }, '{"text":"東京"}'],
      [{}, ''],
      [{ ':event-type': 'two', ':content-type': 'application/json', ':message-type': 'event' }, '{}'],
    ]);
    for (let at = 1; at < STREAM.length; at += 1) expect(parse([STREAM.subarray(0, at), STREAM.subarray(at)])).toEqual(whole);
    expect(parse(Array.from(STREAM, (byte) => Uint8Array.of(byte)))).toEqual(whole);
    expect(parse([])).toEqual({ messages: [], isSound: true });
  });

  test('the test vectors of the format', () => {
    // From the vendor's own test suite: an empty message, a payload alone, one header of type 4 beside a payload.
    const vectors = ['000000100000000005c248eb7d98c8ff', '0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936', '0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1'];
    expect(parse(vectors.map((hex) => Buffer.from(hex, 'hex')))).toEqual({
      messages: [
        [{}, ''],
        [{}, "{'foo':'bar'}"],
        [{ 'content-type': 'application/json' }, "{'foo':'bar'}"],
      ],
      isSound: true,
    });
  });

  test('reads past headers of every other type', () => {
    const header = (name: string, type: number, value: readonly number[]): Buffer => Buffer.from([name.length, ...Buffer.from(name), type, ...value]);
    const others = [header('a', 0, []), header('b', 1, []), header('c', 2, [1]), header('d', 3, [1, 2]), header('e', 4, [1, 2, 3, 4]), header('f', 5, [...new Array<number>(8).fill(1)]), header('g', 6, [0, 2, 9, 9]), header('h', 8, [...new Array<number>(8).fill(1)]), header('i', 9, [...new Array<number>(16).fill(1)])];
    expect(parse([eventMessage(Buffer.concat([...others, textHeader('last', 'x')]), 'p')])).toEqual({ messages: [[{ last: 'x' }, 'p']], isSound: true });
  });

  test('one flipped bit anywhere is noticed, and nothing of that message is given', () => {
    const message = jsonEvent('one', { text: 'x' });
    for (let bit = 0; bit < message.length * 8; bit += 1) {
      const flipped = Buffer.from(message);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(parse([flipped, jsonEvent('two', {})])).toEqual({ messages: [], isSound: false });
    }
  });

  test('a cut within a message is noticed at every byte', () => {
    const message = jsonEvent('one', { text: 'x' });
    for (let length = 1; length < message.length; length += 1) expect(parse([message.subarray(0, length)])).toEqual({ messages: [], isSound: false });
  });

  test.each([
    ['a page', Buffer.from('<html><body>502</body></html>')],
    ['JSON', Buffer.from('{"message":"no"}')],
    ['a message beyond the limit', eventMessage(Buffer.alloc(0), Buffer.alloc(EVENT_MESSAGE_BYTES_MAX))],
    ['headers that end early', eventMessage(Buffer.from([5, 97]), '')],
    ['a header of an unknown type', eventMessage(Buffer.from([1, 97, 10]), '')],
    ['a value that ends early', eventMessage(Buffer.from([1, 97, 7, 0, 9, 1]), '')],
  ])('%s is no such stream', (_name, bytes) => {
    expect(parse([bytes])).toEqual({ messages: [], isSound: false });
  });

  test('no bytes break it', () => {
    fc.assert(fc.property(fc.array(fc.uint8Array()), (parts) => expect(parse(parts).messages).toEqual([])));
  });
});
