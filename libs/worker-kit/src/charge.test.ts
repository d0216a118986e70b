import { describe, expect, test } from '@jest/globals';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import { chargeOf, heldPrompt, outputTokensMax } from './charge.js';

const price = asPrice('1000000');
const CARD = { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) };
const stepsOf = (card: typeof CARD) => [{ fromPromptTokens: 0, card: { card, reference: undefined } }];
const seen = { usage: undefined, usageUnreadable: false, outputBytes: 400, thoughtBytes: 0, isAnswered: true, promptTokens: 10 };
const n = (value: string): { name: string; value: Buffer }[] => [{ name: 'n', value: Buffer.from(value) }];

test('an estimate from bytes is never above the output that was asked for and held', () => {
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

const prompt = (buckets: object, isSuspect = false) => ({ tokens: { ...NO_TOKENS, ...buckets }, cachedKnown: true, reasoningKnown: false, isSuspect });

test('of an answer that broke off, the prompt is as the provider reported it and the output is estimated', () => {
  const card = { ...CARD, inputUncached: asPrice('5000000000'), cacheRead: asPrice('500000000'), cacheWrite: asPrice('6250000000'), outputText: asPrice('25000000000') };
  const broken = { ...seen, promptTokens: 100_043, outputBytes: 12 };
  const promptUsage = prompt({ inputUncached: 3, cacheRead: 100_000, cacheWrite: 40 });
  expect(chargeOf(broken, stepsOf(card), Infinity)).toMatchObject({ costNanoUsd: 500_290_000n, flags: ['estimated'] });
  expect(chargeOf({ ...broken, promptUsage }, stepsOf(card), Infinity)).toEqual({
    cards: { card, reference: undefined }, tokens: { ...NO_TOKENS, inputUncached: 3, cacheRead: 100_000, cacheWrite: 40, outputText: 3 }, source: 'ESTIMATED', flags: ['estimated'], costNanoUsd: 50_340_000n, savingsNanoUsd: 0n,
  });
  expect(chargeOf({ ...broken, promptUsage, outputBytes: 4_000 }, stepsOf(card), 60).tokens.outputText).toBe(60);
});

test('an early report of the prompt is ignored if there is final usage, or no answer', () => {
  const promptUsage = prompt({ inputUncached: 7 });
  expect(chargeOf({ ...seen, usage: told(100, 0), promptUsage }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'PROVIDER', flags: [], tokens: { inputUncached: 10 } });
  expect(chargeOf({ ...seen, promptUsage, isAnswered: false }, stepsOf(CARD), Infinity)).toMatchObject({ flags: [], tokens: NO_TOKENS, costNanoUsd: 0n });
});

test.each([
  ['contradicts itself', prompt({ inputUncached: 10 }, true), 10],
  ['is far from our own count', prompt({ inputUncached: 1_000 }), 1_000],
  ['cannot be booked', prompt({ inputUncached: 2_000_000_000 }), 10],
])('a reported prompt that %s is suspect', (_case, promptUsage, inputUncached) => {
  expect(chargeOf({ ...seen, promptUsage }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'ESTIMATED', flags: ['estimated', 'suspect'], tokens: { inputUncached, outputText: 100 } });
});

test('a reported prompt above what was held for it is ignored; without a hold in tokens, only one that cannot be booked', () => {
  const hold = { heldTokens: '1600', heldOutputTokens: 1_024, earlierTokens: '500' };
  expect(heldPrompt(prompt({ cacheRead: 70, inputUncached: 6 }), hold)).toBeDefined();
  expect(heldPrompt(prompt({ cacheRead: 70, inputUncached: 7 }), hold)).toBeUndefined();
  const none = { heldTokens: '0', heldOutputTokens: 0, earlierTokens: '0' };
  expect(heldPrompt(prompt({ cacheRead: 1_000_000 }), none)).toBeDefined();
  expect(heldPrompt(prompt({ cacheRead: 1_000_000_001 }), none)).toBeUndefined();
  expect(heldPrompt(undefined, none)).toBeUndefined();
});

test.each([
  ['more tokens than any request has', { ...NO_TOKENS, inputUncached: 2_000_000_000 }, CARD],
  ['tokens that cost more than any request', { ...NO_TOKENS, outputText: 1_000_000_000, outputReasoning: 1_000_000_000 }, { ...CARD, outputText: asPrice('600000000000'), outputReasoning: asPrice('600000000000') }],
])('%s are ignored, since the ledger could not book them', (_case, tokens, card) => {
  const usage = { tokens, cachedKnown: false, reasoningKnown: false, isSuspect: false };
  expect(chargeOf({ ...seen, usage }, stepsOf(card), Infinity)).toMatchObject({ source: 'ESTIMATED', flags: ['estimated', 'suspect'], tokens: { inputUncached: 10, outputText: 100 } });
});

test('figures that cannot be booked do not select a price step either', () => {
  const steps = [...stepsOf(CARD), { fromPromptTokens: 1_000, card: { card: { ...CARD, id: 'dear', inputUncached: asPrice('9000000') }, reference: undefined } }];
  for (const inputUncached of [2_000_000_000, Number.NaN, -1]) {
    const usage = { tokens: { ...NO_TOKENS, inputUncached }, cachedKnown: false, reasoningKnown: false, isSuspect: false };
    expect(chargeOf({ ...seen, usage }, steps, Infinity)).toMatchObject({ source: 'ESTIMATED', costNanoUsd: 110n, cards: { card: { id: 'c' } } });
  }
});

test('a refused attempt costs nothing, not even the fee per request; an answered one includes the fee', () => {
  const withFee = stepsOf({ ...CARD, requestNanoUsd: asNanoUsd(5n) });
  expect(chargeOf({ ...seen, isAnswered: false }, withFee, Infinity)).toMatchObject({ costNanoUsd: 0n, savingsNanoUsd: 0n, source: 'ESTIMATED', flags: [] });
  expect(chargeOf(seen, withFee, Infinity).costNanoUsd).toBe(115n);
});

const WITH_IMAGE = { ...seen, promptTokens: 1_009, mediaTokens: 1_000 };

test.each([
  ['a picture in low detail', 94, false],
  ['a large one, as small models count it', 48_178, false],
  ['less than a third of the text beside it', 30, true],
  ['more than any picture is', 160_000, true],
])('the tokens of an image are only estimated: a prompt reported with %s', (_case, inputUncached, isSuspect) => {
  const usage = { ...told(100, 0), tokens: { ...NO_TOKENS, inputUncached, outputText: 100 } };
  expect(chargeOf({ ...WITH_IMAGE, promptTokens: 1_100, usage }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'PROVIDER', flags: isSuspect ? ['suspect'] : [], tokens: { inputUncached } });
});

describe('usage reported by an account’s own server, which counts against its allotment', () => {
  const OWN = { ...seen, isAccountsWord: true, promptTokens: 400, outputBytes: 4_000 };
  const usageOf = (tokens: object, isSuspect = false) => ({ tokens: { ...NO_TOKENS, ...tokens }, cachedKnown: false, reasoningKnown: false, isSuspect });

  test.each([
    ['nothing', { }, { inputUncached: 400, outputText: 1_000 }],
    ['a token of each', { inputUncached: 1, outputText: 1 }, { inputUncached: 400, outputText: 1_000 }],
    ['no answer', { inputUncached: 380, outputText: 0 }, { inputUncached: 380, outputText: 1_000 }],
    ['no prompt', { outputText: 900, outputReasoning: 50 }, { inputUncached: 400, outputText: 900, outputReasoning: 50 }],
    ['a cached token for all of the prompt', { cacheRead: 1, outputText: 900 }, { inputUncached: 400, outputText: 900 }],
  ])('is replaced by our count if it is less than a third of what was seen: %s', (_case, tokens, booked) => {
    expect(chargeOf({ ...OWN, usage: usageOf(tokens) }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'ESTIMATED', flags: ['estimated', 'suspect'], tokens: { ...NO_TOKENS, ...booked } });
  });

  test('is booked as reported if it is at least a third of our count, without an upper limit', () => {
    for (const tokens of [{ inputUncached: 140, outputText: 340 }, { inputUncached: 40_000, outputText: 1_000 }]) {
      expect(chargeOf({ ...OWN, usage: usageOf(tokens) }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'PROVIDER', tokens: { ...NO_TOKENS, ...tokens } });
    }
  });

  test('is booked as reported for a short message unless it is zero: not every server counts the text around a message', () => {
    const few = { ...OWN, promptTokens: 9, outputBytes: 30 };
    expect(chargeOf({ ...few, usage: usageOf({ inputUncached: 2, outputText: 1 }) }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'PROVIDER', flags: [] });
    expect(chargeOf({ ...few, usage: usageOf({}) }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'ESTIMATED', tokens: { inputUncached: 9, outputText: 8 } });
  });

  test('is compared with the text only, without images', () => {
    const pictured = { ...OWN, promptTokens: 1_100, mediaTokens: 1_000 };
    expect(chargeOf({ ...pictured, usage: usageOf({ inputUncached: 94, outputText: 1_000 }) }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'PROVIDER', tokens: { inputUncached: 94 } });
    expect(chargeOf({ ...pictured, usage: usageOf({ inputUncached: 3, outputText: 1_000 }) }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'ESTIMATED', tokens: { inputUncached: 1_100 } });
  });

  test('is compared without tools and schemas, which not every server passes to its model', () => {
    const defined = { ...OWN, promptTokens: 1_400, definitionTokens: 1_000 };
    expect(chargeOf({ ...defined, usage: usageOf({ inputUncached: 380, outputText: 1_000 }) }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'PROVIDER', tokens: { inputUncached: 380 } });
    expect(chargeOf({ ...defined, usage: usageOf({ inputUncached: 20, outputText: 1_000 }) }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'ESTIMATED', tokens: { inputUncached: 1_400 } });
    expect(chargeOf({ ...defined, promptTokens: 1_009, usage: usageOf({ outputText: 1_000 }) }, stepsOf(CARD), Infinity)).toMatchObject({ source: 'ESTIMATED', tokens: { inputUncached: 1_009 } });
  });

  test('is checked in the same way for the prompt of an answer that broke off', () => {
    expect(chargeOf({ ...OWN, promptUsage: usageOf({ inputUncached: 1 }) }, stepsOf(CARD), Infinity)).toMatchObject({ flags: ['estimated', 'suspect'], tokens: { inputUncached: 400, outputText: 1_000 } });
    expect(chargeOf({ ...OWN, promptUsage: usageOf({ inputUncached: 390 }) }, stepsOf(CARD), Infinity)).toMatchObject({ flags: ['estimated'], tokens: { inputUncached: 390, outputText: 1_000 } });
  });

  test('is never replaced by more output than was asked for if the server can have kept to that, and not at all if it gave no answer', () => {
    for (const asked of [60, 400]) expect(chargeOf({ ...OWN, outputBytes: asked * 12, usage: usageOf({ inputUncached: 400 }) }, stepsOf(CARD), asked).tokens.outputText).toBe(asked);
    // A long word may be a single token.
    expect(chargeOf({ ...OWN, outputBytes: 64, usage: usageOf({ inputUncached: 400 }) }, stepsOf(CARD), 1).tokens.outputText).toBe(1);
    expect(chargeOf({ ...OWN, isAnswered: false, usage: usageOf({}) }, stepsOf(CARD), Infinity)).toMatchObject({ tokens: NO_TOKENS, costNanoUsd: 0n });
  });

  test('cannot hide an answer that is far longer than max_tokens allowed', () => {
    for (const asked of [1, 60, 300]) {
      expect(chargeOf({ ...OWN, usage: usageOf({ inputUncached: 400, outputText: 1 }) }, stepsOf(CARD), asked)).toMatchObject({ source: 'ESTIMATED', flags: ['estimated', 'suspect'], tokens: { inputUncached: 400, outputText: 1_000 } });
      expect(chargeOf(OWN, stepsOf(CARD), asked).tokens.outputText).toBe(1_000);
      // For a provider the bound is what was held, and its own figures are those that it bills.
      expect(chargeOf({ ...OWN, isAccountsWord: false }, stepsOf(CARD), asked).tokens.outputText).toBe(asked);
    }
    expect(chargeOf({ ...OWN, usage: usageOf({ inputUncached: 400, outputText: 900 }) }, stepsOf(CARD), 60)).toMatchObject({ source: 'PROVIDER', tokens: { outputText: 900 } });
  });

  test('the price is that for the prompt as booked', () => {
    const steps = [...stepsOf(CARD), { fromPromptTokens: 300, card: { card: { ...CARD, id: 'dear' }, reference: undefined } }];
    expect(chargeOf({ ...OWN, usage: usageOf({ inputUncached: 1, outputText: 1_000 }) }, steps, Infinity).cards.card.id).toBe('dear');
  });
});
