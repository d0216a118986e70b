/** The store that all quota processes share: the in-memory store of quota, behind a network, with losses of its state. */
import { Fault } from '@signalbox/kernel/fault';
import type { AccountState, AdmitCommand, FinishCommand, TotalsCommand } from '@signalbox/ledger-core/admission';
import { createMemoryStore, type QuotaStore } from '@signalbox/quota/proof';
import { deepCopy } from './deep-copy.js';
import { EPOCH_MS, type Life } from './life.js';
import type { Random } from './random.js';
import type { Scheduler } from './scheduler.js';

/** As quota's client of Redis has it. */
const TIMEOUT_MS = 50;

/** Broken variants of the store, for the mutation run. */
export type CounterMutant = 'counters' | 'check-then-spend' | 'no-rebuild';

export interface CounterEvents {
  /** A hold is written down or grew: `amount` is what it holds now. */
  held(accountId: string, requestId: string, amount: bigint): void;
  decided(accountId: string, requestId: string, decision: string, spend: bigint): void;
}

/** A counter that is only ever added to: what a store does that has no ids. */
interface Naive {
  used: bigint;
  readonly held: Map<string, bigint>;
}

export class SimCounters {
  isUp = true;
  /** Chance that a command is done and its reply lost. */
  lostReply = 0;
  readonly accounts = new Map<string, AccountState>();
  private readonly store: QuotaStore;
  private lives = 1;
  private readonly naive = new Map<string, Naive>();
  private snapshot = new Map<string, AccountState>();

  constructor(
    private readonly scheduler: Scheduler,
    private readonly random: Random,
    private readonly events: CounterEvents,
    private readonly mutant: CounterMutant | undefined,
  ) {
    this.store = createMemoryStore({ clock: { nowMs: () => Math.floor(EPOCH_MS + scheduler.nowMs) }, accounts: this.accounts, epoch: () => this.epoch });
  }

  private get epoch(): string {
    return `life ${this.lives}`;
  }

  calm(): void {
    this.isUp = true;
    this.lostReply = 0;
  }

  /** What a snapshot on disk would hold. */
  save(): void {
    this.snapshot = deepCopy(this.accounts);
  }

  /** Empty, as after a restart without a disk. */
  wipe(): void {
    this.become(new Map());
  }

  /** Back to the latest snapshot: a new run of the store, which the ledger has to fill again. */
  rollBack(): void {
    this.become(deepCopy(this.snapshot));
  }

  /** The store as one process of quota sees it. */
  openFor(life: Life): QuotaStore {
    const { store } = this;
    let latestEpoch = this.epoch;
    return {
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      ready: () => true,
      admit: (accountId, command) => this.ask(life, () => this.admit(accountId, command)),
      release: (accountId, requestId) => this.ask(life, () => this.drop(accountId, requestId, () => store.release(accountId, requestId))),
      heartbeat: (accountId, requestId, toAmount, toTokens, writer) =>
        this.ask(life, async () => {
          const isGranted = await store.heartbeat(accountId, requestId, toAmount, toTokens, writer);
          // What limits let it have.
          if (isGranted && toAmount > 0n) this.events.held(accountId, requestId, toAmount);
          return isGranted;
        }),
      finish: (accountId, command) => this.ask(life, () => this.finish(accountId, command)),
      reregister: (accountId, command) => this.ask(life, () => store.reregister(accountId, command)),
      isHeld: (accountId, requestId) => this.ask(life, () => store.isHeld(accountId, requestId)),
      epoch: () =>
        this.ask(life, async () => {
          latestEpoch = await store.epoch();
          return latestEpoch;
        }),
      latestEpoch: () => latestEpoch,
      heard: (epoch) => this.ask(life, () => store.heard(epoch)),
      hear: (epoch, writer) => this.ask(life, () => store.hear(epoch, writer)),
      totalsSeq: (accountId) => this.ask(life, () => store.totalsSeq(accountId)),
      applyTotals: (accountId, command, epoch) => this.ask(life, () => this.applyTotals(accountId, command, epoch)),
      describeOpen: (accountId, requestIds) => this.ask(life, () => store.describeOpen(accountId, requestIds)),
      openAccounts: () => this.ask(life, () => store.openAccounts()),
      overdue: (accountId, ageMs, limit) => this.ask(life, () => store.overdue(accountId, ageMs, limit)),
      show: (accountId) => this.ask(life, () => store.show(accountId)),
      sweep: (accountId) => this.ask(life, () => store.sweep(accountId)),
    };
  }

