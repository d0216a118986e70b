import { expect, test } from '@jest/globals';
import { cardIdWith, feesIn, feesOfAttempt, type CardFees } from './card-fees.js';

test.each<[string, CardFees]>([
  ['a fee', { feeNanoUsd: 10_000_000n, bought: [] }],
  ['what one provider was asked for', { feeNanoUsd: 10_000_300n, bought: [{ provider: 'simulator', nanoUsd: 10_000_000n }] }],
  ['what two were', { feeNanoUsd: 30n, bought: [{ provider: 'openai', nanoUsd: 10n }, { provider: 'google-ai-studio', nanoUsd: 20n }] }],
])('a card says %s', (_, fees) => {
  for (const id of ['card_1', 'openai/gpt-4o@2026-01-01', 'a+b.c', '']) expect(feesIn(cardIdWith(id, fees))).toEqual(fees);
});

test.each(['', 'card_1', 'card+plugins.', 'card+plugins.-1', 'card+plugins.1.5', 'card+plugins.12345678901234567', 'card+plugins.1+bought.A.1', 'card+plugins.1+more'])('%s tells of no fee', (id) => {
  expect(feesIn(id)).toEqual({ feeNanoUsd: 0n, bought: [] });
});

test('an attempt that cost nothing carries no fee, and none carries more than it cost', () => {
  const id = cardIdWith('card', { feeNanoUsd: 30n, bought: [] });
  expect([0n, 1n, 30n, 31n].map((cost) => feesOfAttempt(cost, id).feeNanoUsd)).toEqual([0n, 1n, 30n, 30n]);
});
