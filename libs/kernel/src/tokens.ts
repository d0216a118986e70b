/** Token counts in disjoint buckets, and the price card that prices them. */
import { asNanoUsd, attemptCost, type NanoUsd, type NanoUsdPerMillionTokens } from './money.js';

/** Disjoint counts, each an integer ≥ 0: their sum is the total. */
export interface TokenCounts {
  readonly inputUncached: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly outputText: number;
  readonly outputReasoning: number;
  readonly audio: number;
  readonly image: number;
}

export const NO_TOKENS: TokenCounts = { inputUncached: 0, cacheRead: 0, cacheWrite: 0, outputText: 0, outputReasoning: 0, audio: 0, image: 0 };

/** Immutable and versioned: its id is recorded in the reservation, the event and the ledger row. */
export interface PriceCard {
  readonly id: string;
  readonly inputUncached: NanoUsdPerMillionTokens;
  readonly cacheRead: NanoUsdPerMillionTokens;
  readonly cacheWrite: NanoUsdPerMillionTokens;
  readonly outputText: NanoUsdPerMillionTokens;
  readonly outputReasoning: NanoUsdPerMillionTokens;
  readonly audio: NanoUsdPerMillionTokens;
  readonly image: NanoUsdPerMillionTokens;
  /** Fee per request, added after rounding of the tokens' cost. */
  readonly requestNanoUsd: NanoUsd;
}

/** A price card, and the prompt size from which on it applies to the whole request. */
export interface PriceStep<Card = PriceCard> {
  /** Prompt tokens; 0 for the ordinary price. */
  readonly fromPromptTokens: number;
  readonly card: Card;
}

/** The card that applies to a prompt of that many tokens, of ascending steps; undefined without a price. */
export function cardFor<Card>(steps: readonly PriceStep<Card>[], prompt: number): Card | undefined {
  let card: Card | undefined;
  for (const step of steps) if (prompt >= step.fromPromptTokens) card = step.card;
  return card;
}

/** Cost of one attempt at a price card, rounded once, half up. */
export function costOf(tokens: TokenCounts, card: PriceCard): NanoUsd {
  const { inputUncached, cacheRead, cacheWrite, outputText, outputReasoning, audio, image } = tokens;
  let raw = BigInt(inputUncached) * card.inputUncached + BigInt(outputText) * card.outputText;
  if (cacheRead !== 0) raw += BigInt(cacheRead) * card.cacheRead;
  if (cacheWrite !== 0) raw += BigInt(cacheWrite) * card.cacheWrite;
  if (outputReasoning !== 0) raw += BigInt(outputReasoning) * card.outputReasoning;
  if (audio !== 0) raw += BigInt(audio) * card.audio;
  if (image !== 0) raw += BigInt(image) * card.image;
  return asNanoUsd(attemptCost(raw) + card.requestNanoUsd);
}

/** `usage.prompt_tokens`: all input tokens, including audio and image buckets. */
export function promptTokens(tokens: TokenCounts): number {
  return tokens.inputUncached + tokens.cacheRead + tokens.cacheWrite + tokens.audio + tokens.image;
}

/** `usage.completion_tokens`, reasoning included. */
export function completionTokens(tokens: TokenCounts): number {
  return tokens.outputText + tokens.outputReasoning;
}

export function totalTokens(tokens: TokenCounts): number {
  return promptTokens(tokens) + completionTokens(tokens);
}

/** 10^9 tokens per bucket of one attempt: a thousand times the longest context available. */
export const BUCKET_TOKENS_MAX = 1_000_000_000;
/** 10^6 USD for one attempt. */
export const ATTEMPT_COST_NANO_USD_MAX = 1_000_000_000_000_000n;

function isTokenCount(count: number): boolean {
  return Number.isInteger(count) && count >= 0 && count <= BUCKET_TOKENS_MAX;
}

/** True for whole numbers in 0..10^9, which the ledger accepts. */
export function areTokenCounts({ inputUncached, cacheRead, cacheWrite, outputText, outputReasoning, audio, image }: TokenCounts): boolean {
  return isTokenCount(inputUncached) && isTokenCount(cacheRead) && isTokenCount(cacheWrite) && isTokenCount(outputText) && isTokenCount(outputReasoning) && isTokenCount(audio) && isTokenCount(image);
}
