/** Conditions for the start of an attempt: billing knows the writer, quota still has the hold or is told of it, and edge has not given the attempt up. */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { AttemptStart } from './journal.js';
import { ReservationAge } from './reservation-age.js';
import type { Settlement } from './settlement.js';

/** 5 s, less than the first-byte time-out of every caller. */
const REGISTRATION_WAIT_MS = 5_000;
/** Most attempts remembered as given up before they arrived. That happens if the link broke and another link brought the outcome first. */
const FORETOLD_MAX = 10_000;
/** A lease lasts 30 s; this leaves room for clocks that are ahead. */
const FRESH_MS = 15_000;

export class StartGate {
  private readonly ages: ReservationAge;
  private readonly waiters = new Set<() => void>(); // kept: of a start alone.
  /** Keys of attempts that edge gave up before they arrived, oldest first. */
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

  /** Resolves when the attempt may start; undefined if it may start now. Rejects with a Fault `billing_unavailable` or `quota_unavailable`. */
  pass(record: AttemptStart): Promise<void> | undefined {
    return this.isKnown ? this.holds(record) : this.registered().then(() => this.holds(record));
  }

  /**
   * A request that no limit watched always starts, but quota is told first if it may have forgotten the request: if its store
   * has begun another epoch since the admission, or the lease may have expired. A limit that was set meanwhile must count it.
   * `written` resolves when the start is in the log; from then on the attempt is under way.
   */
  told({ holdEpoch = '', attempt, accountId, requestId, periods, draw = null }: AttemptStart, written: Promise<void>): Promise<void> {
    if (holdEpoch !== '') return written;
    const ageMs = this.ages.ageMs(Number(periods.reservedAtMs));
    // A later attempt follows one that was under way, so its hold does not expire by time.
    if (this.settlement.isPresentFor(ageMs) && (ageMs < FRESH_MS || attempt > 1)) return written;
    return written.then(() => this.settlement.tellUnwatched(accountId, requestId, draw));
  }

  foretell(key: string): void {
    this.foretold.add(key);
    const oldest = this.foretold.size > FORETOLD_MAX ? this.foretold.values().next().value : undefined;
    if (oldest !== undefined) this.foretold.delete(oldest);
  }

  /** True, once, for a key that was passed to `foretell`. */
  wasForetold(key: string): boolean {
    return this.foretold.delete(key);
  }

  /**
   * An attempt whose hold quota has lost does not start: the limits may have no room for it any more. Quota is asked if its
   * store has begun another epoch, if the lease may have expired before the request arrived, and for every later attempt, since
   * the earlier one may have been concluded and its hold freed.
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
