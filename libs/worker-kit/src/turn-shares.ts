/** Bounds what all streams of this process together may process in one turn of the event loop: many that flood at once would hold up every other request. */
import { atTurnEnd } from '@signalbox/runtime/turn';

/** From here on, streams that bring much wait for a turn of their own: about ten milliseconds of the smallest events. */
export const ALL_BYTES_MAX = 262_144;
/** What a stream may always process in a turn; no model writes as much. */
export const SHARE_BYTES = 16_384;

interface Waiting {
  readonly bytes: number;
  readonly readOn: () => void;
}

export class TurnShares {
  private turn = 0;
  private usedBytes = 0;
  private isArmed = false;
  /** Streams that wait, the longest first. */
  private waiting: Waiting[] = [];

  /** `schedule` calls back at the end of the present turn, or of the next one if that is what it is called in. */
  constructor(private readonly schedule: (callback: () => void) => void) {}

  /** Number of the present turn. */
  get number(): number {
    return this.turn;
  }

  /** Whether a stream that has processed `own` bytes in this turn must wait before it processes `more`. */
  mustWait(own: number, more: number): boolean {
    return this.usedBytes >= ALL_BYTES_MAX && own + more > SHARE_BYTES;
  }

  /** So many bytes are processed in this turn. */
  use(bytes: number): void {
    this.usedBytes += bytes;
    this.arm();
  }

  /** Calls back in a later turn in which there is room for `bytes`, in the order of the calls. They count as used then. */
  wait(bytes: number, readOn: () => void): void {
    this.waiting.push({ bytes, readOn });
    this.arm();
  }

  private arm(): void {
    if (this.isArmed) return;
    this.isArmed = true;
    this.schedule(this.endTurn);
  }

  private readonly endTurn = (): void => {
    this.isArmed = false;
    this.turn += 1;
    this.usedBytes = 0;
    const due = this.waiting;
    let called = 0;
    this.waiting = [];
    try {
      for (; called < due.length && this.usedBytes < ALL_BYTES_MAX; ) {
        const next = due[called];
        called += 1;
        if (next === undefined) continue;
        this.use(next.bytes);
        next.readOn();
      }
    } finally {
      // Who has waited longer comes before those that wait since.
      if (called < due.length) this.waiting = [...due.slice(called), ...this.waiting];
      if (this.waiting.length > 0) this.arm();
    }
  };
}

/** One per process, like the event loop. */
export const turnShares = new TurnShares(atTurnEnd);

/** What one stream brings. */
export class StreamShare {
  /** Bytes that came in the turn that `take` last saw, or since its owner last yielded to others in it. */
  turnBytes = 0;
  private turn = -1;

  constructor(private readonly shares: TurnShares = turnShares) {}

  /** Bytes have come. False = the others have used up this turn, and these have to wait. */
  take(bytes: number): boolean {
    const { shares } = this;
    if (this.turn !== shares.number) {
      this.turn = shares.number;
      this.turnBytes = 0;
    }
    const mayPass = !shares.mustWait(this.turnBytes, bytes);
    this.turnBytes += bytes;
    if (mayPass) shares.use(bytes);
    return mayPass;
  }

  /** As of `TurnShares`. */
  wait(bytes: number, readOn: () => void): void {
    this.shares.wait(bytes, readOn);
  }
}
