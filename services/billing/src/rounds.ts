/** Periodic work of billing: closes periods that are over, and reconciles the ledger hourly and at each close. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { periodAt } from '@signalbox/ledger-core/periods';
import type { Log } from '@signalbox/runtime/log';
import type { BooksStore, ReconcileRow } from './domain/books.js';
import type { Bookkeeper } from './domain/bookkeeper.js';
import type { Hearing } from './domain/hearing.js';
import type { LedgerNow, WriterMarkRow } from './domain/ports.js';
import { silentWriters } from './domain/silent-writers.js';
import type { BillingMetrics } from './metrics.js';

export interface RoundsOptions {
  readonly books: Pick<BooksStore, 'reconcile' | 'lastReconciled' | 'deadWaiting'>;
  readonly writers: () => Promise<readonly WriterMarkRow[]>;
  readonly hearing: Pick<Hearing, 'until'>;
  readonly keeper: Bookkeeper;
  /** Retries messages that were kept unread. Never rejects. */
  readonly reread: () => Promise<void>;
  readonly clock: Clock;
  readonly ledgerNow: LedgerNow;
  readonly log: Log;
  readonly metrics: BillingMetrics;
  readonly everyMs: number;
  readonly periodSeconds: number | undefined;
  readonly unreconciledOf: (rows: readonly ReconcileRow[]) => bigint;
}

export interface Rounds {
  begin(): void;
  /** Waits for a running round. */
  stop(): Promise<void>;
}

/** Interval between attempts to close a period that is over. */
const CLOSE_MS = 60_000;
const CLOSE_MIN_MS = 1_000;
/** First round after the start; writers have reported by then. */
const FIRST_MS = 20_000;

export function startRounds({ books, writers, hearing, keeper, reread, clock, ledgerNow, log, metrics, everyMs, periodSeconds, unreconciledOf }: RoundsOptions): Rounds {
  const closeMs = periodSeconds === undefined ? CLOSE_MS : Math.min(CLOSE_MS, Math.max(CLOSE_MIN_MS, periodSeconds * 250));
  let timer: Timer | undefined;
  let work: Promise<void> | undefined;
  let isStopped = false;
  let comparedAtMs = -Infinity;
  let lastPeriod = '';
  let hasWaiting = true;
  /** How far this host's clock was ahead of the ledger's at the last round. */
  let aheadMs = 0;

  async function compare(): Promise<void> {
    const rows = await books.reconcile(clock.nowMs());
    const unreconciled = unreconciledOf(rows);
    metrics.reconciled(unreconciled);
    comparedAtMs = clock.monotonicMs();
    if (unreconciled > 0n) log.warn('The ledger differs from the providers’ figures or from its own sums.', { unreconciled_nano_usd: String(unreconciled) });
  }

  async function round(): Promise<void> {
    await reread();
    const dead = await books.deadWaiting();
    metrics.deadWaiting(dead);
    if (dead > 0) log.error('Events wait in dead_events; no period closes until an operator has dealt with them.', { count: dead });
    const nowMs = await ledgerNow();
    aheadMs = clock.nowMs() - nowMs;
    metrics.writersSilent(silentWriters(await writers(), hearing.until(nowMs)));
    const period = periodAt(nowMs, periodSeconds).id;
    let hasClosed = false;
    const isHourly = clock.monotonicMs() - comparedAtMs >= everyMs;
    // Nothing can be due while the period is the same and none is waiting, but in a ledger that was restored from a backup. After a long pause, a round closes only some periods, so try again.
    if (hasWaiting || period !== lastPeriod || isHourly) {
      const { closed, waiting } = await keeper.closePeriods(nowMs);
      lastPeriod = period;
      hasWaiting = waiting.length > 0 || closed.length > 0;
      hasClosed = closed.length > 0;
      metrics.periodsClosed(closed.length);
      metrics.periodsWaiting(new Set(waiting.map((each) => each.period)).size);
    }
    if (hasClosed || isHourly) await compare();
    // Another replica or an operator may have reconciled since: show that result instead of our own for the rest of the hour.
    else metrics.reconciled(unreconciledOf(await books.lastReconciled()));
  }

  function arm(delayMs: number): void {
    if (isStopped) return;
    const nowMs = clock.nowMs() - aheadMs;
    const current = periodAt(nowMs, periodSeconds);
    // The terms of a period are those at its end, so read them then or as soon as possible after.
    const soonMs = lastPeriod === '' || lastPeriod === current.id ? current.endMs - nowMs : CLOSE_MIN_MS;
    timer = clock.setTimer(
      Math.min(delayMs, soonMs),
      () => {
        work = round()
          .catch((error: unknown) => {
            if (error instanceof Fault) log.warn('Closing or reconciling did not reach a store or a neighbour; it is tried again.', { code: error.code });
            else log.error('Closing or reconciling failed.', {}, error);
          })
          .finally(() => arm(Math.min(closeMs, everyMs)));
      },
      { unref: true },
    );
  }

  return {
    begin: () => arm(Math.min(FIRST_MS, closeMs)),
    stop: async () => {
      isStopped = true;
      timer?.cancel();
      await work;
    },
  };
}
