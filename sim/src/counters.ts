/** The store that all quota processes share: the in-memory store of quota, behind a network, with losses of its state. */
import { Fault } from '@signalbox/kernel/fault';
import type { Admission } from '@signalbox/edge/proof';
import type { Draw } from '@signalbox/ledger-core/advance';
import type { AdmitRequest } from '@signalbox/contracts/quota';
import type { AccountState } from '@signalbox/ledger-core/account-state';
import type { AdmitCommand } from '@signalbox/ledger-core/admission';
import type { FinishCommand } from '@signalbox/ledger-core/settlement';
import { createMemoryStore, type QuotaStore } from '@signalbox/quota/proof';
import { deepCopy } from './deep-copy.js';
import { EPOCH_MS, type Life } from './life.js';
import { losingDraws } from './mutant-draws.js';
import type { Random } from './random.js';
import type { Scheduler } from './scheduler.js';

/** Time-out of quota's Redis client. */
const TIMEOUT_MS = 50;

/** Broken variants of the store, for the mutation run. */
export const COUNTER_MUTANTS = ['counters', 'check-then-spend', 'no-rebuild', 'grow-unlooked', 'growth-kept', 'tokens-unlooked', 'draw-lost'] as const;
export type CounterMutant = (typeof COUNTER_MUTANTS)[number];

export interface CounterEvents {
  /** A hold was recorded, or grew in the epoch of its admission: `amount` is what the limits permitted. */
  held(accountId: string, requestId: string, amount: bigint, tokens: bigint): void;
  /** `spend`: of the wall that refused, in its own unit. */
  decided(accountId: string, requestId: string, decision: string, spend: bigint, inTokens: boolean): void;
  /** In the epoch of its admission, the limits left a hold no room to grow. */
  refused(requestId: string): void;
  /** A request's charge was recorded. */
  finished(requestId: string, charge: bigint, tokens: bigint): void;
}

/** A counter that only ever adds, like a store without request ids. */
interface Naive {
  used: bigint;
  readonly held: Map<string, bigint>;
}

export class SimCounters {
  isUp = true;
  /** Probability that a command is executed but its reply is lost. */
  lostReply = 0;
  /** Called once, when a hold has grown and the answer was not sent yet; true = the answer is lost. */
  atGrowth: ((asker: Life, writer: string) => boolean) | undefined;
  readonly accounts = new Map<string, AccountState>();
  private readonly store: QuotaStore;
  private lives = 1;
  private readonly naive = new Map<string, Naive>();
  /** Epoch in which each request was admitted. */
  private readonly admittedIn = new Map<string, string>();
  /** Growth of each request's hold; for a mutant only. */
  private readonly grown = new Map<string, bigint>();
  private snapshot = new Map<string, AccountState>();

  constructor(
    private readonly scheduler: Scheduler,
    private readonly random: Random,
    private readonly events: CounterEvents,
    private readonly mutant: CounterMutant | undefined,
  ) {
    const store = createMemoryStore({ clock: { nowMs: () => Math.floor(EPOCH_MS + scheduler.nowMs) }, accounts: this.accounts, epoch: () => this.epoch });
    this.store = mutant === 'draw-lost' ? losingDraws(store) : store;
  }

  private get epoch(): string {
    return `life ${this.lives}`;
  }

  calm(): void {
    this.isUp = true;
    this.lostReply = 0;
    this.atGrowth = undefined;
  }

  /** Takes a snapshot, as on disk. */
  save(): void {
    this.snapshot = deepCopy(this.accounts);
  }

  /** Clears the store, as after a restart without a disk. */
  wipe(): void {
    this.become(new Map());
  }

