import { describe, expect, test } from '@jest/globals';
import { asNanoUsd, reservationCost } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { cardFor, costOf, NO_TOKENS } from '@signalbox/kernel/tokens';
import { cardWith, plannedAt } from '../testing/callers.js';
import { affordableOutputTokens, answerTerms, holdFor, promptTokensMax } from './amounts.js';

/** A seeded random generator. */
function draws(seed: number): (max: number) => number {
  let state = seed;
  return (max) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % max;
  };
}

const price = (draw: (max: number) => number): string => String(BigInt(draw(2_000_000_000)) * BigInt(1 + draw(50)));
const drawnCard = (draw: (max: number) => number) =>
  cardWith({ inputUncached: price(draw), cacheRead: price(draw), cacheWrite: price(draw), outputText: price(draw), outputReasoning: price(draw), requestNanoUsd: String(draw(1_000_000)) });

describe('hold', () => {
  test('covers every cost within its tokens, for any attempt of the plan', () => {
    const draw = draws(7);
    for (let round = 0; round < 500; round += 1) {
      const whole = { maxOutputTokens: 0, hiddenReasoning: true };
      const attempts = [plannedAt('a', { card: drawnCard(draw), ...whole }), plannedAt('b', { card: drawnCard(draw), ...whole })];
      const prompt = 1 + draw(200_000);
      const maxTokens = 1 + draw(8_000);
      const choices = 1 + draw(3);
      const hold = holdFor({ attempts, promptTokensMax: prompt, maxTokens, choices, isLimited: true });
      const cacheRead = draw(prompt + 1);
      const reasoning = draw(maxTokens * choices + 1);
      const tokens = { ...NO_TOKENS, cacheRead, inputUncached: prompt - cacheRead, outputReasoning: reasoning, outputText: maxTokens * choices - reasoning };
      for (const { card } of attempts) if (card !== null) expect(costOf(tokens, priceCardOf(card)) <= hold.amountNanoUsd).toBe(true);
      expect(hold.minAmountNanoUsd <= hold.amountNanoUsd).toBe(true);
    }
  });

  test.each([
    { maxTokens: undefined, model: 8_192, isLimited: true, output: 1_024 },
    { maxTokens: undefined, model: 8_192, isLimited: false, output: 1_024 },
    { maxTokens: undefined, model: 512, isLimited: true, output: 512 },
    { maxTokens: undefined, model: 0, isLimited: true, output: 1_024 },
    { maxTokens: 10, model: 8_192, isLimited: true, output: 10 },
    { maxTokens: 1_000_000, model: 8_192, isLimited: true, output: 1_024 },
    { maxTokens: 1_000_000, model: 0, isLimited: true, output: 1_024 },
    { maxTokens: 1_000_000, model: 8_192, isLimited: false, output: 8_192 },
  ])('holds $output tokens for max_tokens $maxTokens, a model of $model, limited: $isLimited', ({ maxTokens, model, isLimited, output }) => {
    expect(holdFor({ attempts: [plannedAt('a', { maxOutputTokens: model })], promptTokensMax: 1, maxTokens, choices: 1, isLimited }).tokens).toBe(BigInt(1 + output));
  });

  test('of a first tranche grows to the whole at the highest price of output', () => {
    const draw = draws(13);
    for (let round = 0; round < 500; round += 1) {
      const attempt = plannedAt('a', { card: drawnCard(draw), maxOutputTokens: 0 });
      const question = { attempts: [attempt], promptTokensMax: 1 + draw(20_000), maxTokens: 1_025 + draw(8_000), choices: 1 + draw(3), isLimited: true };
      const hold = holdFor(question);
      const whole = holdFor({ ...question, attempts: [{ ...attempt, hiddenReasoning: true }] });
      // Up to the smallest amount that pays for another token may be left over, since the parts are rounded up separately.
      const room = asNanoUsd(whole.amountNanoUsd + 2n);
      const terms = answerTerms(attempt, question, hold.isTranched, { heldNanoUsd: hold.amountNanoUsd, heldTokens: Number(hold.tokens), roomNanoUsd: room, roomTokens: undefined });
      expect([terms.maxTokens, terms.isShortened, terms.heldOutputTokens <= 1_024 * question.choices]).toEqual([question.maxTokens, false, true]);
      const grown = hold.amountNanoUsd + reservationCost(BigInt(terms.maxTokens * question.choices - terms.heldOutputTokens) * terms.outputPriceMax);
      expect([terms.wholeNanoUsd, grown >= whole.amountNanoUsd]).toEqual([whole.amountNanoUsd, true]);
    }
  });

  test('is bounded even if neither the model nor the client sets a bound', () => {
    const question = { attempts: [plannedAt('a', { maxOutputTokens: 0 })], promptTokensMax: 10, maxTokens: undefined, choices: 1, isLimited: true };
    const terms = answerTerms(plannedAt('a', { maxOutputTokens: 0 }), question, true, { heldNanoUsd: asNanoUsd(9n ** 15n), heldTokens: 1_034, roomNanoUsd: undefined, roomTokens: undefined });
    expect(terms.maxTokens).toBe(32_768);
  });

  describe('for prices with steps', () => {
    const dear = cardWith({ id: 'card_2', inputUncached: '3000000000', outputText: '2000000000', outputReasoning: '8000000000', requestNanoUsd: '7' });
    const steps = [{ fromPromptTokens: 0, card: cardWith() }, { fromPromptTokens: 1_000, card: dear }];
    const of = (promptTokensMax: number, card = cardWith()) => ({ attempts: [plannedAt('a', { card, steps })], promptTokensMax, maxTokens: 100, choices: 1, isLimited: true });

    test('uses the ordinary price if no count of the prompt can reach the step', () => {
      expect(holdFor(of(999))).toEqual(holdFor({ ...of(999), attempts: [plannedAt('a')] }));
    });

    test.each([1_000, 4_000])('uses the highest price if the prompt may reach the step, on whichever side the estimate is, with a bound of %d', (most) => {
      for (const card of [cardWith(), dear]) {
        const hold = holdFor(of(most, card));
        expect([hold.amountNanoUsd, hold.minAmountNanoUsd]).toEqual([BigInt(most) * 3_000n + 100n * 8_000n + 7n, BigInt(most) * 3_000n + 64n * 8_000n + 7n]);
      }
    });

    test('grows at the highest price of output in reach, and shortens the answer accordingly', () => {
      const question = { ...of(1_000), maxTokens: 5_000 };
      const attempt = plannedAt('a', { steps });
      const hold = holdFor(question);
      const granted = { heldNanoUsd: hold.amountNanoUsd, heldTokens: Number(hold.tokens), roomNanoUsd: asNanoUsd(1_000n * 3_000n + 2_000n * 8_000n + 7n), roomTokens: undefined };
      expect(answerTerms(attempt, question, hold.isTranched, granted)).toEqual({ maxTokens: 2_000, isShortened: true, heldOutputTokens: 1_024, outputPriceMax: 8_000_000_000n, wholeNanoUsd: granted.roomNanoUsd });
      expect(answerTerms(attempt, { ...question, promptTokensMax: 999 }, hold.isTranched, granted).outputPriceMax).toBe(2_000_000_000n);
    });

    test('is 0 on the account’s own credential', () => {
      expect(holdFor({ ...of(1_000), isFree: true }).amountNanoUsd).toBe(0n);
    });

    test('covers every cost within its tokens, on either side of a step', () => {
      const draw = draws(17);
      for (let round = 0; round < 500; round += 1) {
        const drawn = [0, 1 + draw(5_000), 5_001 + draw(5_000)].map((fromPromptTokens) => ({ fromPromptTokens, card: drawnCard(draw) }));
        const most = 1 + draw(12_000);
        const maxTokens = 1 + draw(1_000);
        const hold = holdFor({ attempts: [plannedAt('a', { card: drawn[0]?.card ?? null, steps: drawn, maxOutputTokens: 0, hiddenReasoning: true })], promptTokensMax: most, maxTokens, choices: 1, isLimited: true });
        const tokens = { ...NO_TOKENS, inputUncached: draw(most + 1), outputText: maxTokens };
        const card = cardFor(drawn, tokens.inputUncached);
        expect(card !== undefined && costOf(tokens, priceCardOf(card)) <= hold.amountNanoUsd).toBe(true);
      }
    });
  });

  test('has no minimum if no limit counts the request', () => {
    expect(holdFor({ attempts: [plannedAt('a')], promptTokensMax: 1, maxTokens: 5, choices: 1, isLimited: false }).minAmountNanoUsd).toBe(0n);
  });

  test('counts one token for each byte and sixteen for each message', () => {
    expect(promptTokensMax(1_000, 3)).toBe(1_048);
  });
});

