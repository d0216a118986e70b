/** Sums of the ledger by period, day, model, provider and key, written in the same transaction as their rows. */
import { feesOfAttempt } from '@signalbox/kernel/card-fees';
import type { Correction, RequestFacts } from '@signalbox/ledger-core/fold';
import { countDuration, type DurationCounts } from './latency.js';

/** What reports need about an attempt beyond the columns of its row. */
export interface AttemptUsage {
  readonly model: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Signed. */
  readonly savingsNanoUsd: bigint;
  /** Duration of the whole answer and until its first token, in milliseconds; 0 = unknown. */
  readonly totalMs: number;
  readonly ttftMs: number;
}

export const NO_USAGE: AttemptUsage = { model: '', promptTokens: 0, completionTokens: 0, savingsNanoUsd: 0n, totalMs: 0, ttftMs: 0 };

/** What one charge or adjustment row adds to the sums. A charge row counts as one request. Tokens are exact in a number: an attempt has at most 7 · 10^9. */
export interface UsageFigures {
  readonly requests: number;
  readonly tokens: number;
  readonly byokTokens: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** At the price cards, whoever pays the provider. */
  readonly costNanoUsd: bigint;
  /** From charge rows, and from adjustments with the flag `further`. */
  readonly chargeNanoUsd: bigint;
  /** The part of `chargeNanoUsd` that is plugin fees. */
  readonly feesNanoUsd: bigint;
  /** From all other adjustment rows. */
  readonly adjustedNanoUsd: bigint;
  readonly savingsNanoUsd: bigint;
  /** Durations of the attempt that answered, in milliseconds; 0 = unknown, or the row is not the charge of an answered request. */
  readonly totalMs: number;
  readonly ttftMs: number;
}

export interface UsageKey {
  readonly period: string;
  /** UTC date of the row's time: `2026-11-21`. */
  readonly day: string;
  readonly model: string;
  readonly provider: string;
  readonly keyId: string;
}

export interface UsageDelta extends UsageKey, Omit<UsageFigures, 'totalMs' | 'ttftMs'> {
  readonly total: DurationCounts;
  readonly firstToken: DurationCounts;
}

/** The part of a request's state that its figures come from. */
interface CountedRequest {
  readonly facts: RequestFacts;
  readonly bookedAttempts: readonly number[];
  readonly sources: readonly { readonly fact: { readonly attempt: number }; readonly cardId: string; readonly usage: AttemptUsage }[];
}

function usageIn({ sources }: CountedRequest, attempt: number | undefined): AttemptUsage {
  for (const { fact, usage } of sources) if (fact.attempt === attempt) return usage;
  return NO_USAGE;
}

function costIn({ facts }: CountedRequest, attempt: number): bigint {
  for (const fact of facts.attempts) if (fact.attempt === attempt) return fact.costNanoUsd;
  return 0n;
}

/** Plugin fees in the charge for these attempts. */
function feesCharged({ facts, sources }: CountedRequest, charged: readonly number[]): bigint {
  let sum = 0n;
  for (const { attempt, costNanoUsd, byok } of facts.attempts) if (!byok && charged.includes(attempt)) sum += feesOfAttempt(costNanoUsd, sources.find(({ fact }) => fact.attempt === attempt)?.cardId ?? '').feeNanoUsd;
  return sum;
}

type Sums = Pick<UsageFigures, 'promptTokens' | 'completionTokens' | 'costNanoUsd' | 'savingsNanoUsd'>;

/** Sums over the attempts that a charge consists of. */
function sumsOf(state: CountedRequest, charged: readonly number[]): Sums {
  const sums = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0n, savingsNanoUsd: 0n };
  for (const attempt of charged) {
    const usage = usageIn(state, attempt);
    sums.promptTokens += usage.promptTokens;
    sums.completionTokens += usage.completionTokens;
    sums.costNanoUsd += costIn(state, attempt);
    sums.savingsNanoUsd += usage.savingsNanoUsd;
  }
  return sums;
}

/**
 * Flag of an adjustment that only adds attempts to what is charged, within the period of the charge: their logs came later, as those of
 * rounds at other replicas do. It corrects nothing, so reports and bills count it as spend.
 */
export const FURTHER_FLAG = 'further';

/** The figures of the row that brings a request from what was booked to `charged`. `flags`: of that row. */
export function usageOf(state: CountedRequest, { kind, amountNanoUsd, tokens, byokTokens }: Correction, charged: readonly number[], flags: readonly string[]): UsageFigures {
  const after = sumsOf(state, charged);
  if (kind === 'charge') {
    // The duration of a request is that of the attempt whose end its client saw.
    const { totalMs, ttftMs } = usageIn(state, charged.at(-1));
    return {
      requests: 1, tokens, byokTokens, promptTokens: after.promptTokens, completionTokens: after.completionTokens, costNanoUsd: after.costNanoUsd, chargeNanoUsd: amountNanoUsd, feesNanoUsd: feesCharged(state, charged), adjustedNanoUsd: 0n, savingsNanoUsd: after.savingsNanoUsd, totalMs, ttftMs,
    };
  }
  const before = sumsOf(state, state.bookedAttempts);
  const isFurther = flags.includes(FURTHER_FLAG);
  return {
    requests: 0,
    tokens,
    byokTokens,
    promptTokens: after.promptTokens - before.promptTokens,
    completionTokens: after.completionTokens - before.completionTokens,
    costNanoUsd: after.costNanoUsd - before.costNanoUsd,
    chargeNanoUsd: isFurther ? amountNanoUsd : 0n,
    feesNanoUsd: isFurther ? feesCharged(state, charged) - feesCharged(state, state.bookedAttempts) : 0n,
    adjustedNanoUsd: isFurther ? 0n : amountNanoUsd,
    savingsNanoUsd: after.savingsNanoUsd - before.savingsNanoUsd,
    totalMs: 0,
    ttftMs: 0,
  };
}