  /** Restores the latest snapshot: a new epoch, so the ledger's totals must be loaded again. */
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
      release: (accountId, requestId, draw) => this.ask(life, () => this.drop(accountId, requestId, () => store.release(accountId, requestId, draw))),
      heartbeat: (accountId, requestId, toAmount, toTokens, writer, draw) =>
        this.ask(
          life,
          () => this.heartbeat(accountId, requestId, toAmount, toTokens, writer, draw),
          (isGranted) => toAmount > 0n && isGranted && this.strike(life, writer ?? ''),
        ),
      finish: (accountId, command) => this.ask(life, () => this.finish(accountId, command)),
      reregister: (accountId, command) => this.ask(life, () => store.reregister(accountId, command)),
      confirm: (accountId, requestId, draw) => this.ask(life, () => store.confirm(accountId, requestId, draw)),
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
      applyTotals: (accountId, command, epoch) => this.ask(life, () => this.ending(accountId, command.requestIds, () => store.applyTotals(accountId, command, epoch))),
      describeOpen: (accountId, requestIds) => this.ask(life, () => store.describeOpen(accountId, requestIds)),
      openAccounts: () => this.ask(life, () => store.openAccounts()),
      overdue: (accountId, ageMs, limit) => this.ask(life, () => store.overdue(accountId, ageMs, limit)),
      show: (accountId) => this.ask(life, () => store.show(accountId)),
      sweep: (accountId) => this.ask(life, () => store.sweep(accountId)),
    };
  }

  private async admit(accountId: string, command: AdmitCommand): ReturnType<QuotaStore['admit']> {
    const { mutant, store } = this;
    const asked = mutant === 'check-then-spend' || mutant === 'counters' ? { ...command, amount: 0n, minAmount: 0n } : mutant === 'tokens-unlooked' ? { ...command, walls: command.walls.filter(({ meter }) => meter === 'charge') } : command;
    const isKnown = this.accounts.get(accountId)?.holds.has(command.requestId) === true;
    let answer = await store.admit(accountId, asked);
    if (typeof answer === 'string') return answer;
    if (mutant === 'check-then-spend') answer = this.checkOnly(accountId, command, answer);
    if (mutant === 'counters') answer = this.count(accountId, command, answer);
    this.events.decided(accountId, command.requestId, answer.decision, answer.wall?.spend ?? 0n, answer.wall !== undefined && command.walls[answer.wall.index]?.meter !== 'charge');
    // A late admission of a request that its worker restored after a loss admits nothing new.
    if (answer.decision === 'admitted' && (!isKnown || this.admittedIn.get(command.requestId) === this.epoch)) {
      this.admittedIn.set(command.requestId, this.epoch);
      this.events.held(accountId, command.requestId, answer.held, answer.heldTokens);
    }
    return answer;
  }

  /** A request was served from an advance: in the advance's epoch, the request holds its draw. */
  served({ accountId = '', requestId = '' }: AdmitRequest, { draw }: Admission): void {
    const admittedIn = this.admittedIn.get(draw?.advanceId ?? '');
    if (draw === undefined || admittedIn === undefined) return;
    this.admittedIn.set(requestId, admittedIn);
    this.events.held(accountId, requestId, BigInt(String(draw.amountNanoUsd)), BigInt(String(draw.tokens)));
  }

  private async heartbeat(accountId: string, requestId: string, toAmount: bigint, toTokens: bigint, writer: string | undefined, draw: Draw | undefined): Promise<boolean> {
    const state = this.accounts.get(accountId);
    // The mutant changes a hold, so create one: a draw has none before its first report.
    if (this.mutant === 'grow-unlooked' && draw !== undefined) await this.store.confirm(accountId, requestId, draw);
    const hold = state?.holds.get(requestId);
    const before = hold?.amount ?? draw?.amount ?? 0n;
    if (this.mutant === 'grow-unlooked' && hold !== undefined) state?.holds.set(requestId, { ...hold, walls: [] });
    const isGranted = await this.store.heartbeat(accountId, requestId, toAmount, toTokens, writer, draw);
    const isHeld = state?.holds.has(requestId) === true;
    if (isGranted && toAmount > before) this.grown.set(requestId, (this.grown.get(requestId) ?? 0n) + toAmount - before);
    // In another epoch than its admission's, limits are not checked, so neither answer counts.
    if ((toAmount === 0n && toTokens === 0n) || !isHeld || this.admittedIn.get(requestId) !== this.epoch) return isGranted;
    if (isGranted) this.events.held(accountId, requestId, toAmount, toTokens);
    else this.events.refused(requestId);
    return isGranted;
  }

  private strike(life: Life, writer: string): boolean {
    const { atGrowth } = this;
    this.atGrowth = undefined;
    return atGrowth?.(life, writer) === true;
  }

  /** Wraps calls that end holds; the mutant returns only their original amounts. */
  private async ending<Answer>(accountId: string, requestIds: readonly string[], work: () => Promise<Answer>): Promise<Answer> {
    const state = this.accounts.get(accountId);
    const held = this.mutant === 'growth-kept' ? requestIds.filter((requestId) => state?.holds.has(requestId) === true) : [];
    const answer = await work();
    const bucket = state?.buckets.get('account|total');
    if (bucket !== undefined) for (const requestId of held) bucket.heldCharge += this.grown.get(requestId) ?? 0n;
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
    this.events.finished(command.requestId, command.charge, command.tokens);
    return this.ending(accountId, [command.requestId], () => this.store.finish(accountId, command));
  }

  private async drop(accountId: string, requestId: string, work: () => Promise<boolean>): Promise<boolean> {
    if (this.mutant === 'counters') {
      const naive = this.naiveOf(accountId);
      naive.used -= naive.held.get(requestId) ?? 0n;
    }
    return work();
  }

  /** Sum counted by the mutant, which at rest must equal the ledger's. */
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

  /** `strikes` sees the answer before it is sent; true = the answer is lost. */
  private ask<Answer>(life: Life, work: () => Promise<Answer>, strikes: (answer: Answer) => boolean = () => false): Promise<Answer> {
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
          if (strikes(answer) || isLost) away();
          else scheduler.at(0.1, () => life.run(() => resolve(answer)));
        });
      });
    });
  }
}
