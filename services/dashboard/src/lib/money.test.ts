import { describe, expect, test } from '@jest/globals';
import { bookedFirst, exactUsd, formatUsd, shareOf, spentUsd, sumUsd } from './money.js';

describe('amounts', () => {
  test.each<[number | bigint | null, string]>([
    [0, '$0.00'], [1234.5, '$1,234.50'], [0.00001455, '$0.0000146'], [0.25, '$0.25'], [0.1234, '$0.123'], [-0.5, '−$0.50'], [0.000000001, '$0.000000001'], [1_000_000, '$1,000,000.00'], [null, '–'], [0.9999, '$1.00'], [1.999, '$2.00'],
  ])('%p is shown as %s', (amount, text) => expect(formatUsd(amount)).toBe(text));
  test('sums are exact where floating point is not', () => {
    expect(sumUsd([0.1, 0.2])).toBe(300_000_000n);
    expect(sumUsd(Array.from({ length: 1_000 }, () => 0.000000001))).toBe(1_000n);
  });
  test('nor does a large amount lose its last digit', () => {
    expect([sumUsd([4393092.087081594]), sumUsd([-4478474.110634132]), sumUsd([1e-9])]).toEqual([4_393_092_087_081_594n, -4_478_474_110_634_132n, 1n]);
  });
  test('what ran on own keys at providers is not spent, and corrections are', () => {
    const day = { cost_usd: 3, charge_usd: 0 };
    expect(sumUsd([day, { cost_usd: 2, charge_usd: 1.5 }, undefined].map(spentUsd))).toBe(1_500_000_000n);
  });
  test('a ledger shows every decimal that is not a trailing zero', () => {
    expect([exactUsd(0.00001455), exactUsd(2), exactUsd(-1.5), exactUsd(0.123456789)]).toEqual(['$0.00001455', '$2.00', '−$1.50', '$0.123456789']);
  });
  test('a request’s first line and its corrections make what was charged', () => {
    const charge = { amount_usd: 0.6, adjustments: [{ amount_usd: -0.5 }, { amount_usd: 0.1 }] };
    expect(exactUsd(bookedFirst(charge))).toBe('$1.00');
    expect(exactUsd(1_234_567.891)).toBe('$1,234,567.891');
  });
  test('a share stays within its bar', () => {
    expect([shareOf(1, 4), shareOf(9, 4), shareOf(-1, 4), shareOf(0, 0)]).toEqual([25, 100, 0, 100]);
  });
});
