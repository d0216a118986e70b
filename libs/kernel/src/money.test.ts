import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { asNanoUsd, asPrice, attemptCost, formatUsd, formatUsdJson, formatUsdPerToken, parseUsd, reservationCost, roundedNano, roundedUsd, usdNumberToNano } from './money.js';
import { costOf, NO_TOKENS } from './tokens.js';

const zero = asPrice(0n);
const NO_PRICES = { id: 'card', inputUncached: zero, cacheRead: zero, cacheWrite: zero, outputText: zero, outputReasoning: zero, audio: zero, image: zero };

describe('money', () => {
  test.each([
    [14_550n, '0.000014550', '0.00001455'],
    [0n, '0.000000000', '0'],
    [5_000_000_000n, '5.000000000', '5'],
    [-1n, '-0.000000001', '-0.000000001'],
  ])('renders %s nano-dollars without an exponent', (nano, header, json) => {
    expect(formatUsd(nano)).toBe(header);
    expect(formatUsdJson(nano)).toBe(json);
  });

  test('a rendered amount parses back to the same integer', () => {
    fc.assert(fc.property(fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }), (nano) => {
      expect(parseUsd(formatUsd(nano))).toBe(nano);
      expect(parseUsd(formatUsdJson(nano))).toBe(nano);
    }));
  });

  test.each([[0.1, 100_000_000n], [1e-9, 1n], [2.5e-7, 250n], [12, 12_000_000_000n], [0.075, 75_000_000n]])('reads the JSON number %s exactly', (usd, nano) => {
    expect(usdNumberToNano(usd)).toBe(nano);
  });

  test.each([[0n, '0'], [1n, '0.000000000000001'], [150_000_000n, '0.00000015'], [75_000_000n, '0.000000075'], [10n ** 15n, '1'], [1_234_567_890_123_456_789n, '1234.567890123456789']])('writes a price of %s for a token exactly', (price, text) => {
    expect(formatUsdPerToken(price)).toBe(text);
  });

  test('refuses what is finer than a nano-dollar instead of rounding it', () => {
    expect(() => usdNumberToNano(1e-10)).toThrow(RangeError);
    expect(() => parseUsd('0.0000000001')).toThrow(RangeError);
  });

  test.each([
    [0, 0n], [0.0031, 3_100_000n], [1.455e-5, 14_550n], [1.4999e-9, 1n], [1.5e-9, 2n], [4.9e-10, 0n], [5e-10, 1n], [5e-324, 0n], [0.1 + 0.2, 300_000_000n], [123_456.123456789, 123_456_123_456_789n], [999_999.999999999, 999_999_999_999_999n], [1e6, 10n ** 15n], [1e21, 10n ** 30n],
  ])('rounds %s dollars that somebody took to whole nano-dollars, half up', (usd, nano) => {
    expect(roundedNano(usd)).toBe(nano);
  });

  test('each amount below a million dollars that is whole in nano-dollars is read as it was written', () => {
    fc.assert(fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n - 1n }), (nano) => {
      expect(roundedNano(JSON.parse(formatUsdJson(nano)) as number)).toBe(nano);
    }));
  });

  test.each([-1e-9, Number.NaN, Number.POSITIVE_INFINITY])('%s dollars is nothing that anybody took', (usd) => {
    expect(() => roundedNano(usd)).toThrow(RangeError);
  });

  test.each([
    ['12.5', 12_500_000_000n], ['1234567890.1234567894', 1_234_567_890_123_456_789n], ['0.0000000005', 1n], ['0.00000000049999999999999', 0n], ['1.2345678905E+1', 12_345_678_905n], ['58500e-10', 5_850n], ['1e-300', 0n], ['0', 0n],
  ])('rounds the text %s of a report to whole nano-dollars, half up, without a float between', (text, nano) => {
    expect(roundedUsd(text)).toBe(nano);
  });

  test.each(['', '-1', '+1', '.5', '1.', '1e', '1e1000', '0x1', '1,5', ' 1', '9'.repeat(61)])('the text %j is no amount of a report', (text) => {
    expect(() => roundedUsd(text)).toThrow(RangeError);
  });

  test('rounds a cost once, half up, and a reservation up', () => {
    expect(attemptCost(499_999n)).toBe(0n);
    expect(attemptCost(500_000n)).toBe(1n);
    const prices = { ...NO_PRICES, inputUncached: asPrice(250_000n), outputText: asPrice(250_000n), requestNanoUsd: asNanoUsd(7n) };
    expect(costOf({ ...NO_TOKENS, inputUncached: 1, outputText: 1 }, prices)).toBe(8n);
    expect(reservationCost(1n)).toBe(1n);
  });

  test.each(['inputUncached', 'cacheRead', 'cacheWrite', 'outputText', 'outputReasoning', 'audio', 'image'] as const)('prices %s by its own price and nothing else', (bucket) => {
    const others = asPrice(5_000_000n);
    const prices = { ...NO_PRICES, inputUncached: others, cacheRead: others, cacheWrite: others, outputText: others, outputReasoning: others, audio: others, image: others, requestNanoUsd: asNanoUsd(0n), [bucket]: asPrice(3_000_000n) };
    expect(costOf({ ...NO_TOKENS, [bucket]: 7 }, prices)).toBe(21n);
  });

  test('a reservation is never below the cost it covers', () => {
    fc.assert(fc.property(fc.bigInt({ min: 0n, max: 10n ** 20n }), (sum) => {
      expect(reservationCost(sum)).toBeGreaterThanOrEqual(attemptCost(sum));
    }));
  });
});