describe('affordable output', () => {
  test('never costs more than is held, and leaves less than one token unused', () => {
    const draw = draws(11);
    for (let round = 0; round < 500; round += 1) {
      const card = priceCardOf(drawnCard(draw));
      const prompt = 1 + draw(10_000);
      const choices = 1 + draw(3);
      const asked = 1 + draw(8_000);
      const worst = (output: number): bigint => {
        const dearestIn = [card.inputUncached, card.cacheRead, card.cacheWrite].reduce((a, b) => (a > b ? a : b));
        const dearestOut = card.outputText > card.outputReasoning ? card.outputText : card.outputReasoning;
        return (BigInt(prompt) * dearestIn + BigInt(output * choices) * dearestOut + 999_999n) / 1_000_000n + card.requestNanoUsd;
      };
      const held = worst(1) + BigInt(draw(1_000_000_000));
      const output = affordableOutputTokens(card, asNanoUsd(held), prompt, asked, choices);
      if (output > 1) expect(worst(output) <= held).toBe(true);
      if (output < asked) expect(worst(output + 1) >= held - 1n).toBe(true);
      expect(output >= 1 && output <= asked).toBe(true);
    }
  });

  test('is one token if the prompt alone uses up the hold, and all if output is free', () => {
    expect(affordableOutputTokens(priceCardOf(cardWith()), asNanoUsd(1n), 1_000, 50, 1)).toBe(1);
    expect(affordableOutputTokens(priceCardOf(cardWith({ outputText: '0', outputReasoning: '0' })), asNanoUsd(0n), 1, 50, 1)).toBe(50);
  });
});
