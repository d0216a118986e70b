import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { AttemptTally, UsageTally, type UsageFigures } from './usage.js';

const figures = (tokens: number): UsageFigures => ({
  requests: 1, tokens, byokTokens: 0, promptTokens: tokens, completionTokens: 0, costNanoUsd: BigInt(tokens), chargeNanoUsd: BigInt(tokens), adjustedNanoUsd: 0n, savingsNanoUsd: -1n, totalMs: 8, ttftMs: 2,
});
const anyKey = fc.record({ period: fc.constantFrom('2026-10', '2026-11'), day: fc.constantFrom('2026-11-01', '2026-11-02'), model: fc.constantFrom('a', 'b'), provider: fc.constantFrom('p', 'q'), keyId: fc.constantFrom('', 'k') });
const textOf = (part: unknown): string => JSON.stringify(part, (_name, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));

test('figures add up by period, day, model, provider and key, in whatever order they come', () => {
  fc.assert(fc.property(fc.array(fc.tuple(anyKey, fc.nat(9)), { maxLength: 20 }), (rows) => {
    const tally = new UsageTally();
    const attempts = new AttemptTally();
    const expected = new Map<string, number>();
    const expectedAttempts = new Map<string, bigint>();
    for (const [key, tokens] of rows) {
      tally.add(key, figures(tokens));
      expected.set(textOf(key), (expected.get(textOf(key)) ?? 0) + tokens);
      attempts.add(key.day, { provider: key.provider, tokens: BigInt(tokens), amountNanoUsd: 1n, source: tokens > 4 ? 'provider' : 'estimated' });
      const day = `${key.day} ${key.provider}`;
      expectedAttempts.set(day, (expectedAttempts.get(day) ?? 0n) + BigInt(tokens));
    }
    const sums = tally.deltas();
    expect(sums.map(({ period, day, model, provider, keyId, tokens }) => [textOf({ period, day, model, provider, keyId }), tokens])).toEqual([...expected]);
    expect(sums.reduce((sum, { requests }) => sum + requests, 0)).toBe(rows.length);
    for (const { requests, tokens, chargeNanoUsd, savingsNanoUsd, total } of sums) expect([BigInt(tokens), savingsNanoUsd, total.at(-1)]).toEqual([chargeNanoUsd, BigInt(-requests), requests]);
    const days = attempts.deltas();
    expect(days.map(({ day, provider, tokens }) => [`${day} ${provider}`, tokens])).toEqual([...expectedAttempts]);
    expect(days.reduce((sum, { estimatedNanoUsd }) => sum + estimatedNanoUsd, 0n)).toBe(BigInt(rows.filter(([, tokens]) => tokens <= 4).length));
  }));
});
