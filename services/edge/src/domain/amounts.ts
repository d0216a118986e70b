/** What a request may cost at most, and how long an answer the provider is asked for under a limit (docs/caps.md). */
import type { PlannedAttempt__Output } from '@signalbox/contracts/routing';
import { assert } from '@signalbox/kernel/assert';
import { asNanoUsd, asPrice, CAP_NANO_USD_MAX, reservationCost, type NanoUsd, type NanoUsdPerMillionTokens } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import type { PriceCard } from '@signalbox/kernel/tokens';
import type { ChatRequest } from './chat-request.js';

/** A chat template adds a few tokens to each message; 16 bounds every known template. */
const TOKENS_PER_MESSAGE_MAX = 16;
/** Shortest answer worth giving under a cap. */
export const ANSWER_TOKENS_MIN = 64;
/** Output tokens of each choice that a hold starts with, and grows by. */
export const TRANCHE_TOKENS = 1_024;
/** Longest answer if neither the model's bounds nor one of the client is known. */
const UNKNOWN_OUTPUT_TOKENS_MAX = 32_768;
/** Output tokens held if no limit counts the request: the hold is then only displayed. */
const UNLIMITED_HELD_OUTPUT_TOKENS = 1_024;

/** The highest price of each side of a card, which bounds a cost. */
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
 * The card that bounds an attempt's cost: if prices have steps by prompt length, the highest of each kind that a prompt of at
 * most `promptTokensMax` tokens can reach. The charge uses the provider's count of tokens, which may be on either side of a step.
 */
function dearestCard({ card, steps }: PlannedAttempt__Output, promptTokensMax: number, isFree: boolean): PriceCard {
  assert(card !== null, 'A planned attempt carries its price card.');
  if (isFree) return FREE_CARD;
  let worst = priceCardOf(card);
  for (const step of steps) if (step.card !== null && step.fromPromptTokens <= promptTokensMax) worst = dearerOf(worst, priceCardOf(step.card));
  return worst;
}

/** The higher of both cards' prices, for each kind. */
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

/** The estimate has four bytes to a token. English and code come close to it, Russian has eight, Hindi ten; no tokenizer averages sixteen over a long text. */
const ESTIMATE_FACTOR_MAX = 4;

/** Lower bound of the prompt's tokens. Images, sound and files may count as hardly anything. */
export function promptTokensMin({ promptTokens, mediaTokens }: Pick<ChatRequest, 'promptTokens' | 'mediaTokens'>): number {
  return Math.floor((promptTokens - mediaTokens) / ESTIMATE_FACTOR_MAX);
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
  /** A cap, credit or hard allotment counts this request. */
  readonly isLimited: boolean;
  /** On the account's own credential: tokens count, money does not. */
  readonly isFree?: boolean;
}

const FREE_PRICE = asPrice(0n);
/** The card of attempts on the account's own credential, which cost it nothing here. */
const FREE_CARD: PriceCard = {
  id: '', inputUncached: FREE_PRICE, cacheRead: FREE_PRICE, cacheWrite: FREE_PRICE, outputText: FREE_PRICE, outputReasoning: FREE_PRICE, audio: FREE_PRICE, image: FREE_PRICE, requestNanoUsd: asNanoUsd(0n),
};

export interface Hold {
  readonly amountNanoUsd: NanoUsd;
  /** The least worth admitting: prompt and 64 tokens; 0 when no limit counts the request. */
  readonly minAmountNanoUsd: NanoUsd;
  readonly tokens: bigint;
  /** The same in tokens. */
  readonly minTokens: bigint;
  /** The hold covers the first tranche only: the worker extends it while the answer grows. */
  readonly isTranched: boolean;
}

/** Longest answer of each choice that the attempt may give, in tokens. */
function outputTokensMax({ maxOutputTokens, contextWindow }: PlannedAttempt__Output, promptTokensMax: number, maxTokens: number | undefined): number {
  const modelMax = maxOutputTokens > 0 ? maxOutputTokens : Infinity;
  if (maxTokens !== undefined) return Math.min(maxTokens, modelMax);
  // Hosts refuse a bound that does not fit into the context beside the prompt. `promptTokensMax` counts bytes, of which a token has up to about eight.
  const left = contextWindow > 0 ? Math.max(ANSWER_TOKENS_MIN, contextWindow - promptTokensMax, Math.floor(contextWindow / 8)) : Infinity;
  const most = Math.min(modelMax, left);
  return most === Infinity ? UNKNOWN_OUTPUT_TOKENS_MAX : most;
}

/** The hold covers the most expensive attempt of the plan at the highest prices it can reach, so that neither a failover nor the provider's count exceeds it. */
export function holdFor({ attempts, promptTokensMax: prompt, maxTokens, choices, isLimited, isFree = false }: HoldQuestion): Hold {
  let amount = 0n;
  let least = 0n;
  let outputTokens = 1;
  let isTranched = false;
  // Hidden reasoning cannot be counted while it is generated, so such a hold covers the whole answer from the start.
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
  /** 0 = a quota of an older version, which does not tell tokens and room. */
  readonly heldTokens: number;
  /** What limits leave, live holds not counted; undefined = no such limit. */
  readonly roomNanoUsd: NanoUsd | undefined;
  readonly roomTokens: number | undefined;
}

export interface AnswerTerms {
  /** What the provider is sent as `max_tokens`, for each choice. */
  readonly maxTokens: number;
  /** True when a limit made `maxTokens` smaller. */
  readonly isShortened: boolean;
  /** Output tokens, all choices together, that the hold pays for; 0 = the whole answer. */
  readonly heldOutputTokens: number;
  /** Price of the most expensive kind of output: the hold grows by it for each token. */
  readonly outputPriceMax: NanoUsdPerMillionTokens;
  /** Covers the prompt and the whole answer. */
  readonly wholeNanoUsd: NanoUsd;
}

/**
 * How long an attempt's answer may be: as long as the limits leave room for if the hold can grow, else as long as the hold
 * pays for. Holds of other running requests do not shorten it; they can only keep the hold from growing.
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
