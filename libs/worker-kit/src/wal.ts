/**
 * The write-ahead log of a worker on local disk: the only record of what attempts cost, from which the ledger is written.
 *
 * Durability: promises resolve after write(2), so a kill of the process loses nothing. fdatasync runs in the background, at
 * most once a second, so a power failure or a crash of the system can lose the last second.
 */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { LiveHold } from '@signalbox/contracts/quota';
import type { LiveMap } from '@signalbox/kernel/live-map';
import { NO_TOKENS, totalTokens, type TokenCounts } from '@signalbox/kernel/tokens';
import type { Log } from '@signalbox/runtime/log';
import { afterTurn } from '@signalbox/runtime/turn';
import type { AttemptEnd, AttemptStart, JournalState, OutcomeTerms, ToldOutcome } from './journal.js';
import { createSettlement, type Settlement } from './settlement.js';
import { createShipping, type Shipping } from './shipping.js';
import { attemptKey, LiveAttempt, liveHoldOf, NO_ROUNDS, NOTHING_HELD, oldestReservationMs, type Told } from './wal-attempt.js';
import { GroupCommit, type DiskFailures } from './wal-commit.js';
import { Conclusions } from './wal-conclusions.js';
import { codeOf } from './wal-directory.js';
import { localDisk, withRoom, type WalDisk } from './wal-disk.js';
import { CheckEntry, EarlyOutcomeEntry, EndEntry, OutcomeEntry, StartEntry, type AttemptBook } from './wal-entries.js';
import { completeEvent, concludedOutcome, finishedHold, orphanEvent, restsOnCalls, startedEvent, withPrompt } from './wal-events.js';
import { LogFiles } from './wal-files.js';
import { replayLog, type Replayed } from './wal-replay.js';
import { StartGate } from './wal-start-gate.js';
import type { JournalOptions, OpenJournal } from './wal-terms.js';

export type { JournalOptions, OpenJournal } from './wal-terms.js';

const CONCLUDE_SWEEP_MS = 1_000;
const COOL_MS = 60_000;
/** While the log is being opened, the ledger's watermark is unknown and every cold segment is assumed to be booked. */
const anyMayGo = (): boolean => true;

interface Opened {
  readonly writer: string;
  readonly provider: string;
  readonly files: LogFiles;
  readonly replayed: Replayed;
  readonly disk: WalDisk;
  readonly unlock: () => void;
}

