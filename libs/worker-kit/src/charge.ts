/** Cost of an attempt: from the provider's usage figures, or else estimated from what was seen, at the price card for the length of the prompt. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { assert } from '@signalbox/kernel/assert';
import { feesOfAttempt } from '@signalbox/kernel/card-fees';
import { asNanoUsd, ZERO_NANO_USD, type NanoUsd } from '@signalbox/kernel/money';
import { areTokenCounts, ATTEMPT_COST_NANO_USD_MAX, cardFor, completionTokens, costOf, NO_TOKENS, promptTokens, type PriceCard, type PriceStep, type TokenCounts } from '@signalbox/kernel/tokens';
import type { Usage } from '@signalbox/wires/canonical';

/** Rough size of a token of generated text. */
export const BYTES_PER_TOKEN = 4;
/** Below this many tokens, a ratio between two counts means nothing. */
const COMPARED_TOKENS_MIN = 64;
/** No image is known to cost more than 50 times the tokens estimated for it. */
const MEDIA_SPREAD = 50;
/** Tokens by which the count of an account's own server may be below a third of ours: not every server sends the text that surrounds a message in a template. */
const ACCOUNTS_WORD_SLACK = 16;

export interface Seen {
  readonly usage: Usage | undefined;
  /** Input token counts that the provider reported before its final usage; used instead of the estimated prompt. */
  readonly promptUsage?: Usage | undefined;
  readonly usageUnreadable: boolean;
  readonly outputBytes: number;
  /** The part of `outputBytes` that is reasoning shown to the client. */
  readonly thoughtBytes: number;
  /** False when the provider gave no answer, unless the client itself left while one was being made. Then nothing is estimated. */
  readonly isAnswered: boolean;
  /** Our estimate of the prompt. */
  readonly promptTokens: number;
  /** The part of `promptTokens` that is a guess for images, sound and files; absent = none. */
  readonly mediaTokens?: number;
  /** The part of `promptTokens` that is tools and a schema, which a server may shorten or leave out; absent = none. */
  readonly definitionTokens?: number;
  /** The usage was reported by the account's own server, so it counts against nothing but that account's allotment. Absent = no. */
  readonly isAccountsWord?: boolean;
}

/** The price cards that apply to a prompt. */
export interface Cards {
  readonly card: PriceCard;
  /** Reference card, for savings; undefined = nothing to compare with. */
  readonly reference: PriceCard | undefined;
}

export interface Charge<Of extends Cards = Cards> {
  /** The cards for the prompt length that is charged. */
  readonly cards: Of;
  readonly tokens: TokenCounts;
  readonly source: 'PROVIDER' | 'ESTIMATED';
  readonly flags: string[];
  readonly costNanoUsd: NanoUsd;
  readonly savingsNanoUsd: NanoUsd;
  /** What the provider itself says it charges, without plugin fees; undefined = it does not say. */
  readonly toldNanoUsd: NanoUsd | undefined;
}

/** Most output tokens that the provider was asked for, all choices together; Infinity without a bound. */
export function outputTokensMax({ maxTokens, fields }: Pick<DispatchRequest__Output, 'maxTokens' | 'fields'>): number {
  if (maxTokens === undefined) return Infinity;
  const choices = Number(fields.find(({ name }) => name === 'n')?.value.toString() ?? 1);
  return maxTokens * (choices >= 1 ? choices : 1);
}

type Held = Pick<DispatchRequest__Output, 'heldTokens' | 'heldOutputTokens' | 'earlierTokens'>;

/** Prompt tokens that the hold covers; Infinity without a hold in tokens. */
function heldPromptTokens({ heldTokens, heldOutputTokens, earlierTokens }: Held): number {
  const held = Number(heldTokens);
  return held > 0 ? held - heldOutputTokens - Number(earlierTokens) : Infinity;
}

/** `told`, if the ledger can book it and it is within what was held for the prompt; otherwise undefined, and the estimate is used, which is both. */
export function heldPrompt(told: Usage | undefined, held: Held): Usage | undefined {
  return told !== undefined && areTokenCounts(told.tokens) && promptTokens(told.tokens) <= heldPromptTokens(held) ? told : undefined;
}

