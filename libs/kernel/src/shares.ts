/** Places that all accounts use together, of which none may take so many that others find none (ADR 73). */
import { LiveMap } from './live-map.js';

/** Alone four places in five, of two each four in nine. */
const TIMES_FREE_MAX = 4;

/** Until a second account asks for a place, the only one may have them all. */
export class Shares {
  /** Of those accounts alone that have any. */
  private readonly taken = new LiveMap<string, number>();
  private total = 0;
  /** The account that asked first. */
  private first: string | undefined;
  private hasOthers = false;

  /** An account may have one more while it has fewer than `timesFreeMax` times as many as are free. */
  constructor(
    private readonly placesMax: number,
    private readonly timesFreeMax = TIMES_FREE_MAX,
  ) {}

  /** Places that are taken. */
  get size(): number {
    return this.total;
  }

  takenBy(accountId: string): number {
    return this.taken.get(accountId) ?? 0;
  }

  /** The account is there: from the second on each leaves some to the others. */
  meet(accountId: string): void {
    this.first ??= accountId;
    this.hasOthers ||= accountId !== this.first;
  }

  /** Whether the account, which is met by that, may have one more. */
  hasRoom(accountId: string): boolean {
    this.meet(accountId);
    const free = this.placesMax - this.total;
    return free > 0 && (!this.hasOthers || this.takenBy(accountId) < this.timesFreeMax * free);
  }

  take(accountId: string): void {
    this.total += 1;
    this.taken.set(accountId, this.takenBy(accountId) + 1);
  }

  /** Gives back one that was taken; call it once for each. */
  leave(accountId: string): void {
    this.total -= 1;
    const left = this.takenBy(accountId) - 1;
    if (left > 0) this.taken.set(accountId, left);
    else this.taken.delete(accountId);
  }
}