class WriteAheadLog implements OpenJournal, AttemptBook {
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly files: LogFiles;
  private readonly commit: GroupCommit;
  private readonly settlement: Settlement;
  private readonly shipping: Shipping;
  /** Attempts between start and outcome, by key. */
  private readonly open: LiveMap<string, LiveAttempt>;
  private readonly conclusions: Conclusions;
  /** Attempts that an earlier process left without an end or an outcome. */
  private readonly leftovers: Set<LiveAttempt>;
  private readonly gate: StartGate;
  private recoveryWaiters: { resolve: () => void; reject: (fault: Fault) => void }[] = [];
  /** No edge is left that could tell the outcome of leftovers. */
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
    this.conclusions = new Conclusions(replayed.open, replayed.concluded);
    this.leftovers = new Set(replayed.open.values());
    this.lastCoolMs = clock.monotonicMs();
    this.settlement = createSettlement({ writer, quota, clock, liveHolds: (epoch) => this.liveHolds(epoch), unwatchedHolds: (requestIds) => this.unwatchedHolds(requestIds) });
    this.gate = new StartGate(clock, this.settlement);
    for (const { hold, seq, isPart } of replayed.finished) {
      if (isPart) this.settlement.finishedInPart(hold, seq);
      else this.settlement.finishedBefore(hold, seq);
    }
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
    const passing = this.gate.pass(record);
    return passing === undefined ? this.begin(record) : passing.then(() => this.begin(record));
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
    // The encoded head has the cards of the start.
    if (end.cards !== undefined) attempt.head = undefined;
    return this.writeEnd(attempt);
  }

  outcome(requestId: string, attemptNumber: number, outcome: ToldOutcome, byEdge: boolean, { isFollowed = false, isReserve = false }: OutcomeTerms = {}): Promise<void> | undefined {
    const key = attemptKey(requestId, attemptNumber);
    const attempt = this.open.get(key) ?? this.conclusions.get(key);
    if (attempt === undefined) {
      if (byEdge && outcome !== 'DELIVERED') this.gate.foretell(key);
      return undefined;
    }
    const told: Told = { outcome, byEdge, isFollowed, isReserve };
    if (attempt.endedAtMs === undefined || !this.isRegistered()) {
      if (attempt.early === undefined || (byEdge && !attempt.early.byEdge)) {
        attempt.early = told;
        // The outcome is only in memory. The caller waits until it is written, and tells it again if it is not.
        if (byEdge && attempt.telling === undefined && !this.isForeseen(attempt, told)) attempt.promiseTelling();
        if (attempt.isStarted) this.keepEarly(attempt);
      }
    } else if (attempt.told === undefined) this.writeOutcome(attempt, told);
    else if (byEdge && !attempt.told.byEdge) {
      // Written even if it is the same: an outcome told by edge cannot be overridden by a later attempt.
      this.conclusions.delete(key);
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
    return this.gate.isOpen;
  }

  recordsAfter(seq: number): number {
    return this.files.recordsAfter(seq);
  }

  unbookedMs(): number {
    return this.shipping.unbookedMs();
  }

  recordsWritten(): number {
    return this.commit.written;
  }

  recordsRefused(): number {
    return this.commit.refusedRecords;
  }

  diskFailures(): DiskFailures {
    return this.commit.diskFailures;
  }

  async recover(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.recoveryWaiters.push({ resolve, reject });
      this.isAlone = true;
      if (this.isRegistered()) this.concludeLeftovers();
      this.checkRecovered();
    });
    // Quota then does not wait for this writer after a loss of its store. If quota is away now, it waits until the writer counts as lost.
    await this.settlement.tell().catch(() => undefined);
  }

  async flush(): Promise<void> {
    this.commit.flush();
    await new Promise<void>((resolve) => this.files.sync(() => resolve()));
    await this.shipping.flush();
  }

  async close(endWaitMs?: number): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    // Writing an end may queue its outcome, so flush twice.
    for (let turn = 0; turn < 2; turn += 1) this.commit.flush();
    this.commit.close();
    this.sweepTimer?.cancel();
    await this.shipping.flush();
    await this.settlement.flush();
    this.settlement.close();
    if (endWaitMs !== undefined && this.open.size === 0) await this.shipping.end(endWaitMs);
    this.shipping.close();
    for (const { reject } of this.recoveryWaiters.splice(0)) reject(new Fault('cancelled', 'The write-ahead log is closed.'));
    // Until billing knows the writer, what the ledger has is not known.
    this.files.close(this.isRegistered() && this.open.size === 0 && (this.isAlone || this.conclusions.isEmpty()));
    if (this.commit.written > 0) this.opened.disk.setTorn(false);
    this.opened.unlock();
  }

  started(attempt: LiveAttempt): void {
    const { event } = attempt;
    attempt.isStarted = true;
    this.settlement.live(event.accountId, event.requestId, attempt.draw);
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
    if (!told.byEdge && attempt.told === told) this.conclusions.add(attempt);
    const hold = told.isFollowed === true ? undefined : finishedHold(event, told.outcome, attempt.rounds, attempt.draw);
    if (hold === undefined) return;
    // Only edge knows which round is the last. Without its word, the ledger's totals end the hold.
    if (attempt.rounds !== undefined && !told.byEdge) {
      if (told.outcome === 'DELIVERED') this.settlement.finishedInPart(hold, seq);
    } else this.settlement.finished(hold, seq);
  }

  notTold(attempt: LiveAttempt, told: Told): void {
    if (attempt.told === told) attempt.told = undefined;
  }

  /** Holds of all open attempts. An epoch that admitted a request has its hold already, which grows only within the account's limits, so it is told no amount. */
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
    attempt.draw = record.draw ?? null;
    if (this.gate.wasForetold(attempt.key)) return Promise.reject(new Fault('cancelled', 'This attempt was given up before it arrived.'));
    if (this.open.has(attempt.key) || this.conclusions.has(attempt.key)) return Promise.reject(new Fault('bad_message', 'This attempt was started before.'));
    this.open.set(attempt.key, attempt);
    return this.gate.told(record, new Promise((resolve, reject) => this.commit.add(new StartEntry(this, attempt, resolve, reject))));
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
    else this.commit.add(new OutcomeEntry(this, attempt, told, attempt.takeTelling()));
  }

  /** True if recovery would conclude the same outcome anyway, so that losing it does not matter. */
  private isForeseen({ event }: LiveAttempt, { outcome, isReserve }: Told): boolean {
    return isReserve !== true && !restsOnCalls(event) && outcome === concludedOutcome(event);
  }

  /** Records an early outcome other than DELIVERED: after a kill, recovery could otherwise conclude that the answer was delivered. */
  private keepEarly(attempt: LiveAttempt): void {
    const { early } = attempt;
    if (this.isRegistered() && early?.byEdge === true && early.outcome !== 'DELIVERED') this.commit.add(new EarlyOutcomeEntry(attempt, early, attempt.takeTelling()));
  }

  private registered(ledgerSeq: number): void {
    const { writer } = this.opened;
    if (ledgerSeq > this.files.lastSeq) {
      this.log.error('The ledger has newer records of this writer than its log: they were lost in a power failure or system crash.', { writer, ledger_seq: ledgerSeq, last_seq: this.files.lastSeq });
      this.files.skipTo(ledgerSeq);
    }
    this.files.booked(ledgerSeq);
    this.gate.open();
    this.bookLeftovers();
    this.settlement.committed(ledgerSeq);
    this.settlement.begin();
    this.checkRecovered();
  }

  /** Writes ends for attempts that an earlier process left open, and outcomes where edge told one. Their holds stay in use until the outcome. */
  private bookLeftovers(): void {
    for (const attempt of this.leftovers) {
      const { event } = attempt;
      this.settlement.live(event.accountId, event.requestId);
      if (attempt.endedAtMs !== undefined) {
        if (attempt.early !== undefined) this.writeOutcome(attempt, attempt.early);
      } else if (!attempt.isEnding) {
        orphanEvent(attempt.event, this.clock.nowMs());
        // The end is written in this turn or retried; an outcome that was told is written after it.
        void this.writeEnd(attempt).catch(() => undefined);
      }
      // The log does not contain what was held. With the earlier rounds, it cannot cost more than this.
      const { earlierNanoUsd, earlierTokens } = attempt.rounds ?? NO_ROUNDS;
      attempt.held = { amountNanoUsd: String(BigInt(event.costNanoUsd) + earlierNanoUsd), tokens: String(BigInt(totalTokens(event.tokens ?? NO_TOKENS)) + earlierTokens) };
    }
    if (this.isAlone) this.concludeLeftovers();
  }

  private concludeLeftovers(): void {
    for (const attempt of this.leftovers) {
      const told: Told = attempt.early ?? { outcome: this.conclusions.outcomeOf(attempt), byEdge: false };
      if (attempt.endedAtMs === undefined) attempt.early = told;
      else if (attempt.told === undefined) this.writeOutcome(attempt, told);
    }
  }

  private booked(ledgerSeq: number): void {
    this.files.booked(ledgerSeq);
    this.settlement.committed(ledgerSeq);
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.lastCoolMs >= COOL_MS) {
      this.lastCoolMs = nowMs;
      let oldestOpen = this.files.openSegment;
      for (const { segment } of this.open.values()) oldestOpen = Math.min(oldestOpen, segment);
      this.files.cool(oldestOpen, this.clock.nowMs());
    }
    this.checkRecovered();
  }

  private checkRecovered(): void {
    if (!this.isRegistered() || !this.commit.isIdle() || this.leftovers.size > 0 || this.shipping.ledgerSeq() < this.files.lastSeq) return;
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
    if (this.isRegistered()) {
      for (const attempt of this.conclusions.due(nowMs)) this.writeOutcome(attempt, { outcome: this.conclusions.outcomeOf(attempt), byEdge: false });
    }
    this.conclusions.forgetOld(nowMs);
  }
}

