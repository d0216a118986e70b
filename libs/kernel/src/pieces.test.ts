import { afterEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { Pieces } from './pieces.js';

afterEach(() => {
  jest.restoreAllMocks();
});

const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9_000 }), fc.constantFrom(4_095, 4_096, 65_536)), { maxLength: 120 });
const bytesOf = (length: number, at: number): Buffer => Buffer.from(Array.from({ length }, (_, i) => (at * 31 + i) % 251));

describe('Pieces', () => {
  it('gives back what it was given, however it came, in little more than its memory', () => {
    fc.assert(
      fc.property(sizes, (lengths) => {
        const pieces = new Pieces();
        const given = lengths.map(bytesOf);
        for (const piece of given) {
          pieces.push(piece);
          expect(pieces.heldBytes).toBeGreaterThanOrEqual(pieces.bytes);
          expect(pieces.heldBytes).toBeLessThanOrEqual(2 * pieces.bytes + 4_096);
        }
        const whole = Buffer.concat(given);
        expect(pieces.bytes).toBe(whole.length);
        expect(pieces.take().equals(whole)).toBe(true);
        expect([pieces.bytes, pieces.heldBytes, pieces.take().length]).toEqual([0, 0, 0]);
      }),
    );
  });

  it('what was taken stays as it was, whatever comes next', () => {
    const pieces = new Pieces();
    const fill = (byte: number): Buffer => {
      for (let i = 0; i < 1_000; i += 1) pieces.push(Buffer.of(byte));
      return pieces.take();
    };
    const first = fill(1);
    fill(2);
    expect(first.every((byte) => byte === 1)).toBe(true);
  });

  it('what came in one piece is that piece, and a few pieces are copied once', () => {
    const pieces = new Pieces();
    const only = Buffer.from('whole');
    pieces.push(only);
    expect(pieces.take()).toBe(only);
    const copy = jest.spyOn(Buffer.prototype, 'copy');
    for (let i = 0; i < 7; i += 1) pieces.push(only);
    for (let i = 0; i < 3; i += 1) pieces.push(Buffer.alloc(65_536));
    expect([copy.mock.calls.length, pieces.take().length]).toEqual([0, 7 * 5 + 3 * 65_536]);
  });

  it.each<[string, readonly number[]]>([
    ['bytes one by one', [1]],
    ['bytes one by one, and a large piece now and then', [...new Array<number>(400).fill(1), 4_096]],
  ])('keeps no small pieces by the thousand: %s', (_what, lengths) => {
    const join = jest.spyOn(Buffer, 'concat');
    const pieces = new Pieces();
    let given = 0;
    for (let i = 0; i < 100_000; i += 1) {
      const length = lengths[i % lengths.length] ?? 0;
      pieces.push(Buffer.alloc(length));
      given += length;
    }
    expect(pieces.take().length).toBe(given);
    expect(join.mock.calls[0]?.[0].length).toBeLessThan(100_000 / 40);
  });
});
