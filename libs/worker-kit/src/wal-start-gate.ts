/** What stands between a request and the start of its attempt: billing must know the writer, quota must still have the hold or be told of it, and edge must not have given it up. */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { AttemptStart } from './journal.js';
import { ReservationAge } from './reservation-age.js';
import type { Settlement } from './settlement.js';

/** 5 s: below the first-byte time-out of every caller. */
const REGISTRATION_WAIT_MS = 5_000;
/** An attempt whose link broke may come after the word, by another link, that it was given up. */
const FORETOLD_MAX = 10_000;
/** A lease lasts 30 s; clocks may be ahead by some. */
const FRESH_MS = 15_000;

export class StartGate {
  private readonly ages: ReservationAge;
  private readonly waiters = new Set<() => void>(); // kept: of a start alone.
  /** Keys of attempts that edge gave up before they came, oldest first. */
  private readonly foretold = new Set<string>(); // kept: names alone, of attempts that were given up before they came.
  private isKnown = false;

  constructor(
    private readonly clock: Clock,
    private readonly settlement: Pick<Settlement, 'isPresent' | 'isPresentFor' | 'confirm' | 'tellUnwatched'>,
  ) {
    this.ages = new ReservationAge(clock);
  }

  /** True once billing knows the writer. */
  get isOpen(): boolean {
    return this.isKnown;
  }

  open(): void {
    this.isKnown = true;
    for (const resolve of this.waiters) resolve();
    this.waiters.clear();
  }

  /** Undefined: it may start now. Rejects with a Fault `billing_unavailable` or `quota_unavailable`. */
  pass(record: AttemptStart): Promise<void> | undefined {
    return this.isKnown ? this.holds(record) : this.registered().then(() => this.holds(record));
  }

  /**
   * What no limit watched starts in any case, but quota is told first where it may have forgotten it: when its store has begun
   * another life since the admission, or a lease may have ended. A limit that was set by then leaves others only what this
   * leaves. `written`: its start, from which on it counts as under way.
   */
  told({ holdEpoch = '', attempt, accountId, requestId, periods, draw = null }: AttemptStart, written: Promise<void>): Promise<void> {
    if (holdEpoch !== '') return written;
    const ageMs = this.ages.ageMs(Number(periods.reservedAtMs));
    // A later attempt follows one that was under way: such a hold does not end by time.
    if (this.settlement.isPresentFor(ageMs) && (ageMs < FRESH_MS || attempt > 1)) return written;
    return written.then(() => this.settlement.tellUnwatched(accountId, requestId, draw));
  }

  foretell(key: string): void {
    this.foretold.add(key);
    const oldest = this.foretold.size > FORETOLD_MAX ? this.foretold.values().next().value : undefined;
    if (oldest !== undefined) this.foretold.delete(oldest);
  }

  /** True, once, for what was foretold. */
  wasForetold(key: string): boolean {
    return this.foretold.delete(key);
  }

  /**
   * What quota has forgotten does not start: a limit may have no room for it any more. Quota is asked when its store has
   * another life, when a lease may have ended before the request came here, and after an attempt that may have been concluded.
   */
  private holds({ holdEpoch = '', attempt, accountId, requestId, periods, draw = null }: AttemptStart): Promise<void> | undefined {
    if (holdEpoch === '') return undefined;
    const isFresh = this.ages.ageMs(Number(periods.reservedAtMs)) < FRESH_MS && attempt === 1;
    if (isFresh && this.settlement.isPresent(holdEpoch)) return undefined;
    const forgotten = new Fault('quota_unavailable', 'The hold of this request was lost.');
    return this.settlement.confirm(accountId, requestId, holdEpoch, draw).then(
      (isHeld) => (isHeld ? undefined : Promise.reject(forgotten)),
      () => Promise.reject(forgotten),
    );
  }

  private registered(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.clock.setTimer(REGISTRATION_WAIT_MS, () => {
        this.waiters.delete(done);
        reject(new Fault('billing_unavailable', 'The worker is not registered with billing yet.'));
      });
      const done = (): void => {
        timer.cancel();
        resolve();
      };
      this.waiters.add(done);
    });
  }
}
