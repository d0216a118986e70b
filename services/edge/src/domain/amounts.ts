/** What a request may cost at most, and what is asked of the provider under a cap (BILLING, section 4). */
import type { PlannedAttempt__Output } from '@signalbox/contracts/routing';
import { assert } from '@signalbox/kernel/assert';
import { asNanoUsd, asPrice, CAP_NANO_USD_MAX, reservationCost, type NanoUsd, type NanoUsdPerMillionTokens } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import type { PriceCard } from '@signalbox/kernel/tokens';

/** A chat message's wrapping costs a few tokens; 16 bounds every known template. */
const TOKENS_PER_MESSAGE_MAX = 16;
/** Shortest answer worth giving under a cap. */
export const ANSWER_TOKENS_MIN = 64;
/** Output tokens of each choice that a hold begins with, and that it grows by. */
export const TRANCHE_TOKENS = 1_024;
/** Longest answer of a model whose bounds nobody knows, when the client names none either. */
const UNKNOWN_OUTPUT_TOKENS_MAX = 32_768;
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

/**
 * The card that bounds an attempt's cost: of prices with steps the dearest of each kind that a prompt of at most
 * `promptTokensMax` tokens can reach. It is charged at the provider's count, which may be on either side of a step.
 */
function dearestCard({ card, steps }: PlannedAttempt__Output, promptTokensMax: number, isFree: boolean): PriceCard {
  assert(card !== null, 'A planned attempt carries its price card.');
  if (isFree) return FREE_CARD;
  let worst = priceCardOf(card);
  for (const step of steps) if (step.card !== null && step.fromPromptTokens <= promptTokensMax) worst = dearerOf(worst, priceCardOf(step.card));
  return worst;
}

/** Each price the dearer of two. */
function dearerOf(a: PriceCard, b: PriceCard): PriceCard {
  return {
    id: '',
    inputUncached: dearest(a.inputUncached, b.inputUncached),
    cacheRead: dearest(a.cacheRead, b.cacheRead),
    cacheWrite: dearest(a.cacheWrite, b.cacheWrite),
    outputText: dearest(a.outputText, b.outputText),
    outputReasoning: dearest(a.outputReasoning, b.outputReasoning),
    audio: dearest(a.audio, b.audio),
    image: dearest(a.image, b.image),
    requestNanoUsd: a.requestNanoUsd > b.requestNanoUsd ? a.requestNanoUsd : b.requestNanoUsd,
  };
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
  /** On the account's own credential: tokens count, money does not. */
  readonly isFree?: boolean;
}

const FREE_PRICE = asPrice(0n);
/** What an account pays for what runs on its own credential. */
const FREE_CARD: PriceCard = {
  id: '', inputUncached: FREE_PRICE, cacheRead: FREE_PRICE, cacheWrite: FREE_PRICE, outputText: FREE_PRICE, outputReasoning: FREE_PRICE, audio: FREE_PRICE, image: FREE_PRICE, requestNanoUsd: asNanoUsd(0n),
};

export interface Hold {
  readonly amountNanoUsd: NanoUsd;
  /** The least worth admitting: prompt and 64 tokens; 0 when nothing limits. */
  readonly minAmountNanoUsd: NanoUsd;
  readonly tokens: bigint;
  /** Likewise in tokens. */
  readonly minTokens: bigint;
  /** The hold covers the first tranche only: the worker extends it while the answer grows. */
  readonly isTranched: boolean;
}

/** Longest answer of each choice that the attempt may give, in tokens. */
function outputTokensMax({ maxOutputTokens, contextWindow }: PlannedAttempt__Output, promptTokensMax: number, maxTokens: number | undefined): number {
  const modelMax = maxOutputTokens > 0 ? maxOutputTokens : Infinity;
  if (maxTokens !== undefined) return Math.min(maxTokens, modelMax);
  // Hosts refuse a bound that the prompt leaves no room for. A prompt has at least one token in eight bytes or so.
  const left = contextWindow > 0 ? Math.max(ANSWER_TOKENS_MIN, contextWindow - promptTokensMax, Math.floor(contextWindow / 8)) : Infinity;
  const most = Math.min(modelMax, left);
  return most === Infinity ? UNKNOWN_OUTPUT_TOKENS_MAX : most;
}