  private async admit(accountId: string, command: AdmitCommand): ReturnType<QuotaStore['admit']> {
    const { mutant, store } = this;
    const asked = mutant === 'check-then-spend' || mutant === 'counters' ? { ...command, amount: 0n, minAmount: 0n } : command;
    let answer = await store.admit(accountId, asked);
    if (typeof answer === 'string') return answer;
    if (mutant === 'check-then-spend') answer = this.checkOnly(accountId, command, answer);
    if (mutant === 'counters') answer = this.count(accountId, command, answer);
    this.events.decided(accountId, command.requestId, answer.decision, answer.wall?.spend ?? 0n);
    if (answer.decision === 'admitted') this.events.held(accountId, command.requestId, answer.held);
    return answer;
  }

  private checkOnly<Verdict extends { readonly decision: string; readonly held: bigint }>(accountId: string, { amount, walls }: AdmitCommand, verdict: Verdict): Verdict {
    const bucket = this.accounts.get(accountId)?.buckets.get('account|total');
    const spend = (bucket?.charge ?? 0n) + (bucket?.finishedCharge ?? 0n);
    return walls.some(({ meter, limit }) => meter === 'charge' && spend >= limit) ? { ...verdict, decision: 'wall' } : { ...verdict, held: amount };
  }

  private count<Verdict extends { readonly decision: string; readonly held: bigint }>(accountId: string, { requestId, amount, walls }: AdmitCommand, verdict: Verdict): Verdict {
    const naive = this.naiveOf(accountId);
    if (walls.some(({ meter, limit }) => meter === 'charge' && naive.used + amount > limit)) return { ...verdict, decision: 'wall' };
    naive.used += amount;
    naive.held.set(requestId, amount);
    return { ...verdict, held: amount };
  }

  private async finish(accountId: string, command: FinishCommand): Promise<boolean> {
    if (this.mutant === 'counters') {
      const naive = this.naiveOf(accountId);
      naive.used += command.charge - (naive.held.get(command.requestId) ?? 0n);
    }
    return this.store.finish(accountId, command);
  }

  private async drop(accountId: string, requestId: string, work: () => Promise<boolean>): Promise<boolean> {
    if (this.mutant === 'counters') {
      const naive = this.naiveOf(accountId);
      naive.used -= naive.held.get(requestId) ?? 0n;
    }
    return work();
  }

  private applyTotals(accountId: string, command: TotalsCommand, epoch: string): Promise<boolean> {
    return this.store.applyTotals(accountId, command, epoch);
  }

  /** At rest what the mutant counted must be what the ledger says, too. */
  countedBy(accountId: string): bigint | undefined {
    return this.mutant === 'counters' ? (this.naive.get(accountId)?.used ?? 0n) : undefined;
  }

  private naiveOf(accountId: string): Naive {
    let naive = this.naive.get(accountId);
    if (naive === undefined) this.naive.set(accountId, (naive = { used: 0n, held: new Map() }));
    return naive;
  }

  private become(accounts: Map<string, AccountState>): void {
    const known = [...this.accounts.keys()];
    this.accounts.clear();
    this.lives += 1;
    for (const [id, state] of accounts) this.accounts.set(id, Object.assign(state, { loaded: '' }));
    this.naive.clear();
    if (this.mutant === 'no-rebuild') for (const id of known) void this.store.applyTotals(id, { seq: 0n, totals: [], requestIds: [] }, this.epoch);
  }

  private ask<Answer>(life: Life, work: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { scheduler, random } = this;
      scheduler.at(0.1 + random.next() * 0.4, () => {
        if (life.isDead) return;
        const away = (): void => {
          scheduler.at(TIMEOUT_MS, () => life.run(() => reject(new Fault('quota_unavailable', 'the counters'))));
        };
        if (!this.isUp) {
          away();
          return;
        }
        const isLost = random.chance(this.lostReply);
        void work().then((answer) => {
          if (isLost) away();
          else scheduler.at(0.1, () => life.run(() => resolve(answer)));
        });
      });
    });
  }
}
