/** Facts recorded during a run, for the checks. */
import type { Caller } from '@signalbox/edge/proof';
import { Coverage } from './coverage.js';
import { NOTHING, type Amounts, type Meter } from './limits.js';

/** A refusal by a limit, and the number of requests before it. */
export interface SeenRefusal {
  readonly accountId: string;
  readonly spend: bigint;
  readonly meter: Meter;
  readonly before: number;
}

/** Facts about requests, and the violations found. */
export class WorldRecord {
  readonly violations: string[] = [];
  /** Faults ended long enough ago that every refusal must be justified. */
  isCalm = false;
  readonly coverage = new Coverage();
  /** By account: its earlier and its current terms. */
  readonly terms = new Map<string, Caller[]>();
  /** Largest hold ever, by request. */
  readonly held = new Map<string, Amounts>();
  /** Charge of a request as reported to the counters, or as in a ledger before it was restored. */
  readonly finished = new Map<string, Amounts>();
  /** Requests whose worker died while they ran: charged at most for what was delivered until then. */
  readonly orphaned = new Set<string>();
  /** Requests that counted as abandoned because their edge was silent, and were then delivered after all: their holds had ended. */
  readonly revived = new Set<string>();
  /** By `request/attempt`: when its worker learnt, during the attempt, that the client had hung up by itself, in virtual milliseconds. */
  readonly left = new Map<string, number>();
  /** By `request/attempt`: when its edge first reported its outcome, in virtual milliseconds. */
  readonly toldAtMs = new Map<string, number>();
  /** `request/attempt` of attempts that were repeated at another replica of a worker, after one was lost with the previous attempt at the same endpoint. */
  readonly elsewhere = new Set<string>();
  /** By `request/attempt`: prompt tokens by our own count. */
  readonly ownPrompts = new Map<string, number>();
  readonly refusals: SeenRefusal[] = [];
  /** By account: amounts of requests that were running when the counters were lost and have no hold afterwards. */
  readonly forgotten = new Map<string, Amounts>();

  violate(text: string): void {
    if (this.violations.length < 8) this.violations.push(text);
  }

  protected bug(error: unknown): void {
    this.violate(`a bug: ${error instanceof Error ? (error.stack ?? error.message) : 'unknown'}`);
  }

  protected forget(accountId: string, lost: Amounts): void {
    const before = this.forgotten.get(accountId) ?? NOTHING;
    const grown = (meter: Meter): bigint => before[meter] + (lost[meter] > 0n ? lost[meter] : 0n);
    this.forgotten.set(accountId, { charge: grown('charge'), tokens: grown('tokens') });
  }

  /** Returns its largest hold before. */
  protected holds(requestId: string, charge: bigint, tokens: bigint): Amounts {
    const before = this.held.get(requestId) ?? NOTHING;
    this.held.set(requestId, { charge: charge > before.charge ? charge : before.charge, tokens: tokens > before.tokens ? tokens : before.tokens });
    return before;
  }

  /** `asked`: number of requests so far. */
  protected decided(accountId: string, decision: string, spend: bigint, meter: Meter, asked: number): void {
    this.coverage.took(decision === 'admitted' ? 'new → reserved' : decision === 'blocked' ? 'new → blocked by live holds' : 'new → 402');
    if (decision === 'wall' && meter === 'tokens') this.coverage.took('new → 429 for tokens');
    if (decision === 'wall' && this.isCalm) this.refusals.push({ accountId, spend, meter, before: asked });
  }
}
