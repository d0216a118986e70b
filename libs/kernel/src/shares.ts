/** Places shared by all accounts. No account may take so many that others find none (ADR 73). */
import { LiveMap } from './live-map.js';

/** A single account may take four places in five; two accounts, four in nine each. */
const TIMES_FREE_MAX = 4;

/** Until a second account asks for a place, the first one may take all. */
export class Shares {
  /** Places taken by account, without zeros. */
  private readonly taken = new LiveMap<string, number>();
  private total = 0;
  /** The account that asked first. */
  private first: string | undefined;
  private hasOthers = false;

  /** An account may take one more place while it has fewer than `timesFreeMax` times the free ones. */
  constructor(
    private readonly placesMax: number,
    private readonly timesFreeMax = TIMES_FREE_MAX,
  ) {}

  /** Number of taken places. */
  get size(): number {
    return this.total;
  }

  takenBy(accountId: string): number {
    return this.taken.get(accountId) ?? 0;
  }

  /** Registers the account: from the second account on, each must leave places for others. */
  meet(accountId: string): void {
    this.first ??= accountId;
    this.hasOthers ||= accountId !== this.first;
  }

  /** Registers the account, and returns whether it may take one more place. */
  hasRoom(accountId: string): boolean {
    this.meet(accountId);
    const free = this.placesMax - this.total;
    return free > 0 && (!this.hasOthers || this.takenBy(accountId) < this.timesFreeMax * free);
  }

  take(accountId: string): void {
    this.total += 1;
    this.taken.set(accountId, this.takenBy(accountId) + 1);
  }

  /** Returns a taken place; call it once for each. */
  leave(accountId: string): void {
    this.total -= 1;
    const left = this.takenBy(accountId) - 1;
    if (left > 0) this.taken.set(accountId, left);
    else this.taken.delete(accountId);
  }
}