/** The hold covers the dearest attempt of the plan at the dearest card in reach, so that neither failover nor the provider's count outgrows it. */
export function holdFor({ attempts, promptTokensMax: prompt, maxTokens, choices, isLimited, isFree = false }: HoldQuestion): Hold {
  let amount = 0n;
  let least = 0n;
  let outputTokens = 1;
  let isTranched = false;
  // Thoughts that are not shown cannot be counted while they come.
  const mayGrow = isLimited && attempts.every((attempt) => !attempt.hiddenReasoning);
  for (const attempt of attempts) {
    const card = dearestCard(attempt, prompt, isFree);
    const whole = isLimited ? outputTokensMax(attempt, prompt, maxTokens) : Math.min(maxTokens ?? UNLIMITED_HELD_OUTPUT_TOKENS, attempt.maxOutputTokens || Infinity);
    const first = mayGrow ? Math.min(whole, TRANCHE_TOKENS) : whole;
    isTranched ||= first < whole;
    if (first > outputTokens) outputTokens = first;
    const cost = worstCost(card, prompt, first * choices);
    if (cost > amount) amount = cost;
    if (!isLimited) continue;
    const short = worstCost(card, prompt, Math.min(whole, ANSWER_TOKENS_MIN) * choices);
    if (short > least) least = short;
  }
  return {
    amountNanoUsd: asNanoUsd(amount < CAP_NANO_USD_MAX ? amount : CAP_NANO_USD_MAX),
    minAmountNanoUsd: asNanoUsd(least < CAP_NANO_USD_MAX ? least : CAP_NANO_USD_MAX),
    tokens: BigInt(prompt + outputTokens * choices),
    minTokens: isLimited ? BigInt(prompt + Math.min(outputTokens, ANSWER_TOKENS_MIN) * choices) : 0n,
    isTranched,
  };
}

/** What admission granted to a request under a limit. */
export interface Granted {
  readonly heldNanoUsd: NanoUsd;
  /** 0 = a quota of an older version, which says nothing of tokens and room. */
  readonly heldTokens: number;
  /** What limits leave, live holds not counted; undefined = no such limit. */
  readonly roomNanoUsd: NanoUsd | undefined;
  readonly roomTokens: number | undefined;
}

export interface AnswerTerms {
  /** What the provider is sent as `max_tokens`, for each choice. */
  readonly maxTokens: number;
  /** A limit made it less than it would have been. */
  readonly isShortened: boolean;
  /** Output tokens, all choices together, that the hold pays for; 0 = the whole answer. */
  readonly heldOutputTokens: number;
  /** Of the dearest kind of output: what the hold grows by for each token. */
  readonly outputPriceMax: NanoUsdPerMillionTokens;
  /** Covers the prompt and the whole answer. */
  readonly wholeNanoUsd: NanoUsd;
}

/**
 * How long an attempt's answer may be: the whole that the limits leave room for when the hold can grow, else what is
 * held. Live holds of others shorten nothing: they only keep the hold from growing.
 */
export function answerTerms(attempt: PlannedAttempt__Output, { promptTokensMax: prompt, maxTokens, choices, isFree = false }: HoldQuestion, isTranched: boolean, granted: Granted): AnswerTerms {
  const card = dearestCard(attempt, prompt, isFree);
  const asked = outputTokensMax(attempt, prompt, maxTokens);
  const within = (nanoUsd: NanoUsd | undefined, tokens: number | undefined): number => {
    const paid = nanoUsd === undefined ? asked : affordableOutputTokens(card, nanoUsd, prompt, asked, choices);
    return tokens === undefined ? paid : Math.max(1, Math.min(paid, Math.floor((tokens - prompt) / choices)));
  };
  const held = within(granted.heldNanoUsd, granted.heldTokens === 0 ? undefined : granted.heldTokens);
  const whole = isTranched && granted.heldTokens > 0 ? Math.max(held, within(granted.roomNanoUsd, granted.roomTokens)) : held;
  return { maxTokens: whole, isShortened: whole < asked, heldOutputTokens: held < whole ? held * choices : 0, outputPriceMax: boundsOf(card).output, wholeNanoUsd: worstCost(card, prompt, whole * choices) };
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
