/** What an attempt cost: provider's figures first, else what was seen, at the card in force for so long a prompt. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { assert } from '@signalbox/kernel/assert';
import { feesOfAttempt } from '@signalbox/kernel/card-fees';
import { asNanoUsd, ZERO_NANO_USD, type NanoUsd } from '@signalbox/kernel/money';
import { areTokenCounts, ATTEMPT_COST_NANO_USD_MAX, cardFor, completionTokens, costOf, NO_TOKENS, promptTokens, type PriceCard, type PriceStep, type TokenCounts } from '@signalbox/kernel/tokens';
import type { Usage } from '@signalbox/wires/canonical';

/** Rough size of a token of generated text. */
export const BYTES_PER_TOKEN = 4;
/** Below this many tokens a ratio says nothing. */
const COMPARED_TOKENS_MIN = 64;
/** No picture is known to be more than 50 times what is guessed for it. */
const MEDIA_SPREAD = 50;
/** What an account's own server tells may be so many tokens below a third of our own count: what stands around a message is not sent by every server. */
const ACCOUNTS_WORD_SLACK = 16;

export interface Seen {
  readonly usage: Usage | undefined;
  /** Input buckets as the provider told them before it had said all; they stand in for the estimate of the prompt. */
  readonly promptUsage?: Usage | undefined;
  readonly usageUnreadable: boolean;
  readonly outputBytes: number;
  /** Those of them that are thoughts shown to the client. */
  readonly thoughtBytes: number;
  /** False when the provider gave no answer, and its client did not leave one that it had asked for: nothing is estimated then. */
  readonly isAnswered: boolean;
  /** Estimate of the prompt. */
  readonly promptTokens: number;
  /** Those of it that are a guess for images, sound and files; absent = none. */
  readonly mediaTokens?: number;
  /** Those of it that are tools and a schema, which a server may write in few words or leave out; absent = none. */
  readonly definitionTokens?: number;
  /** The usage is told by a server of the account's own, whose word for it draws on nothing but that account's allotment. Absent = no. */
  readonly isAccountsWord?: boolean;
}

/** What is in force for a prompt. */
export interface Cards {
  readonly card: PriceCard;
  /** For savings; undefined = nothing to compare with. */
  readonly reference: PriceCard | undefined;
}

export interface Charge<Of extends Cards = Cards> {
  /** Those for the prompt as it is charged. */
  readonly cards: Of;
  readonly tokens: TokenCounts;
  readonly source: 'PROVIDER' | 'ESTIMATED';
  readonly flags: string[];
  readonly costNanoUsd: NanoUsd;
  readonly savingsNanoUsd: NanoUsd;
  /** What the provider itself says it takes, fees of plugins not included; undefined = the price card says. */
  readonly toldNanoUsd: NanoUsd | undefined;
}

/** Output tokens that the provider was asked for at most, all choices together; Infinity without a bound. */
export function outputTokensMax({ maxTokens, fields }: Pick<DispatchRequest__Output, 'maxTokens' | 'fields'>): number {
  if (maxTokens === undefined) return Infinity;
  const choices = Number(fields.find(({ name }) => name === 'n')?.value.toString() ?? 1);
  return maxTokens * (choices >= 1 ? choices : 1);
}

type Held = Pick<DispatchRequest__Output, 'heldTokens' | 'heldOutputTokens' | 'earlierTokens'>;

/** The most tokens that the prompt of a request was held for; Infinity when no hold says. */
function heldPromptTokens({ heldTokens, heldOutputTokens, earlierTokens }: Held): number {
  const held = Number(heldTokens);
  return held > 0 ? held - heldOutputTokens - Number(earlierTokens) : Infinity;
}

/** `told`, unless the ledger could not book it or it is above what was held for the prompt: an estimate is neither. */
export function heldPrompt(told: Usage | undefined, held: Held): Usage | undefined {
  return told !== undefined && areTokenCounts(told.tokens) && promptTokens(told.tokens) <= heldPromptTokens(held) ? told : undefined;
}

/** Long tokens have more bytes than most: nobody is charged for more tokens than were asked for, and held. The prompt is as told, if it was. */
export function estimatedTokens(promptEstimate: number, promptUsage: Usage | undefined, outputBytes: number, outputMax: number): TokenCounts {
  const outputText = Math.min(Math.ceil(outputBytes / BYTES_PER_TOKEN), outputMax);
  if (promptUsage !== undefined) return { ...promptUsage.tokens, outputText, outputReasoning: 0 };
  return { inputUncached: promptEstimate, cacheRead: 0, cacheWrite: 0, outputText, outputReasoning: 0, audio: 0, image: 0 };
}

