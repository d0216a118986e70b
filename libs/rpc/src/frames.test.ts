/** Frames of a link, and the lines before them. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bareFrame, batchFrame, FRAME, FrameReader, greeting, GREETING_BYTES_MAX, readGreeting } from './frames.js';
import { decodeBatch } from './link-codec.js';
import { ITEM, LinkItem, PART_BYTES } from './link-item.js';

function itemOf(call: number, payload: Uint8Array): LinkItem {
  const item = new LinkItem(call, ITEM.message);
  item.payload = Buffer.from(payload);
  return item;
}

const read = (pieces: readonly Buffer[]): { readonly kind: number; readonly body: Buffer }[] => {
  const frames: { readonly kind: number; readonly body: Buffer }[] = [];
  const reader = new FrameReader((kind, body) => frames.push({ kind, body }));
  for (const piece of pieces) reader.push(piece);
  return frames;
};

const piecesAt = (bytes: Buffer, cuts: readonly number[]): Buffer[] => {
  const at = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
  return at.slice(1).map((end, i) => Buffer.from(bytes.subarray(at[i], end)));
};

test('frames come out as they went in, wherever the bytes between them are cut', () => {
  const frame = fc.oneof(
    fc.constantFrom(FRAME.end, FRAME.ping, FRAME.pong, 200).map((kind) => ({ kind, bytes: bareFrame(kind) })),
    fc.tuple(fc.integer({ min: 1, max: 9 }), fc.uint8Array({ maxLength: 300 })).map(([call, payload]) => ({ kind: FRAME.batch, bytes: batchFrame([itemOf(call, payload)]) })),
  );
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 12 }), (frames, cuts) => {
      const bytes = Buffer.concat(frames.map((each) => each.bytes));
      const found = read(piecesAt(bytes, cuts));
      expect(found.map(({ kind }) => kind)).toEqual(frames.map(({ kind }) => kind));
      expect(Buffer.concat(found.map(({ body }) => body))).toEqual(Buffer.concat(frames.map((each) => each.bytes.subarray(4))));
    }),
  );
});

test('cut at every byte: three frames, of which one is large', () => {
  const bytes = Buffer.concat([bareFrame(FRAME.ping), batchFrame([itemOf(1, Buffer.alloc(700, 7)), itemOf(2, Buffer.from('two'))]), bareFrame(FRAME.end)]);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const [ping, batch, end] = read([Buffer.from(bytes.subarray(0, cut)), Buffer.from(bytes.subarray(cut))]);
    expect([ping?.kind, batch?.kind, end?.kind]).toEqual([FRAME.ping, FRAME.batch, FRAME.end]);
    expect(decodeBatch(batch?.body ?? Buffer.alloc(0)).map(({ call, payload }) => [call, payload.length])).toEqual([[1, 700], [2, 3]]);
  }
  expect(read(Array.from(bytes, (byte) => Buffer.from([byte]))).map(({ kind }) => kind)).toEqual([FRAME.ping, FRAME.batch, FRAME.end]);
});

test('the largest batch has a length that three bytes hold', () => {
  const [frame] = read([batchFrame(Array.from({ length: 128 }, (_none, call) => itemOf(call + 1, Buffer.alloc(PART_BYTES))))]);
  expect(decodeBatch(frame?.body ?? Buffer.alloc(0))).toHaveLength(128);
});

describe('the first line', () => {
  test.each(['', '/signalbox.quota.v1.QuotaService/Link', 'worker-openai-0', 'a name\nof two lines', 'ü 100 %'])('carries %j, and comes out at its last byte only', (word) => {
    const bytes = Buffer.from(greeting(word));
    for (let length = 0; length < bytes.length; length += 1) expect(readGreeting(bytes.subarray(0, length))).toBe('more');
    expect(readGreeting(Buffer.concat([bytes, bareFrame(FRAME.ping)]))).toEqual({ word, length: bytes.length });
  });

  test.each([
    ['the preface of HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
    ['what an HTTP/2 server says first', Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])],
    ['a request of HTTP/1', Buffer.from('GET / HTTP/1.1\r\n')],
    ['another version', Buffer.from('SIGNALBOX-LINK/2 x\n')],
    ['a name that differs late', Buffer.from('SIGNALBOX-LANE')],
    ['a line without an end', Buffer.from(`SIGNALBOX-LINK/1 ${'x'.repeat(GREETING_BYTES_MAX)}`)],
    ['a line that is too long', Buffer.from(`SIGNALBOX-LINK/1 ${'x'.repeat(GREETING_BYTES_MAX)}\n`)],
    ['a word that is not encoded', Buffer.from('SIGNALBOX-LINK/1 100%\n')],
  ])('%s is none', (_name, bytes) => {
    expect(readGreeting(bytes)).toBe('other');
  });
});
