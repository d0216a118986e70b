import { expect, test } from '@jest/globals';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { chargeOf, outputTokensMax } from './charge.js';

const price = asPrice('1000000');
const CARD = { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) };
const seen = { usage: undefined, usageUnreadable: false, outputBytes: 400, isAnswered: true, promptTokens: 10 };
const n = (value: string): { name: string; value: Buffer }[] => [{ name: 'n', value: Buffer.from(value) }];

test('an estimate from bytes is never above the output that was asked for: that is what was held', () => {
  expect(chargeOf(seen, CARD, undefined, Infinity).costNanoUsd).toBe(110n);
  expect(chargeOf(seen, CARD, undefined, 60).costNanoUsd).toBe(70n);
});

test('the bound counts every choice; without max_tokens there is none', () => {
  expect(outputTokensMax({ maxTokens: 50, fields: [] })).toBe(50);
  expect(outputTokensMax({ maxTokens: 50, fields: n('3') })).toBe(150);
  expect(outputTokensMax({ maxTokens: 50, fields: n('null') })).toBe(50);
  expect(outputTokensMax({ fields: n('3') })).toBe(Infinity);
});
