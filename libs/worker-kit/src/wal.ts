/**
 * The write-ahead log of a worker: the one record of money facts, on local disk (BILLING, sections 2 and 3).
 *
 * Durability: promises resolve after write(2), so a kill of the process loses nothing; fdatasync runs in the
 * background at most once a second, so a power failure or a crash of the system can lose the last second.
 */
import type { Bus } from '@signalbox/bus/bus';
import type { Clock, RandomBytes, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { LiveHold } from '@signalbox/contracts/quota';
import type { LiveMap } from '@signalbox/kernel/live-map';
import { NO_TOKENS, totalTokens, type TokenCounts } from '@signalbox/kernel/tokens';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import { afterTurn } from '@signalbox/runtime/turn';
import type { AttemptEnd, AttemptStart, Journal, JournalState, OutcomeTerms, ToldOutcome } from './journal.js';
import { ReservationAge } from './reservation-age.js';
import { createSettlement, type Settlement } from './settlement.js';
import { createShipping, type Shipping } from './shipping.js';
import { attemptKey, LiveAttempt, liveHoldOf, NO_ROUNDS, NOTHING_HELD, oldestReservationMs, type Told } from './wal-attempt.js';
import { GroupCommit } from './wal-commit.js';
import { localDisk, type WalDisk } from './wal-disk.js';
import { CheckEntry, EarlyOutcomeEntry, EndEntry, OutcomeEntry, StartEntry, type AttemptBook } from './wal-entries.js';
import { completeEvent, concludedOutcome, finishedHold, orphanEvent, restsOnCalls, startedEvent, withPrompt, type AttemptEvent } from './wal-events.js';
import { LogFiles } from './wal-files.js';
import { replayLog, type Replayed } from './wal-replay.js';

export interface JournalOptions {
  /** Of this worker alone: a second living process is refused. */
  readonly directory: string;
  /** Recorded with the writer at billing. */
  readonly provider: string;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Log;
  readonly bus: Bus;
  readonly quota: RpcClient;
  readonly billing: RpcClient;
  /** For simulations: instead of the files of `directory`. */
  readonly disk?: WalDisk;
  /** For simulations: instead of setImmediate, calls back when the present turn of the event loop is over. */
  readonly afterTurn?: (callback: () => void) => void;
}

export interface OpenJournal extends Journal {
  /** True once billing knows the writer; stays true when billing goes away later. */
  isRegistered(): boolean;
  /**
   * For callers who know that no edge of before is left: concludes at once what an earlier process left open, instead of
   * after 30 s. Resolves when all that is in the log is in the ledger; waits for billing and the bus as long as it takes,
   * rejects with a Fault `cancelled` at `close`.
   */
  recover(): Promise<void>;
  /** Writes what is waiting, makes it durable and hands it to the bus if that is there. */
  flush(): Promise<void>;
  /** Writes what is waiting and gives the directory back. Safe to call twice. */
  close(): Promise<void>;
}

/** 5 s: below the first-byte time-out of every caller. */
const REGISTRATION_WAIT_MS = 5_000;
/**
 * 30 s without a word of edge after an end, or after the start of this process: edge died before it told, and the outcome
 * is concluded. Sooner, a 0 for an attempt that edge has moved on from would free the hold that the next one draws on.
 */
const CONCLUDE_MS = 30_000;
/** 10 min: rounds of one request are told of together, once the last has ended. Of those that edge tends it is known when edge dies. */
const CONCLUDE_ROUND_MS = 600_000;
const CONCLUDE_SWEEP_MS = 1_000;
/** 30 min: no request of edge lasts longer, so no word of it comes later. */
const CONCLUDED_KEPT_MS = 1_800_000;
const CONCLUDED_MAX = 10_000;
/** An attempt whose link broke may come after the word, by another link, that it was given up. */
const FORETOLD_MAX = 10_000;
const COOL_MS = 60_000;
/** A lease lasts 30 s; clocks may be ahead by some. */
const FRESH_MS = 15_000;

interface Opened {
  readonly writer: string;
  readonly provider: string;
  readonly files: LogFiles;
  readonly replayed: Replayed;
  readonly unlock: () => void;
}

class WriteAheadLog implements OpenJournal, AttemptBook {
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly files: LogFiles;
  private readonly commit: GroupCommit;
  private readonly settlement: Settlement;
  private readonly shipping: Shipping;
  /** Between start and outcome, by key. */
  private readonly open: LiveMap<string, LiveAttempt>;
  /** Outcomes that the worker concluded by itself, oldest first: the word of edge that may still come counts more. */
  private readonly concluded: Map<string, LiveAttempt>;
  /** Keys of attempts that edge gave up before they came, oldest first. */
  private readonly foretold = new Set<string>();
  /** What an earlier process left without an end or an outcome. */
  private readonly leftovers: Set<LiveAttempt>;
  private readonly ages: ReservationAge;
  private readonly registrationWaiters = new Set<() => void>();
  private recoveryWaiters: { resolve: () => void; reject: (fault: Fault) => void }[] = [];
  private isKnown = false;
  /** No edge can tell of leftovers any more. */
  private isAlone = false;
  private isClosed = false;
  private lastCoolMs: number;
  private sweepTimer: Timer | undefined;

  constructor(
    options: JournalOptions,
    private readonly opened: Opened,
  ) {
    const { clock, log, bus, billing, quota } = options;
    const { writer, provider, files, replayed } = opened;
    this.clock = clock;
    this.log = log;
    this.files = files;
    this.open = replayed.open;
    this.concluded = replayed.concluded;
    this.leftovers = new Set(replayed.open.values());
    this.lastCoolMs = clock.monotonicMs();
    this.ages = new ReservationAge(clock);
    this.settlement = createSettlement({ writer, quota, clock, liveHolds: (epoch) => this.liveHolds(epoch), unwatchedHolds: (requestIds) => this.unwatchedHolds(requestIds) });
    for (const { hold, seq } of replayed.finished) this.settlement.finishedBefore(hold, seq);
    this.shipping = createShipping({
      writer, provider, bus, billing, clock, log,
      lastSeq: () => files.lastSeq,
      openSinceMs: () => oldestReservationMs(this.open.values()),
      read: (after, limit) => files.read(after, limit),
      onRegistered: (ledgerSeq) => this.registered(ledgerSeq),
      onLedger: (ledgerSeq) => this.booked(ledgerSeq),
      isAwaited: () => this.recoveryWaiters.length > 0,
    });
    this.commit = new GroupCommit({ files, writer, clock, log, afterTurn: options.afterTurn ?? afterTurn, onShippable: (records) => this.shipping.add(records) });
    this.armSweep();
    this.shipping.begin();
  }

  start(record: AttemptStart): Promise<void> {
    return this.isKnown ? this.beginHeld(record) : this.waitForRegistration().then(() => this.beginHeld(record));
  }

  checkpoint(requestId: string, attemptNumber: number, tokens: TokenCounts): void {
    const attempt = this.open.get(attemptKey(requestId, attemptNumber));
    if (attempt === undefined || attempt.isEnding) return;
    this.commit.add(new CheckEntry(attempt, withPrompt(tokens, attempt.promptTokens)));
  }

  end(requestId: string, attemptNumber: number, end: AttemptEnd): Promise<void> {
    const attempt = this.open.get(attemptKey(requestId, attemptNumber));
    if (attempt === undefined || attempt.isEnding) return Promise.resolve();
    completeEvent(attempt.event, end);
    // It holds the cards of the start.
    if (end.cards !== undefined) attempt.head = undefined;
    return this.writeEnd(attempt);
  }

  outcome(requestId: string, attemptNumber: number, outcome: ToldOutcome, byEdge: boolean, { isFollowed = false, isReserve = false }: OutcomeTerms = {}): Promise<void> | undefined {
    const key = attemptKey(requestId, attemptNumber);
    const attempt = this.open.get(key) ?? this.concluded.get(key);
    if (attempt === undefined) {
      if (byEdge && outcome !== 'DELIVERED') this.foretell(key);
      return undefined;
    }
    const told: Told = { outcome, byEdge, isFollowed, isReserve };
    if (attempt.endedAtMs === undefined || !this.isKnown) {
      if (attempt.early === undefined || (byEdge && !attempt.early.byEdge)) {
        attempt.early = told;
        // It stands in memory alone: whoever must not lose it waits, and tells it again.
        if (byEdge && attempt.telling === undefined && !this.isForeseen(attempt, told)) this.promiseTelling(attempt);
        if (attempt.isStarted) this.keepEarly(attempt);
      }
    } else if (attempt.told === undefined) this.writeOutcome(attempt, told);
    else if (byEdge && !attempt.told.byEdge) {
      // Written also where it says the same: that edge gave it itself keeps a later attempt from taking its place.
      this.concluded.delete(key);
      this.writeOutcome(attempt, told);
    }
    return attempt.telling;
  }

  tend(requestId: string, attemptNumber: number): void {
    const attempt = this.open.get(attemptKey(requestId, attemptNumber));
    if (attempt !== undefined) attempt.tendedAtMs = this.clock.monotonicMs();
  }

  state(): JournalState {
    return { writer: this.opened.writer, lastSeq: this.files.lastSeq, shippedSeq: this.shipping.shippedSeq(), ledgerSeq: this.shipping.ledgerSeq() };
  }

  isRegistered(): boolean {
    return this.isKnown;
  }

  recover(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.recoveryWaiters.push({ resolve, reject });
      this.isAlone = true;
      if (this.isKnown) this.concludeLeftovers();
      this.checkRecovered();
    });
  }

  async flush(): Promise<void> {
    this.commit.flush();
    await new Promise<void>((resolve) => this.files.sync(resolve));
    await this.shipping.flush();
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    // Outcomes that follow from ends are written in a second turn.
    for (let turn = 0; turn < 2; turn += 1) this.commit.flush();
    this.commit.close();
    this.sweepTimer?.cancel();
    await this.shipping.flush();
    this.shipping.close();
    this.settlement.close();
    for (const { reject } of this.recoveryWaiters.splice(0)) reject(new Fault('cancelled', 'The write-ahead log is closed.'));
    this.files.close();
    this.opened.unlock();
  }

  started(attempt: LiveAttempt): void {
    const { event } = attempt;
    attempt.isStarted = true;
    this.settlement.live(event.accountId, event.requestId);
    this.keepEarly(attempt);
  }

  notStarted(attempt: LiveAttempt): void {
    this.open.delete(attempt.key);
    attempt.settleTelling?.();
  }

  ended(attempt: LiveAttempt): void {
    attempt.endedAtMs = this.clock.monotonicMs();
    if (attempt.early !== undefined) this.writeOutcome(attempt, attempt.early);
  }

  told(attempt: LiveAttempt, told: Told, seq: number): void {
    const { event, key } = attempt;
    if (this.open.delete(key)) this.settlement.released(event.requestId);
    this.leftovers.delete(attempt);
    if (!told.byEdge && attempt.told === told) this.remember(attempt);
    const hold = told.isFollowed === true ? undefined : finishedHold(event, told.outcome, attempt.rounds);
    if (hold === undefined) return;
    // Edge alone knows which round is the last: the ledger's totals end the hold.
    if (attempt.rounds !== undefined && !told.byEdge) {
      if (told.outcome === 'DELIVERED') this.settlement.finishedBefore(hold, seq);
    } else this.settlement.finished(hold, seq);
  }

  notTold(attempt: LiveAttempt, told: Told): void {
    if (attempt.told === told) attempt.told = undefined;
  }

  /**
   * What quota has forgotten does not start: a limit may have no room for it any more. Quota is asked when its store has
   * another life, when a lease may have ended before the request came here, and after an attempt that may have been concluded.
   */
  private beginHeld(record: AttemptStart): Promise<void> {
    const { holdEpoch = '', attempt, accountId, requestId, periods } = record;
    if (holdEpoch === '') return this.begin(record);
    const isFresh = this.ages.ageMs(Number(periods.reservedAtMs)) < FRESH_MS && attempt === 1;
    if (isFresh && this.settlement.isPresent(holdEpoch)) return this.begin(record);
    const forgotten = new Fault('quota_unavailable', 'The hold of this request was lost.');
    return this.settlement.confirm(accountId, requestId, holdEpoch).then(
      (isHeld) => (isHeld ? this.begin(record) : Promise.reject(forgotten)),
      () => Promise.reject(forgotten),
    );
  }

  /** A life that admitted the request has its hold, which grows within the account's limits only: it is told of no amount. */
  private liveHolds(epoch: string): LiveHold[] {
    return [...this.open.values()].map((attempt) => liveHoldOf(attempt, attempt.heldIn === epoch ? NOTHING_HELD : attempt.held));
  }

  private unwatchedHolds(requestIds: ReadonlySet<string>): LiveHold[] {
    return [...this.open.values()].filter(({ event, heldIn }) => heldIn === '' && requestIds.has(event.requestId)).map((attempt) => liveHoldOf(attempt, attempt.held));
  }

  private begin(record: AttemptStart): Promise<void> {
    const attempt = new LiveAttempt(startedEvent(record), record.promptTokens, this.files.openSegment, record.rounds);
    if (record.held !== undefined) attempt.held = record.held;
    attempt.heldIn = record.holdEpoch ?? '';
    if (this.foretold.delete(attempt.key)) return Promise.reject(new Fault('cancelled', 'This attempt was given up before it came.'));
    if (this.open.has(attempt.key) || this.concluded.has(attempt.key)) return Promise.reject(new Fault('bad_message', 'This attempt was started before.'));
    this.open.set(attempt.key, attempt);
    return new Promise((resolve, reject) => {
      this.commit.add(new StartEntry(this, attempt, resolve, reject));
    });
  }

  private writeEnd(attempt: LiveAttempt): Promise<void> {
    attempt.isEnding = true;
    return new Promise((resolve, reject) => {
      this.commit.add(new EndEntry(this, attempt, resolve, reject));
    });
  }

  private writeOutcome(attempt: LiveAttempt, told: Told): void {
    const isForeseen = attempt.told === undefined && attempt.settleTelling === undefined && this.isForeseen(attempt, told);
    attempt.told = told;
    if (isForeseen) this.commit.addLazily(new OutcomeEntry(this, attempt, told));
    else this.keepTelling(attempt, (settle) => this.commit.add(new OutcomeEntry(this, attempt, told, settle)));
  }

  /** True for what recovery would conclude anyway: it is not lost with the process. */
  private isForeseen({ event }: LiveAttempt, { outcome, isReserve }: Told): boolean {
    return isReserve !== true && !restsOnCalls(event) && outcome === concludedOutcome(event);
  }

  private keepTelling(attempt: LiveAttempt, write: (settle: (fault?: Fault) => void) => void): void {
    if (attempt.settleTelling === undefined) this.promiseTelling(attempt);
    const settle = attempt.settleTelling;
    attempt.settleTelling = undefined;
    write((fault) => settle?.(fault));
  }

  private promiseTelling(attempt: LiveAttempt): void {
    if (attempt.settleTelling !== undefined) return;
    attempt.telling = new Promise((resolve, reject) => {
      attempt.settleTelling = (fault) => (fault === undefined ? resolve() : reject(fault));
    });
    // Whoever told it waits for it; nobody else does.
    attempt.telling.catch(() => undefined);
  }

  /** Edge never told: nobody is charged for rounds whose request broke off before it was answered. */
  private conclusionOf(attempt: LiveAttempt): 'DELIVERED' | 'DISCARDED' {
    const outcome = concludedOutcome(attempt.event);
    return restsOnCalls(attempt.event) && !this.isAnsweredLater(attempt.event) ? 'DISCARDED' : outcome;
  }

  private isAnsweredLater({ requestId, attempt }: AttemptEvent): boolean {
    for (const known of [this.open, this.concluded]) {
      for (const { event, endedAtMs } of known.values()) {
        if (event.requestId === requestId && event.attempt > attempt && endedAtMs !== undefined && !restsOnCalls(event) && concludedOutcome(event) === 'DELIVERED') return true;
      }
    }
    return false;
  }

  /** Whoever reads the log after a kill would conclude that it was delivered. */
  private keepEarly(attempt: LiveAttempt): void {
    const { early } = attempt;
    if (this.isKnown && early?.byEdge === true && early.outcome !== 'DELIVERED') this.keepTelling(attempt, (settle) => this.commit.add(new EarlyOutcomeEntry(attempt, early, settle)));
  }

  private foretell(key: string): void {
    this.foretold.add(key);
    const oldest = this.foretold.size > FORETOLD_MAX ? this.foretold.values().next().value : undefined;
    if (oldest !== undefined) this.foretold.delete(oldest);
  }

  private remember(attempt: LiveAttempt): void {
    this.concluded.set(attempt.key, attempt);
    const oldest = this.concluded.size > CONCLUDED_MAX ? this.concluded.keys().next().value : undefined;
    if (oldest !== undefined) this.concluded.delete(oldest);
  }

  private registered(ledgerSeq: number): void {
    const { writer } = this.opened;
    if (ledgerSeq > this.files.lastSeq) {
      this.log.error('The ledger knows more of this writer than its log: the newest records were lost with the system.', { writer, ledger_seq: ledgerSeq, last_seq: this.files.lastSeq });
      this.files.skipTo(ledgerSeq);
    }
    this.isKnown = true;
    this.bookLeftovers();
    this.settlement.committed(ledgerSeq);
    this.settlement.begin();
    for (const resolve of this.registrationWaiters) resolve();
    this.registrationWaiters.clear();
    this.checkRecovered();
  }

  /** Ends for what an earlier process left open; outcomes only where edge told one. Its holds stay in use until then. */
  private bookLeftovers(): void {
    for (const attempt of this.leftovers) {
      const { event } = attempt;
      this.settlement.live(event.accountId, event.requestId);
      if (attempt.endedAtMs !== undefined) {
        if (attempt.early !== undefined) this.writeOutcome(attempt, attempt.early);
      } else if (!attempt.isEnding) {
        orphanEvent(attempt.event, this.clock.nowMs());
        // The end is written in this turn or retried; an outcome that was told follows from it.
        void this.writeEnd(attempt).catch(() => undefined);
      }
      // What its process held for it is not in the log; with the rounds before it will not cost more than this.
      const { earlierNanoUsd, earlierTokens } = attempt.rounds ?? NO_ROUNDS;
      attempt.held = { amountNanoUsd: String(BigInt(event.costNanoUsd) + earlierNanoUsd), tokens: String(BigInt(totalTokens(event.tokens ?? NO_TOKENS)) + earlierTokens) };
    }
    if (this.isAlone) this.concludeLeftovers();
  }

  private concludeLeftovers(): void {
    for (const attempt of this.leftovers) {
      const told: Told = attempt.early ?? { outcome: this.conclusionOf(attempt), byEdge: false };
      if (attempt.endedAtMs === undefined) attempt.early = told;
      else if (attempt.told === undefined) this.writeOutcome(attempt, told);
    }
  }

  private booked(ledgerSeq: number): void {
    this.settlement.committed(ledgerSeq);
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.lastCoolMs >= COOL_MS) {
      this.lastCoolMs = nowMs;
      let oldestOpen = this.files.openSegment;
      for (const { segment } of this.open.values()) oldestOpen = Math.min(oldestOpen, segment);
      this.files.cool(ledgerSeq, oldestOpen, this.clock.nowMs());
    }
    this.checkRecovered();
  }

  private checkRecovered(): void {
    if (!this.isKnown || !this.commit.isIdle() || this.leftovers.size > 0 || this.shipping.ledgerSeq() < this.files.lastSeq) return;
    for (const { resolve } of this.recoveryWaiters.splice(0)) resolve();
  }

  private armSweep(): void {
    this.sweepTimer = this.clock.setTimer(
      CONCLUDE_SWEEP_MS,
      () => {
        this.sweep();
        this.armSweep();
      },
      { unref: true },
    );
  }

  private sweep(): void {
    const nowMs = this.clock.monotonicMs();
    if (this.isKnown) {
      for (const attempt of this.open.values()) {
        const { endedAtMs, tendedAtMs, told, rounds } = attempt;
        const patienceMs = rounds === undefined || tendedAtMs !== undefined ? CONCLUDE_MS : CONCLUDE_ROUND_MS;
        if (told === undefined && endedAtMs !== undefined && nowMs - Math.max(endedAtMs, tendedAtMs ?? endedAtMs) > patienceMs) this.writeOutcome(attempt, { outcome: this.conclusionOf(attempt), byEdge: false });
      }
    }
    for (const { key, endedAtMs } of this.concluded.values()) {
      if (endedAtMs !== undefined && nowMs - endedAtMs <= CONCLUDED_KEPT_MS) break;
      this.concluded.delete(key);
    }
  }

  private waitForRegistration(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.clock.setTimer(REGISTRATION_WAIT_MS, () => {
        this.registrationWaiters.delete(done);
        reject(new Fault('billing_unavailable', 'The worker is not registered with billing yet.'));
      });
      const done = (): void => {
        timer.cancel();
        resolve();
      };
      this.registrationWaiters.add(done);
    });
  }
}

/**
 * Opens (or makes) the log of one worker: replays it, then registers with billing in the background, books what an
 * earlier process left open, and sends on what the ledger lacks. Rejects with a Fault `store_unavailable` when a living
 * process holds the directory or the disk does not take the first write.
 */
export async function openJournal(options: JournalOptions): Promise<OpenJournal> {
  const { directory, clock, log } = options;
  const disk = options.disk ?? localDisk(directory);
  const { writer, provider } = disk.identity(options.provider, clock, options.randomBytes);
  const unlock = disk.lock();
  try {
    const replayed = replayLog(disk, clock.monotonicMs(), log);
    const files = new LogFiles(disk, writer, replayed.newest, replayed.lastSeq);
    return new WriteAheadLog(options, { writer, provider, files, replayed, unlock });
  } catch (error) {
    unlock();
    throw error instanceof Fault ? error : new Fault('store_unavailable', `The write-ahead log in ${directory} cannot be opened.`, { cause: error });
  }
}