/**
 * Opens or creates the log of one worker. Replays it, then registers with billing in the background, books what an earlier
 * process left open, and ships what the ledger lacks. Rejects with a Fault `store_unavailable` if a live process holds the
 * directory or the disk does not take the first write.
 */
export async function openJournal(options: JournalOptions): Promise<OpenJournal> {
  const { directory, clock, log } = options;
  const given = options.disk ?? localDisk(directory);
  const disk: WalDisk = {
    ...given,
    makeRoom: (mayGo) => {
      const isMade = given.makeRoom(mayGo);
      if (isMade) log.warn('The disk is full: a part of the log that is in the ledger was removed early. A ledger restored from an older backup could not get it back.', { directory });
      return isMade;
    },
  };
  const { writer, provider } = disk.identity(options.provider, clock, options.randomBytes);
  const isWhole = disk.isWhole();
  let unlock = (): void => undefined;
  try {
    // Must come before taking over the lock of a dead process, which an error below would remove. A process that writes nothing leaves the mark.
    if (!isWhole) withRoom(disk, anyMayGo, () => disk.setTorn(true));
    unlock = withRoom(disk, anyMayGo, () => disk.lock());
    const replayed = replayLog(disk, clock.monotonicMs(), log);
    const files = new LogFiles(disk, writer, replayed.newest, replayed.lastSeq, isWhole, replayed.leaps);
    return new WriteAheadLog(options, { writer, provider, files, replayed, disk, unlock });
  } catch (error) {
    unlock();
    throw error instanceof Fault ? error : new Fault('store_unavailable', `The write-ahead log in ${directory} cannot be opened (${String(codeOf(error) ?? 'unknown')}).`, { cause: error });
  }
}
