/** Checks whether facts may be booked. A fact that exceeds a bound or contradicts its price card is refused alone, without holding up others. */
import type { AttemptFact, OutcomeFact } from '@signalbox/ledger-core/fold';
import type { ChargePeriods } from '@signalbox/ledger-core/totals';
import { asNanoUsd } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { areTokenCounts, ATTEMPT_COST_NANO_USD_MAX, completionTokens, costOf, NO_TOKENS, promptTokens, totalTokens, type PriceCard, type TokenCounts } from '@signalbox/kernel/tokens';
import { attemptDetail } from './attempt-detail.js';
import { JsonTexts, type KeptText } from './json-text.js';
import type { AttemptMessage, OutcomeMessage } from './messages.js';
import { shareText } from './shared-texts.js';
import type { AttemptUsage } from './usage.js';

export interface CheckedAttempt {
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly fact: AttemptFact;
  readonly source: string;
  readonly provider: string;
  readonly flags: readonly string[];
  readonly cardId: string;
  readonly periods: ChargePeriods;
  readonly endedAtMs: bigint;
  readonly usage: AttemptUsage;
  /** What the provider says it charged, without plugin fees; absent = it did not say, or an account's own credential paid. */
  readonly toldNanoUsd?: bigint | undefined;
  /** A JSON object, not covered by the hash: an AttemptDetail, and more for people and reports. */
  readonly detail: string | KeptText;
}

export interface CheckedOutcome {
  readonly requestId: string;
  readonly accountId: string;
  readonly fact: OutcomeFact;
}

export const REFUSALS = ['no_identity', 'absurd_tokens', 'absurd_cost', 'no_card', 'cost_mismatch', 'unknown_source', 'unknown_outcome', 'account_mismatch', 'undecodable', 'bad_range', 'not_bookable'] as const;
export type Refusal = (typeof REFUSALS)[number];

const ATTEMPT_MAX = 1_000;
const SOURCES: Readonly<Record<string, string>> = { PROVIDER: 'provider', ESTIMATED: 'estimated', ORPHAN: 'orphan' };

type CardMessage = NonNullable<AttemptMessage['card']>;

/** The parsed card; undefined if a price is negative. */
function cardOf(message: CardMessage): PriceCard | undefined {
  try {
    return priceCardOf(message);
  } catch {
    return undefined;
  }
}

function isAttemptNumber(attempt: number): boolean {
  return Number.isInteger(attempt) && attempt >= 1 && attempt <= ATTEMPT_MAX;
}

const NONE: readonly never[] = [];
const NO_PERIODS: ChargePeriods = { day: '', week: '', month: '', plan: '' };
/** The periods read last, reused because nearly all facts at a time have the same. */
let latestPeriods = NO_PERIODS;

function periodsOf(message: AttemptMessage): ChargePeriods {
  const { day, week, month, plan } = message.periods ?? NO_PERIODS;
  const latest = latestPeriods;
  if (latest.day === day && latest.week === week && latest.month === month && latest.plan === plan) return latest;
  return (latestPeriods = { day, week, month, plan });
}

function otherThan(attempt: number, earlier: readonly number[]): readonly number[] {
  return earlier.length === 0 ? NONE : earlier.filter((each) => each !== attempt);
}

/** Whether the outcome that a worker concludes for the attempt depends on a later round. */
function restsOnCalls({ callsOnly = false, undelivered = false, clientLeft = false }: AttemptMessage): boolean {
  return callsOnly && !undelivered && !clientLeft;
}

/** The attempt, or why it is refused. The cost is computed again from the card in the event. Its detail is added to `details`. */
export function checkAttempt(message: AttemptMessage, details = new JsonTexts()): CheckedAttempt | Refusal {
  if (message.requestId === '' || message.accountId === '' || !isAttemptNumber(message.attempt)) return 'no_identity';
  const tokens: TokenCounts = message.tokens ?? NO_TOKENS;
  if (!areTokenCounts(tokens)) return 'absurd_tokens';
  const cost = BigInt(message.costNanoUsd);
  if (cost < 0n || cost > ATTEMPT_COST_NANO_USD_MAX) return 'absurd_cost';
  const told = message.toldNanoUsd === undefined || message.byok ? undefined : BigInt(message.toldNanoUsd);
  if (told !== undefined && (told < 0n || told > ATTEMPT_COST_NANO_USD_MAX)) return 'absurd_cost';
  const source = SOURCES[message.source];
  if (source === undefined) return 'unknown_source';
  const hasTokens = totalTokens(tokens) > 0;
  if (message.card === null || message.card.id === '') {
    if (cost > 0n || hasTokens) return 'no_card';
  } else {
    const card = cardOf(message.card);
    if (card === undefined) return 'absurd_cost';
    // An attempt that failed before the provider did any work costs nothing, whatever the card's fee per request is.
    if (costOf(tokens, card) !== cost && (hasTokens || cost !== 0n)) return 'cost_mismatch';
  }
  const retryOf = otherThan(message.attempt, message.retryOf);
  const fact: AttemptFact = { attempt: message.attempt, retryOf, costNanoUsd: asNanoUsd(cost), tokens: totalTokens(tokens), byok: message.byok };
  const rests = restsOnCalls(message);
  return {
    requestId: message.requestId,
    accountId: shareText(message.accountId),
    keyId: shareText(message.keyId),
    fact: rests ? { ...fact, restsOnCalls: true } : fact,
    source,
    provider: shareText(message.provider),
    flags: message.flags.length === 0 ? NONE : message.flags,
    cardId: message.card === null ? '' : shareText(message.card.id),
    periods: periodsOf(message),
    endedAtMs: BigInt(message.endedAtMs),
    usage: { model: shareText(message.model), promptTokens: promptTokens(tokens), completionTokens: completionTokens(tokens), savingsNanoUsd: BigInt(message.savingsNanoUsd), totalMs: message.totalMs, ttftMs: message.ttftMs },
    detail: attemptDetail(message, retryOf, rests, details),
    toldNanoUsd: told,
  };
}

/** What nearly all outcomes say. */
const FIRST_DELIVERED: OutcomeFact = { attempt: 1, outcome: 'DELIVERED', toldByEdge: true };

export function checkOutcome(message: OutcomeMessage): CheckedOutcome | Refusal {
  if (message.requestId === '' || message.accountId === '' || !isAttemptNumber(message.attempt)) return 'no_identity';
  const { outcome } = message;
  if (outcome !== 'DELIVERED' && outcome !== 'SUPERSEDED' && outcome !== 'DISCARDED') return 'unknown_outcome';
  const fact: OutcomeFact = message.attempt === 1 && outcome === 'DELIVERED' && message.toldByEdge ? FIRST_DELIVERED : { attempt: message.attempt, outcome, toldByEdge: message.toldByEdge };
  // A round that was given up has no later one, so `followed` counts only with a delivery. The last round that is named ends the hold.
  const isFollowed = message.followed === true && outcome === 'DELIVERED';
  return { requestId: message.requestId, accountId: shareText(message.accountId), fact: isFollowed ? { ...fact, isFollowed } : fact };
}
