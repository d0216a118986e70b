/** What a request may cost at most, and what is asked of the provider under a cap (BILLING, section 4). */
import type { PlannedAttempt__Output } from '@signalbox/contracts/routing';
import { assert } from '@signalbox/kernel/assert';
import { asNanoUsd, reservationCost, type NanoUsd, type NanoUsdPerMillionTokens } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import type { PriceCard } from '@signalbox/kernel/tokens';

/** A chat message's wrapping costs a few tokens; 16 bounds every known template. */
const TOKENS_PER_MESSAGE_MAX = 16;
/** Shortest answer worth giving under a cap. */
export const ANSWER_TOKENS_MIN = 64;
/** Output held for an account under a limit when the client names no bound. */
const DEFAULT_HELD_OUTPUT_TOKENS = 4_096;
/** Output held where no limit watches: the hold is then only shown. */
const UNLIMITED_HELD_OUTPUT_TOKENS = 1_024;

/** What bounds a cost at one card: the dearest price of either side. */
interface Bounds {
  readonly input: NanoUsdPerMillionTokens;
  readonly output: NanoUsdPerMillionTokens;
}

const dearest = (...prices: NanoUsdPerMillionTokens[]): NanoUsdPerMillionTokens => prices.reduce((a, b) => (a > b ? a : b));

const knownBounds = new WeakMap<PriceCard, Bounds>();

function boundsOf(card: PriceCard): Bounds {
  let bounds = knownBounds.get(card);
  if (bounds === undefined) {
    bounds = { input: dearest(card.inputUncached, card.cacheRead, card.cacheWrite, card.audio, card.image), output: dearest(card.outputText, card.outputReasoning) };
    knownBounds.set(card, bounds);
  }
  return bounds;
}

/** Upper bound of the prompt's tokens: a byte-level token is at least a byte. */
export function promptTokensMax(promptBytes: number, messageCount: number): number {
  return promptBytes + TOKENS_PER_MESSAGE_MAX * messageCount;
}

function worstCost(card: PriceCard, promptTokens: number, outputTokens: number): NanoUsd {
  const { input, output } = boundsOf(card);
  return asNanoUsd(reservationCost(BigInt(promptTokens) * input + BigInt(outputTokens) * output) + card.requestNanoUsd);
}

export interface HoldQuestion {
  readonly attempts: readonly PlannedAttempt__Output[];
  readonly promptTokensMax: number;
  readonly maxTokens: number | undefined;
  readonly choices: number;
  /** A cap, credit or hard allotment watches this request. */
  readonly isLimited: boolean;
}

export interface Hold {
  readonly amountNanoUsd: NanoUsd;
  /** The least worth admitting: prompt and 64 tokens; 0 when nothing limits. */
  readonly minAmountNanoUsd: NanoUsd;
  readonly tokens: bigint;
  /** Output tokens the amount covers for each choice. */
  readonly outputTokens: number;
}

/** The hold covers the dearest attempt of the plan, so that failover never outgrows it. */
export function holdFor({ attempts, promptTokensMax: prompt, maxTokens, choices, isLimited }: HoldQuestion): Hold {
  const modelMax = attempts.every((attempt) => attempt.maxOutputTokens > 0) ? attempts.reduce((most, attempt) => Math.max(most, attempt.maxOutputTokens), 1) : Number.MAX_SAFE_INTEGER;
  const asked = maxTokens ?? (isLimited ? DEFAULT_HELD_OUTPUT_TOKENS : UNLIMITED_HELD_OUTPUT_TOKENS);
  const outputTokens = Math.min(asked, modelMax);
  let amount = 0n;
  let least = 0n;
  for (const attempt of attempts) {
    assert(attempt.card !== null, 'A planned attempt carries its price card.');
    const card = priceCardOf(attempt.card);
    const whole = worstCost(card, prompt, outputTokens * choices);
    if (whole > amount) amount = whole;
    if (!isLimited) continue;
    const short = worstCost(card, prompt, Math.min(outputTokens, ANSWER_TOKENS_MIN) * choices);
    if (short > least) least = short;
  }
  return {
    amountNanoUsd: asNanoUsd(amount),
    minAmountNanoUsd: asNanoUsd(least),
    tokens: BigInt(prompt + outputTokens * choices),
    outputTokens,
  };
}

/**
 * Output tokens for each choice that `held` pays for at this attempt's card: what is sent upstream as
 * `max_tokens` under a limit. Never above `outputTokens`.
 */
export function affordableOutputTokens(card: PriceCard, held: NanoUsd, promptTokens: number, outputTokens: number, choices: number): number {
  const price = boundsOf(card).output;
  if (price === 0n) return outputTokens;
  const left = held - worstCost(card, promptTokens, 0);
  if (left <= 0n) return 1;
  const each = (left * 1_000_000n) / (price * BigInt(choices));
  return Math.max(1, Math.min(outputTokens, Number(each)));
}