/** Estimated tokens of an answer. The output is capped at `outputMax`: text with long tokens would be overestimated, and nobody is charged for more tokens than were asked for and held. The prompt is as reported, if it was. */
export function estimatedTokens(promptEstimate: number, promptUsage: Usage | undefined, outputBytes: number, outputMax: number): TokenCounts {
  const outputText = Math.min(Math.ceil(outputBytes / BYTES_PER_TOKEN), outputMax);
  if (promptUsage !== undefined) return { ...promptUsage.tokens, outputText, outputReasoning: 0 };
  return { inputUncached: promptEstimate, cacheRead: 0, cacheWrite: 0, outputText, outputReasoning: 0, audio: 0, image: 0 };
}

function isFarOff(told: number, own: number): boolean {
  return Math.max(told, own) >= COMPARED_TOKENS_MIN && (told > own * 3 || told * 3 < own);
}

/** Whether the reported prompt cannot be the one that was sent. For images only bounds are known. */
function isPromptFarOff(told: number, { isAnswered, promptTokens: own, mediaTokens = 0 }: Seen): boolean {
  if (!isAnswered || mediaTokens === 0) return isFarOff(told, isAnswered ? own : 0);
  const text = Math.max(0, own - mediaTokens);
  return isFarOff(told, Math.min(Math.max(told, text), text + mediaTokens * MEDIA_SPREAD));
}

/** Whether the reported output cannot be what arrived. Reasoning may be shown in full, summarised or not at all, and may be reported separately or within the output. */
function isOutputFarOff(tokens: TokenCounts, { outputBytes, thoughtBytes }: Seen, outputMax: number): boolean {
  const told = completionTokens(tokens);
  const text = Math.min(Math.ceil((outputBytes - thoughtBytes) / BYTES_PER_TOKEN), outputMax);
  if (tokens.outputReasoning > 0 || thoughtBytes === 0) return isFarOff(told - tokens.outputReasoning, text);
  return told < text && isFarOff(told, text);
}

/** By its own report the provider charged more than three times what the price card says: requests are sold at a loss. */
export function isDear({ toldNanoUsd, costNanoUsd, cards }: Charge): boolean {
  return toldNanoUsd !== undefined && toldNanoUsd > (costNanoUsd - feesOfAttempt(costNanoUsd, cards.card.id).feeNanoUsd) * 3n;
}

/** The cards for a prompt of that many tokens, 0 or more. The first of `steps` starts at 0. */
export function cardsAt<Of extends Cards>(steps: readonly PriceStep<Of>[], prompt: number): Of {
  const cards = cardFor(steps, prompt);
  assert(cards !== undefined, 'The first price step starts at 0 tokens.');
  return cards;
}

const isTooLittle = (told: number, own: number): boolean => told * 3 + ACCOUNTS_WORD_SLACK < own || (told === 0 && own > 0);

/**
 * Replaces the prompt or output count of an account's own server by our own where it is less than a third of what was seen
 * (ADR 81), and then sets `isReplaced`. An attempt without an answer is left as it is.
 */
function believed(seen: Seen, outputMax: number): Pick<Seen, 'usage' | 'promptUsage'> & { readonly isReplaced: boolean } {
  const { usage, promptUsage, isAnswered, isAccountsWord, mediaTokens = 0, definitionTokens = 0 } = seen;
  if (isAccountsWord !== true || !isAnswered) return { usage, promptUsage, isReplaced: false };
  const isPromptTooLittle = (told: Usage | undefined): told is Usage => told !== undefined && isTooLittle(promptTokens(told.tokens), seen.promptTokens - mediaTokens - definitionTokens);
  const own = estimatedTokens(seen.promptTokens, undefined, seen.outputBytes, outputMax);
  if (usage === undefined) return isPromptTooLittle(promptUsage) ? { usage, promptUsage: undefined, isReplaced: true } : { usage, promptUsage, isReplaced: false };
  const { tokens } = usage;
  const hasPrompt = !isPromptTooLittle(usage);
  const hasOutput = !isTooLittle(completionTokens(tokens), own.outputText);
  if (hasPrompt && hasOutput) return { usage, promptUsage, isReplaced: false };
  const { outputText, outputReasoning } = hasOutput ? tokens : own;
  return { usage: { ...usage, tokens: { ...(hasPrompt ? tokens : own), outputText, outputReasoning } }, promptUsage, isReplaced: true };
}

