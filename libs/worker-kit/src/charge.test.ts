import { expect, test } from '@jest/globals';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import { chargeOf, outputTokensMax } from './charge.js';

const price = asPrice('1000000');
const CARD = { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) };
const stepsOf = (card: typeof CARD) => [{ fromPromptTokens: 0, card: { card, reference: undefined } }];
const seen = { usage: undefined, usageUnreadable: false, outputBytes: 400, thoughtBytes: 0, isAnswered: true, promptTokens: 10 };
const n = (value: string): { name: string; value: Buffer }[] => [{ name: 'n', value: Buffer.from(value) }];

test('an estimate from bytes is never above the output that was asked for: that is what was held', () => {
  expect(chargeOf(seen, stepsOf(CARD), Infinity).costNanoUsd).toBe(110n);
  expect(chargeOf(seen, stepsOf(CARD), 60).costNanoUsd).toBe(70n);
});

test('the bound counts every choice; without max_tokens there is none', () => {
  expect(outputTokensMax({ maxTokens: 50, fields: [] })).toBe(50);
  expect(outputTokensMax({ maxTokens: 50, fields: n('3') })).toBe(150);
  expect(outputTokensMax({ maxTokens: 50, fields: n('null') })).toBe(50);
  expect(outputTokensMax({ fields: n('3') })).toBe(Infinity);
});

const told = (outputText: number, outputReasoning: number) => ({ tokens: { ...NO_TOKENS, inputUncached: 10, outputText, outputReasoning }, cachedKnown: false, reasoningKnown: outputReasoning > 0, isSuspect: false });

test.each([
  ['text only', told(100, 0), 400, 0, false],
  ['three times the text and more', told(301, 0), 400, 0, true],
  ['less than a third of the text', told(30, 0), 400, 0, true],
  ['thoughts that are not shown, told apart', told(100, 5_000), 400, 0, false],
  ['thoughts shown whole, told apart', told(100, 1_000), 4_400, 4_000, false],
  ['thoughts shown whole, told within the rest', told(1_100, 0), 4_400, 4_000, false],
  ['thoughts shown in short, told within the rest', told(5_000, 0), 800, 400, false],
  ['shown thoughts, and less than a third of the text', told(30, 0), 800, 400, true],
  ['thoughts told apart, and three times the text', told(400, 100), 800, 400, true],
])('usage of an answer with %s', (_name, usage, outputBytes, thoughtBytes, isSuspect) => {
  expect(chargeOf({ ...seen, usage, outputBytes, thoughtBytes }, stepsOf(CARD), Infinity).flags).toEqual(isSuspect ? ['suspect'] : []);
});

test.each([
  ['more tokens than any request has', { ...NO_TOKENS, inputUncached: 2_000_000_000 }, CARD],
  ['tokens that cost more than any request', { ...NO_TOKENS, outputText: 1_000_000_000, outputReasoning: 1_000_000_000 }, { ...CARD, outputText: asPrice('600000000000'), outputReasoning: asPrice('600000000000') }],
])('%s are no usage: the ledger could not book them', (_case, tokens, card) => {
  const usage = { tokens, cachedKnown: false, reasoningKnown: false, isSuspect: false };
  expect(chargeOf({ ...seen, usage }, stepsOf(card), Infinity)).toMatchObject({ source: 'ESTIMATED', flags: ['estimated', 'suspect'], tokens: { inputUncached: 10, outputText: 100 } });
});

test('figures that are no usage do not choose among steps either', () => {
  const steps = [...stepsOf(CARD), { fromPromptTokens: 1_000, card: { card: { ...CARD, id: 'dear', inputUncached: asPrice('9000000') }, reference: undefined } }];
  for (const inputUncached of [2_000_000_000, Number.NaN, -1]) {
    const usage = { tokens: { ...NO_TOKENS, inputUncached }, cachedKnown: false, reasoningKnown: false, isSuspect: false };
    expect(chargeOf({ ...seen, usage }, steps, Infinity)).toMatchObject({ source: 'ESTIMATED', costNanoUsd: 110n, cards: { card: { id: 'c' } } });
  }
});