const DAY_MS = 86_400_000;
let latestDay = { number: -1, text: '' };

/** UTC date of an instant. The latest day is cached, since nearly all instants are in it. */
export function dayOf(atMs: bigint): string {
  const number = Math.floor(Number(atMs) / DAY_MS);
  if (number !== latestDay.number) latestDay = { number, text: new Date(number * DAY_MS).toISOString().slice(0, 10) };
  return latestDay.text;
}

type UsageSum = { -readonly [Name in keyof UsageDelta]: UsageDelta[Name] };

/** Sums up the rows of a batch. */
export class UsageTally {
  readonly #sums = new Map<string, UsageSum>();
  /** The latest sum, since the next row mostly has the same key. */
  #latest: UsageSum | undefined;

  add(key: UsageKey, figures: UsageFigures): void {
    const sum = this.#sumOf(key);
    countDuration(sum.total, figures.totalMs);
    countDuration(sum.firstToken, figures.ttftMs);
    sum.requests += figures.requests;
    sum.tokens += figures.tokens;
    sum.byokTokens += figures.byokTokens;
    sum.promptTokens += figures.promptTokens;
    sum.completionTokens += figures.completionTokens;
    sum.costNanoUsd += figures.costNanoUsd;
    sum.chargeNanoUsd += figures.chargeNanoUsd;
    sum.feesNanoUsd += figures.feesNanoUsd;
    sum.adjustedNanoUsd += figures.adjustedNanoUsd;
    sum.savingsNanoUsd += figures.savingsNanoUsd;
  }

  deltas(): readonly UsageDelta[] {
    return [...this.#sums.values()];
  }

  #sumOf({ period, day, model, provider, keyId }: UsageKey): UsageSum {
    const latest = this.#latest;
    if (latest !== undefined && latest.period === period && latest.day === day && latest.model === model && latest.provider === provider && latest.keyId === keyId) return latest;
    const name = `${period}\n${day}\n${provider}\n${keyId}\n${model}`;
    let sum = this.#sums.get(name);
    if (sum === undefined) {
      sum = {
        period, day, model, provider, keyId, requests: 0, tokens: 0, byokTokens: 0, promptTokens: 0, completionTokens: 0, costNanoUsd: 0n, chargeNanoUsd: 0n, feesNanoUsd: 0n, adjustedNanoUsd: 0n, savingsNanoUsd: 0n, total: [], firstToken: [],
      };
      this.#sums.set(name, sum);
    }
    this.#latest = sum;
    return sum;
  }
}

/** What the attempts of one day cost us at one provider with the gateway's own credentials: without plugin fees, but with what tools bought there. */
export interface AttemptDelta {
  readonly day: string;
  readonly provider: string;
  readonly attempts: number;
  readonly tokens: bigint;
  readonly costNanoUsd: bigint;
  /** The part of the cost that is not based on the provider's usage figures. */
  readonly estimatedNanoUsd: bigint;
}

type AttemptSum = { -readonly [Name in keyof AttemptDelta]: AttemptDelta[Name] };

export class AttemptTally {
  readonly #sums = new Map<string, AttemptSum>();
  /** The latest sum, since the next attempt mostly has the same key. */
  #latest: AttemptSum | undefined;

  add(day: string, { provider, tokens, amountNanoUsd, source, cardId }: { readonly provider: string; readonly tokens: bigint; readonly amountNanoUsd: bigint; readonly source: string; readonly cardId: string }): void {
    const sum = this.#sumOf(day, provider);
    const { feeNanoUsd, bought } = feesOfAttempt(amountNanoUsd, cardId);
    const costNanoUsd = amountNanoUsd - feeNanoUsd;
    sum.attempts += 1;
    sum.tokens += tokens;
    sum.costNanoUsd += costNanoUsd;
    if (source !== 'provider') sum.estimatedNanoUsd += costNanoUsd;
    for (const { provider: maker, nanoUsd } of bought) this.#sumOf(day, maker).costNanoUsd += nanoUsd;
  }

  /** Corrects the cost of an attempt that is already counted. */
  learn(day: string, provider: string, nanoUsd: bigint): void {
    this.#sumOf(day, provider).costNanoUsd += nanoUsd;
  }

  deltas(): readonly AttemptDelta[] {
    return [...this.#sums.values()];
  }

  #sumOf(day: string, provider: string): AttemptSum {
    const latest = this.#latest;
    if (latest !== undefined && latest.day === day && latest.provider === provider) return latest;
    const name = `${day}\n${provider}`;
    let sum = this.#sums.get(name);
    if (sum === undefined) this.#sums.set(name, (sum = { day, provider, attempts: 0, tokens: 0n, costNanoUsd: 0n, estimatedNanoUsd: 0n }));
    this.#latest = sum;
    return sum;
  }
}
