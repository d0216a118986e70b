/** Computes what the sums of an account should be, from its rows and with the functions that booked them. */
import { asNanoUsd } from '@signalbox/kernel/money';
import { totalDeltas } from '@signalbox/ledger-core/totals';
import { sourceOf, type RequestState, type StoredRow } from './request.js';
import { AttemptTally, dayOf, usageOf, UsageTally, type UsageDelta } from './usage.js';

/** Integers by name. A name is the columns of a table's key, separated by blanks. */
export type Sums = ReadonlyMap<string, readonly bigint[]>;

/** Turns rows of a table into sums. */
export function sumsOf<Row>(rows: readonly Row[], nameOf: (row: Row) => readonly string[], figuresOf: (row: Row) => readonly (bigint | number)[]): Sums {
  return new Map(rows.map((row) => [nameOf(row).join(' '), figuresOf(row).map(BigInt)]));
}

/** Names whose numbers differ; a missing sum equals zeros. */
export function differencesOf(a: Sums, b: Sums): readonly string[] {
  const at = (sums: Sums, name: string, index: number): bigint => sums.get(name)?.[index] ?? 0n;
  return [...new Set([...a.keys(), ...b.keys()])].filter((name) => (a.get(name) ?? b.get(name) ?? []).some((_, index) => at(a, name, index) !== at(b, name, index)));
}

/** The correction of one sum to what its rows give. */
export interface Mend {
  /** Columns of the table's key, in the order of the name. */
  readonly key: readonly string[];
  /** Difference to add to each number. */
  readonly missing: readonly bigint[];
  /** The sum exists. */
  readonly isKept: boolean;
  /** It has rows. */
  readonly isCounted: boolean;
}

/** Splits a name into the `columns` of its key. Only the last one, a model's name, may contain a blank. */
function keyOf(name: string, columns: number): readonly string[] {
  const words = name.split(' ');
  return [...words.slice(0, columns - 1), words.slice(columns - 1).join(' ')];
}

/** A correction for each sum that differs. */
export function mendsOf(kept: Sums, counted: Sums, columns: number): readonly Mend[] {
  return differencesOf(kept, counted).map((name) => {
    const [is, should] = [kept.get(name), counted.get(name)];
    return { key: keyOf(name, columns), missing: (is ?? should ?? []).map((_, index) => (should?.[index] ?? 0n) - (is?.[index] ?? 0n)), isKept: is !== undefined, isCounted: should !== undefined };
  });
}

/** Sums up the requests of one account. */
export class Recount {
  readonly #usage = new UsageTally();
  readonly #attempts = new AttemptTally();
  readonly #totals = new Map<string, readonly bigint[]>();

  /** Adds all rows of one request, ascending by sequence, and the state that they give. */
  add(rows: readonly StoredRow[], state: RequestState): void {
    let bookedAttempts: readonly number[] = [];
    for (const row of rows) {
      if (row.kind === 'outcome') continue;
      if (row.kind === 'attempt') {
        // An attempt that an account's own key paid for is not on the provider's bill to us.
        if (row.detail.byok !== true) this.#attempts.add(dayOf(row.atMs), row);
        continue;
      }
      const { charged } = row.detail;
      const correction = { kind: row.kind, amountNanoUsd: asNanoUsd(row.amountNanoUsd), tokens: Number(row.tokens), byokTokens: Number(row.byokTokens) };
      const key = { period: row.period, day: dayOf(row.atMs), model: sourceOf(state, row.attempt)?.usage.model ?? '', provider: row.provider, keyId: row.keyId };
      this.#usage.add(key, usageOf({ facts: state.facts, sources: state.sources, bookedAttempts }, correction, charged, row.flags));
      bookedAttempts = charged;
      this.#addTotals(row, state);
    }
  }

  /** By period, day, provider, key and model. */
  usage(): Sums {
    return sumsOf(this.#usage.deltas(), ({ period, day, provider, keyId, model }) => [period, day, provider, keyId, model], (sum) => [
      sum.requests, sum.tokens, sum.byokTokens, sum.promptTokens, sum.completionTokens, sum.costNanoUsd, sum.chargeNanoUsd, sum.adjustedNanoUsd, sum.savingsNanoUsd, sum.feesNanoUsd,
    ]);
  }

  /** The same, with the other columns of the table. */
  usageDeltas(): readonly UsageDelta[] {
    return this.#usage.deltas();
  }

  /** By day and provider. */
  attempts(): Sums {
    return sumsOf(this.#attempts.deltas(), ({ day, provider }) => [day, provider], (sum) => [sum.attempts, sum.tokens, sum.costNanoUsd, sum.estimatedNanoUsd]);
  }

  /** By scope and period. */
  totals(): Sums {
    return this.#totals;
  }

  #addTotals({ keyId, period, amountNanoUsd, tokens, byokTokens }: StoredRow, { periods }: RequestState): void {
    for (const { scope, periodId } of totalDeltas({ keyId, periods: { ...periods, month: period }, chargeNanoUsd: amountNanoUsd, tokens, byokTokens })) {
      const name = `${scope} ${periodId}`;
      const [charge = 0n, all = 0n, byok = 0n] = this.#totals.get(name) ?? [];
      this.#totals.set(name, [charge + amountNanoUsd, all + tokens, byok + byokTokens]);
    }
  }
}