function isFarOff(told: number, own: number): boolean {
  return Math.max(told, own) >= COMPARED_TOKENS_MIN && (told > own * 3 || told * 3 < own);
}

/** Whether the told prompt cannot be what was sent. Of pictures only the bounds are known. */
function isPromptFarOff(told: number, { isAnswered, promptTokens: own, mediaTokens = 0 }: Seen): boolean {
  if (!isAnswered || mediaTokens === 0) return isFarOff(told, isAnswered ? own : 0);
  const text = Math.max(0, own - mediaTokens);
  return isFarOff(told, Math.min(Math.max(told, text), text + mediaTokens * MEDIA_SPREAD));
}

/** Whether the told output cannot be what came. Thoughts may be shown whole, in short or not at all, and told apart or within the rest. */
function isOutputFarOff(tokens: TokenCounts, { outputBytes, thoughtBytes }: Seen, outputMax: number): boolean {
  const told = completionTokens(tokens);
  const text = Math.min(Math.ceil((outputBytes - thoughtBytes) / BYTES_PER_TOKEN), outputMax);
  if (tokens.outputReasoning > 0 || thoughtBytes === 0) return isFarOff(told - tokens.outputReasoning, text);
  return told < text && isFarOff(told, text);
}

/** The provider took far more than its price card says, by its own word: what is sold at that card is sold at a loss. */
export function isDear({ toldNanoUsd, costNanoUsd, cards }: Charge): boolean {
  return toldNanoUsd !== undefined && toldNanoUsd > (costNanoUsd - feesOfAttempt(costNanoUsd, cards.card.id).feeNanoUsd) * 3n;
}

/** The cards for a prompt of that many tokens, 0 or more; the first of `steps` is from 0. */
export function cardsAt<Of extends Cards>(steps: readonly PriceStep<Of>[], prompt: number): Of {
  const cards = cardFor(steps, prompt);
  assert(cards !== undefined, 'The first step is from 0.');
  return cards;
}

const isTooLittle = (told: number, own: number): boolean => told * 3 + ACCOUNTS_WORD_SLACK < own || (told === 0 && own > 0);

/**
 * Where a server of the account's own tells less than a third of what was seen, that part is counted here (ADR 81):
 * `isReplaced`. Never of what gave no answer.
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

/** The cards for a prompt as it was told; undefined for figures that the ledger could not book. */
function cardsOf<Of extends Cards>(told: Usage | undefined, steps: readonly PriceStep<Of>[]): Of | undefined {
  if (told === undefined || !areTokenCounts(told.tokens)) return undefined;
  const cards = cardsAt(steps, promptTokens(told.tokens));
  return costOf(told.tokens, cards.card) <= ATTEMPT_COST_NANO_USD_MAX ? cards : undefined;
}

/** Nobody is charged for more than was asked for, but where a server of the account's own has written so much more that it did not keep to it (ADR 79). */
function outputBound({ isAccountsWord, outputBytes }: Seen, outputMax: number): number {
  return isAccountsWord === true && isTooLittle(outputMax, Math.ceil(outputBytes / BYTES_PER_TOKEN)) ? Infinity : outputMax;
}

/**
 * At the card of `steps` for the prompt as it is charged, which the provider may tell on the other side of a step than
 * it was estimated. Usage beyond 3× or below 1/3 of our own count is booked as told and flagged `suspect` (BILLING,
 * section 5), but for too little that an account's own server tells.
 */
export function chargeOf<Of extends Cards>(seen: Seen, steps: readonly PriceStep<Of>[], askedMax: number): Charge<Of> {
  const outputMax = outputBound(seen, askedMax);
  const { usage, promptUsage, isReplaced } = believed(seen, outputMax);
  const cards = cardsOf(usage, steps);
  if (cards !== undefined) {
    const charge = chargeSeen({ ...seen, usage }, cards, outputMax);
    return isReplaced ? { ...charge, source: 'ESTIMATED', flags: ['estimated', 'suspect'] } : charge;
  }
  // Figures that no period could close with are none.
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
  // A refused attempt costs nothing, the fee per request included.
  const isNothing = seen.usage === undefined && !seen.isAnswered;
  const costNanoUsd = isNothing ? ZERO_NANO_USD : costOf(tokens, card);
  const savingsNanoUsd = reference === undefined || isNothing ? ZERO_NANO_USD : asNanoUsd(costOf(tokens, reference) - costNanoUsd);
  return { cards, tokens, source: seen.usage === undefined ? 'ESTIMATED' : 'PROVIDER', flags, costNanoUsd, savingsNanoUsd, toldNanoUsd: seen.usage?.costNanoUsd };
}
