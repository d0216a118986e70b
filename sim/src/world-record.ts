/** What is noted of a run while it runs, for the checks that follow. */
import type { Caller } from '@signalbox/edge/proof';
import { Coverage } from './coverage.js';
import { NOTHING, type Amounts, type Meter } from './limits.js';

/** A refusal by a limit, and which requests of its account there had been. */
export interface SeenRefusal {
  readonly accountId: string;
  readonly spend: bigint;
  readonly meter: Meter;
  readonly before: number;
}

/** Facts about requests, and what was found wrong. */
export class WorldRecord {
  readonly violations: string[] = [];
  /** Faults are over for so long that every refusal must be right. */
  isCalm = false;
  readonly coverage = new Coverage();
  /** By account: as it was before, and now. */
  readonly terms = new Map<string, Caller[]>();
  /** Most that was ever held, by request. */
  readonly held = new Map<string, Amounts>();
  /** What the counters were told that a request is charged, or a ledger that was restored had. */
  readonly finished = new Map<string, Amounts>();
  /** Requests whose worker died while they were under way: charged at most what was delivered until then. */
  readonly orphaned = new Set<string>();
  /** Requests that were taken for given up, since their edge was silent, and then given after all: their holds had ended. */
  readonly revived = new Set<string>();
  /** By `request/attempt`: when its worker heard, while it was under way, that the client had hung up by itself, in virtual milliseconds. */
  readonly left = new Map<string, number>();
  /** By `request/attempt`: when its edge first told what became of it, in virtual milliseconds. */
  readonly toldAtMs = new Map<string, number>();
  /** As `request/attempt`: those that another replica of a worker has, since one was lost with the attempt before at the same endpoint. */
  readonly elsewhere = new Set<string>();
  /** By `request/attempt`: prompt tokens by our own count. */
  readonly ownPrompts = new Map<string, number>();
  readonly refusals: SeenRefusal[] = [];
  /** By account: what was under way when the counters were lost, which no hold stands for afterwards. */
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

  /** Answers the most that it had held before. */
  protected holds(requestId: string, charge: bigint, tokens: bigint): Amounts {
    const before = this.held.get(requestId) ?? NOTHING;
    this.held.set(requestId, { charge: charge > before.charge ? charge : before.charge, tokens: tokens > before.tokens ? tokens : before.tokens });
    return before;
  }

  /** `asked`: requests that there have been. */
  protected decided(accountId: string, decision: string, spend: bigint, meter: Meter, asked: number): void {
    this.coverage.took(decision === 'admitted' ? 'new → reserved' : decision === 'blocked' ? 'new → blocked by live holds' : 'new → 402');
    if (decision === 'wall' && meter === 'tokens') this.coverage.took('new → 429 for tokens');
    if (decision === 'wall' && this.isCalm) this.refusals.push({ accountId, spend, meter, before: asked });
  }
}
