import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { cardIdWith } from '@signalbox/kernel/card-fees';
import { asNanoUsd } from '@signalbox/kernel/money';
import { AttemptTally, NO_USAGE, usageOf, UsageTally, type UsageFigures } from './usage.js';

const figures = (tokens: number): UsageFigures => ({
  requests: 1, tokens, byokTokens: 0, promptTokens: tokens, completionTokens: 0, costNanoUsd: BigInt(tokens), chargeNanoUsd: BigInt(tokens), feesNanoUsd: 0n, adjustedNanoUsd: 0n, savingsNanoUsd: -1n, totalMs: 8, ttftMs: 2,
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
      attempts.add(key.day, { provider: key.provider, tokens: BigInt(tokens), amountNanoUsd: 1n, source: tokens > 4 ? 'provider' : 'estimated', cardId: 'card_1' });
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

test('plugin fees are not a cost at the provider of the attempt; what tools bought elsewhere is a cost there', () => {
  const tally = new AttemptTally();
  const add = (amountNanoUsd: bigint, cardId: string, source = 'provider'): void => tally.add('2026-11-01', { provider: 'p', tokens: 1n, amountNanoUsd, source, cardId });
  add(5n, 'card');
  add(107n, cardIdWith('card', { feeNanoUsd: 100n, bought: [{ provider: 'painter', nanoUsd: 60n }] }));
  add(33n, cardIdWith('card', { feeNanoUsd: 30n, bought: [] }), 'estimated');
  // A failed attempt has no fees.
  add(0n, cardIdWith('card', { feeNanoUsd: 30n, bought: [{ provider: 'painter', nanoUsd: 60n }] }));
  expect(tally.deltas().map(({ provider, attempts, costNanoUsd, estimatedNanoUsd }) => [provider, attempts, costNanoUsd, estimatedNanoUsd])).toEqual([['p', 4, 15n, 3n], ['painter', 0, 60n, 0n]]);
});

test('the fees of a charge are those of its charged attempts, without those on own credentials', () => {
  const cardId = cardIdWith('card', { feeNanoUsd: 30n, bought: [] });
  const attempts = [1, 2, 3, 4].map((attempt) => ({ attempt, retryOf: [], costNanoUsd: asNanoUsd(attempt === 3 ? 0n : 50n), tokens: 1, byok: attempt === 4 }));
  const state = { facts: { attempts, outcomes: [] }, bookedAttempts: [], sources: attempts.map((fact) => ({ fact, cardId, usage: NO_USAGE })) };
  const feesOf = (...charged: number[]): bigint => usageOf(state, { kind: 'charge', amountNanoUsd: asNanoUsd(50n), tokens: 1, byokTokens: 0 }, charged, []).feesNanoUsd;
  expect([feesOf(), feesOf(1), feesOf(1, 2), feesOf(2, 3), feesOf(4)]).toEqual([0n, 30n, 60n, 30n, 0n]);
  expect(usageOf(state, { kind: 'adjustment', amountNanoUsd: asNanoUsd(50n), tokens: 1, byokTokens: 0 }, [1], []).feesNanoUsd).toBe(0n);
});
