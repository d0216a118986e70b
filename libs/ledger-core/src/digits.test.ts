import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DIGITS_MAX, hasDigits, writeDigits } from './digits.js';

const powers = fc.nat({ max: 15 }).map((zeros) => 10 ** zeros);

test('writes the digits of any whole number below 2^53, and nothing beside them', () => {
  fc.assert(fc.property(fc.oneof(fc.maxSafeNat(), fc.nat(), powers, powers.map((power) => power - 1), fc.constantFrom(0, 9_999_999, 10_000_000, 99_999_999_999_999, 100_000_000_000_000, Number.MAX_SAFE_INTEGER)), fc.nat({ max: 3 }), (value, at) => {
    const space = Buffer.alloc(at + DIGITS_MAX + 1, '-');
    const end = writeDigits(space, at, value);
    expect(space.toString('latin1')).toBe(`${'-'.repeat(at)}${value}`.padEnd(space.length, '-'));
    expect(end).toBe(at + String(value).length);
  }), { numRuns: 2_000 });
});

test.each([-1, 0.5, 2 ** 53, NaN, Infinity])('%d is no such number', (value) => {
  expect(hasDigits(value)).toBe(false);
});
