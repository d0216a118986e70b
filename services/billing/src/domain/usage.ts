/** Sums of the ledger by period, day, model, provider and key: written in the same transaction as the rows they sum. */
import type { Correction, RequestFacts } from '@signalbox/ledger-core/fold';
import { countDuration, type DurationCounts } from './latency.js';

/** What reports want to know of an attempt beside what its row's columns hold. */
export interface AttemptUsage {
  readonly model: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Signed. */
  readonly savingsNanoUsd: bigint;
  /** Of the whole answer and up to its first token, in milliseconds; 0 = not known. */
  readonly totalMs: number;
  readonly ttftMs: number;
}

export const NO_USAGE: AttemptUsage = { model: '', promptTokens: 0, completionTokens: 0, savingsNanoUsd: 0n, totalMs: 0, ttftMs: 0 };

/** What one charge or adjustment row stands for. A charge row counts as one request. */
export interface UsageFigures {
  readonly requests: number;
  readonly tokens: bigint;
  readonly byokTokens: bigint;
  readonly promptTokens: bigint;
  readonly completionTokens: bigint;
  /** At the price cards, whoever pays. */
  readonly costNanoUsd: bigint;
  /** Of charge rows. */
  readonly chargeNanoUsd: bigint;
  /** Of adjustment rows. */
  readonly adjustedNanoUsd: bigint;
  readonly savingsNanoUsd: bigint;
  /** Of the attempt that answered, in milliseconds; 0 = not known, or the row is none of a request that was answered. */
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
  readonly sources: readonly { readonly fact: { readonly attempt: number }; readonly usage: AttemptUsage }[];
}

interface Sums {
  promptTokens: bigint;
  completionTokens: bigint;
  costNanoUsd: bigint;
  savingsNanoUsd: bigint;
}

/** Sums over the attempts that a charge consists of. */
function sumsOf({ facts, sources }: CountedRequest, charged: readonly number[]): Sums {
  const sums = { promptTokens: 0n, completionTokens: 0n, costNanoUsd: 0n, savingsNanoUsd: 0n };
  for (const attempt of charged) {
    const usage = sources.find(({ fact }) => fact.attempt === attempt)?.usage ?? NO_USAGE;
    sums.promptTokens += BigInt(usage.promptTokens);
    sums.completionTokens += BigInt(usage.completionTokens);
    sums.costNanoUsd += facts.attempts.find((fact) => fact.attempt === attempt)?.costNanoUsd ?? 0n;
    sums.savingsNanoUsd += usage.savingsNanoUsd;
  }
  return sums;
}

/** A request took as long as the attempt that its client saw the end of. */
function durationsOf({ sources }: CountedRequest, charged: readonly number[]): Pick<AttemptUsage, 'totalMs' | 'ttftMs'> {
  const last = charged.at(-1);
  const { totalMs, ttftMs } = sources.find(({ fact }) => fact.attempt === last)?.usage ?? NO_USAGE;
  return { totalMs, ttftMs };
}

/** The figures of the row that brings a request from what was booked to `charged`. */
export function usageOf(state: CountedRequest, { kind, amountNanoUsd, tokens, byokTokens }: Correction, charged: readonly number[]): UsageFigures {
  const after = sumsOf(state, charged);
  if (kind === 'charge') return { ...after, ...durationsOf(state, charged), requests: 1, tokens: BigInt(tokens), byokTokens: BigInt(byokTokens), chargeNanoUsd: amountNanoUsd, adjustedNanoUsd: 0n };
  const before = sumsOf(state, state.bookedAttempts);
  return {
    requests: 0,
    tokens: BigInt(tokens),
    byokTokens: BigInt(byokTokens),
    promptTokens: after.promptTokens - before.promptTokens,
    completionTokens: after.completionTokens - before.completionTokens,
    costNanoUsd: after.costNanoUsd - before.costNanoUsd,
    chargeNanoUsd: 0n,
    adjustedNanoUsd: amountNanoUsd,
    savingsNanoUsd: after.savingsNanoUsd - before.savingsNanoUsd,
    totalMs: 0,
    ttftMs: 0,
  };
}

const DAY_MS = 86_400_000;
let latestDay = { number: -1, text: '' };

/** UTC date of an instant; nearly all are of the day asked about last. */
export function dayOf(atMs: bigint): string {
  const number = Math.floor(Number(atMs) / DAY_MS);
  if (number !== latestDay.number) latestDay = { number, text: new Date(number * DAY_MS).toISOString().slice(0, 10) };
  return latestDay.text;
}

/** Sums of a batch. */
export class UsageTally {
  readonly #sums = new Map<string, { -readonly [Name in keyof UsageDelta]: UsageDelta[Name] }>();

  add({ period, day, model, provider, keyId }: UsageKey, { totalMs, ttftMs, ...figures }: UsageFigures): void {
    const name = `${period}\n${day}\n${provider}\n${keyId}\n${model}`;
    let known = this.#sums.get(name);
    if (known === undefined) {
      this.#sums.set(name, (known = { period, day, model, provider, keyId, ...figures, total: [], firstToken: [] }));
      countDuration(known.total, totalMs);
      countDuration(known.firstToken, ttftMs);
      return;
    }
    countDuration(known.total, totalMs);
    countDuration(known.firstToken, ttftMs);
    known.requests += figures.requests;
    known.tokens += figures.tokens;
    known.byokTokens += figures.byokTokens;
    known.promptTokens += figures.promptTokens;
    known.completionTokens += figures.completionTokens;
    known.costNanoUsd += figures.costNanoUsd;
    known.chargeNanoUsd += figures.chargeNanoUsd;
    known.adjustedNanoUsd += figures.adjustedNanoUsd;
    known.savingsNanoUsd += figures.savingsNanoUsd;
  }

  deltas(): readonly UsageDelta[] {
    return [...this.#sums.values()];
  }
}

/** What attempts of one day cost us at one provider, over the gateway's own credentials. */
export interface AttemptDelta {
  readonly day: string;
  readonly provider: string;
  readonly attempts: number;
  readonly tokens: bigint;
  readonly costNanoUsd: bigint;
  /** The part of the cost that is no figure of the provider's. */
  readonly estimatedNanoUsd: bigint;
}

export class AttemptTally {
  readonly #sums = new Map<string, { -readonly [Name in keyof AttemptDelta]: AttemptDelta[Name] }>();

  add(day: string, { provider, tokens, amountNanoUsd, source }: { readonly provider: string; readonly tokens: bigint; readonly amountNanoUsd: bigint; readonly source: string }): void {
    const estimatedNanoUsd = source === 'provider' ? 0n : amountNanoUsd;
    const name = `${day}\n${provider}`;
    const known = this.#sums.get(name);
    if (known === undefined) {
      this.#sums.set(name, { day, provider, attempts: 1, tokens, costNanoUsd: amountNanoUsd, estimatedNanoUsd });
      return;
    }
    known.attempts += 1;
    known.tokens += tokens;
    known.costNanoUsd += amountNanoUsd;
    known.estimatedNanoUsd += estimatedNanoUsd;
  }

  deltas(): readonly AttemptDelta[] {
    return [...this.#sums.values()];
  }
}
