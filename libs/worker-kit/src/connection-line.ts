/** The queue for the connections to one origin, which accounts share (docs/adr/0073). */
import { Shares } from '@signalbox/kernel/shares';
import type { DispatchHandler, DispatchOptions, Pool } from '@signalbox/runtime/http-client';

/** A place among the connections: one connection is reserved for a request, or the request waits for one. */
export interface Place {
  /** Pending while the request waits; resolves when the connection is reserved, or when there will be none and the request will fail to connect. Undefined = already reserved. */
  readonly turn: Promise<void> | undefined;
  /** Gives the place back, unless a request was posted with it. Safe to call twice. */
  leave(): void;
}

/** Options of a dispatched request. */
export type Posted = DispatchOptions & { readonly exchange: DispatchHandler & { onResponseError(): void } };

/** A place of one request at an origin: it has a connection or waits for one. */
export class Seat implements Place {
  turn: Promise<void> | undefined;
  /** `lost`: there is no connection, and will be none. */
  state: 'waiting' | 'had' | 'lost' | 'left' = 'lost';
  /** A request was posted with it; it is given back when that is over. */
  isPosted = false;
  onTurn: () => void = () => undefined;

  constructor(
    readonly accountId: string,
    readonly line: Line,
  ) {}

  settle(state: 'had' | 'lost'): void {
    this.state = state;
    this.turn = undefined;
    this.onTurn();
  }

  leave(): void {
    if (!this.isPosted) this.giveBack();
  }

  giveBack(): void {
    const { state } = this;
    this.state = 'left';
    if (state === 'waiting' || state === 'had') this.line.left(this, state);
  }
}

/** The connections to one origin, and the queue for them. */
export class Line {
  private readonly shares: Shares;
  /** By account, each in the order of arrival. */
  private readonly waiting = new Map<string, Set<Seat>>(); // kept: empty while a connection is free.
  private waitingCount = 0;
  private isClosed = false;
  private isRetired = false;

  constructor(
    private readonly pool: Pool,
    connectionsMax: number,
    private readonly waitingMax = Infinity,
  ) {
    this.shares = new Shares(connectionsMax);
  }

  /** Takes a seat; its state is `lost` if too many wait already. */
  seat(accountId: string): Seat {
    const seat = new Seat(accountId, this);
    if (this.shares.hasRoom(accountId)) {
      this.shares.take(accountId);
      seat.state = 'had';
    } else if (this.waitingCount < this.waitingMax) {
      seat.state = 'waiting';
      this.waitingCount += 1;
      const seats = this.waiting.get(accountId);
      if (seats === undefined) this.waiting.set(accountId, new Set([seat]));
      else seats.add(seat);
    }
    return seat;
  }

  post(posted: Posted, seat: Seat): void {
    seat.isPosted = true;
    const go = (): void => {
      if (seat.state === 'lost' || this.isClosed) posted.exchange.onResponseError();
      else this.pool.dispatch(posted, posted.exchange);
    };
    if (seat.state === 'waiting') seat.onTurn = go;
    else go();
  }

  left(seat: Seat, state: 'waiting' | 'had'): void {
    if (state === 'waiting') this.forget(seat);
    else this.shares.leave(seat.accountId);
    if (!this.isClosed) this.goOn();
    this.closeIfIdle();
  }

  /** Closes the pool once the requests that run or wait are over. */
  retire(): void {
    this.isRetired = true;
    this.closeIfIdle();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    for (const seats of [...this.waiting.values()]) {
      for (const seat of seats) {
        this.forget(seat);
        seat.settle('lost');
      }
    }
    await this.pool.destroy();
  }

  private closeIfIdle(): void {
    if (this.isRetired && this.shares.size === 0 && this.waitingCount === 0) this.pool.close().catch(() => undefined);
  }

  private forget(seat: Seat): void {
    const seats = this.waiting.get(seat.accountId);
    if (seats?.delete(seat) !== true) return;
    this.waitingCount -= 1;
    if (seats.size === 0) this.waiting.delete(seat.accountId);
  }

  /** Gives free connections to the accounts that have the fewest, each time to their longest waiting request. */
  private goOn(): void {
    while (this.waitingCount > 0) {
      let fewest = Infinity;
      let next: Seat | undefined;
      for (const [accountId, [first]] of this.waiting) {
        const taken = this.shares.takenBy(accountId);
        if (taken < fewest && this.shares.hasRoom(accountId)) {
          fewest = taken;
          next = first;
        }
      }
      if (next === undefined) return;
      this.forget(next);
      this.shares.take(next.accountId);
      next.settle('had');
    }
  }
}