/** The cards for the prompt as reported; undefined for figures that the ledger could not book. */
function cardsOf<Of extends Cards>(told: Usage | undefined, steps: readonly PriceStep<Of>[]): Of | undefined {
  if (told === undefined || !areTokenCounts(told.tokens)) return undefined;
  const cards = cardsAt(steps, promptTokens(told.tokens));
  return costOf(told.tokens, cards.card) <= ATTEMPT_COST_NANO_USD_MAX ? cards : undefined;
}

/** Most output tokens to charge: what was asked for. There is no bound where the account's own server wrote so much more that it evidently ignored the limit (ADR 79). */
function outputBound({ isAccountsWord, outputBytes }: Seen, outputMax: number): number {
  return isAccountsWord === true && isTooLittle(outputMax, Math.ceil(outputBytes / BYTES_PER_TOKEN)) ? Infinity : outputMax;
}

/**
 * Charges at the card in `steps` for the prompt that is charged; the provider may report a prompt on the other side of a
 * step than the estimate. Usage above 3× or below 1/3 of our own count is booked as reported and flagged `suspect`, except
 * that too low a report of an account's own server is replaced.
 */
export function chargeOf<Of extends Cards>(seen: Seen, steps: readonly PriceStep<Of>[], askedMax: number): Charge<Of> {
  const outputMax = outputBound(seen, askedMax);
  const { usage, promptUsage, isReplaced } = believed(seen, outputMax);
  const cards = cardsOf(usage, steps);
  if (cards !== undefined) {
    const charge = chargeSeen({ ...seen, usage }, cards, outputMax);
    return isReplaced ? { ...charge, source: 'ESTIMATED', flags: ['estimated', 'suspect'] } : charge;
  }
  // Figures that the ledger could not book are treated as missing.
  const promptCards = cardsOf(promptUsage, steps);
  const isUnreadable = isReplaced || seen.usageUnreadable || usage !== undefined || (promptUsage !== undefined && promptCards === undefined);
  return chargeSeen({ ...seen, usage: undefined, promptUsage: promptCards === undefined ? undefined : promptUsage, usageUnreadable: isUnreadable }, promptCards ?? cardsAt(steps, seen.promptTokens), outputMax);
}

function chargeSeen<Of extends Cards>(seen: Seen, cards: Of, outputMax: number): Charge<Of> {
  const { card, reference } = cards;
  const tokens = seen.usage?.tokens ?? (seen.isAnswered ? estimatedTokens(seen.promptTokens, seen.promptUsage, seen.outputBytes, outputMax) : NO_TOKENS);
  const flags: string[] = [];
  if (seen.usage === undefined && seen.isAnswered) flags.push('estimated');
  const told = seen.usage ?? (seen.isAnswered ? seen.promptUsage : undefined);
  const isHardToBelieve = told !== undefined && (told.isSuspect || isPromptFarOff(promptTokens(tokens), seen));
  if (isHardToBelieve || (seen.usage === undefined ? seen.usageUnreadable : isOutputFarOff(tokens, seen, outputMax))) flags.push('suspect');
  // A refused attempt costs nothing, not even the fee per request.
  const isNothing = seen.usage === undefined && !seen.isAnswered;
  const costNanoUsd = isNothing ? ZERO_NANO_USD : costOf(tokens, card);
  const savingsNanoUsd = reference === undefined || isNothing ? ZERO_NANO_USD : asNanoUsd(costOf(tokens, reference) - costNanoUsd);
  return { cards, tokens, source: seen.usage === undefined ? 'ESTIMATED' : 'PROVIDER', flags, costNanoUsd, savingsNanoUsd, toldNanoUsd: seen.usage?.costNanoUsd };
}
