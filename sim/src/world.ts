/** A whole gateway in one process: the production code of edge, quota, workers and billing, on stores and links that fail. */
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import { conduct, type Caller, type Neighbours, type Turn } from '@signalbox/edge/proof';
import { silentLog } from '@signalbox/runtime/log';
import { extendingAt, openJournal, type OpenJournal } from '@signalbox/worker-kit/proof';
import { SimBus } from './bus.js';
import { claimHandlers, conductOnce, newClaimStore, standing, withoutBegins } from './claims.js';
import { SimClient } from './client.js';
import { COUNTER_MUTANTS, SimCounters } from './counters.js';
import { SimDisk } from './disk.js';
import { edgeIn } from './edge-in.js';
import { SimEdge, type EdgeParts } from './edge.js';
import { GrowthRecord } from './growth.js';
import { SimLedger } from './ledger.js';
import { Life } from './life.js';
import { METERS, type Meter } from './limits.js';
import { cutAtBus, withoutCalls } from './mutant-journal.js';
import type { Mutant } from './mutants.js';
import { Network, type Door } from './network.js';
import { SimPlugins } from './plugins.js';
import { SimProvider } from './provider.js';
import type { Random } from './random.js';
import { Scheduler } from './scheduler.js';
import { billingIn, quotaIn, TOTALS_DEADLINE_MS, workerIn } from './services.js';
import { ACCOUNTS, callerOf, planOf, pricesOf, requestOf, type Traffic } from './traffic.js';
import { watchCall, watchGrowth } from './watching.js';
import { drainWorker, type Worker, type WorkerStop } from './worker-stop.js';
import { WorldRecord } from './world-record.js';

const PROVIDERS = ['alpha', 'beta'] as const;
/** As in the services' compositions. */
const NEIGHBOUR_DEADLINE_MS = 2_000;
const RESTART_MS_MAX = 4_000;

export class World extends WorldRecord {
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly bus: SimBus;
  readonly ledger: SimLedger;
  readonly counters: SimCounters;
  readonly plugins: SimPlugins;
  readonly clients: SimClient[] = [];
  /** Current state of the accounts. */
  readonly callers: Caller[];
  readonly workers: readonly Worker[];
  readonly growth: GrowthRecord;
  onHeld: (requestId: string, grown: readonly Meter[]) => void = () => undefined;
  onAnswered: (client: SimClient) => void = () => undefined;
  /** Called when the head of a stream has reached its worker; returns the milliseconds until its first text. */
  onHeaded: (requestId: string) => number = () => 0;
  /** Called when a worker (by index) learns during an attempt that the client hung up by itself. */
  onLeft: (requestId: string, worker: number) => void = () => undefined;
  private readonly quotas: readonly Door[] = [{ life: undefined, handlers: undefined }, { life: undefined, handlers: undefined }];
  private readonly billing: Door = { life: undefined, handlers: undefined };
  private readonly accounts: Door = { life: undefined, handlers: undefined };
  private claimStore = newClaimStore();
  private readonly providers: readonly SimProvider[];
  private readonly edges: readonly SimEdge[];

  constructor(
    readonly random: Random,
    readonly mutant: Mutant | undefined,
    trace?: (line: string) => void,
    /** A second replica of the first provider's worker. */
    hasReplica = false,
  ) {
    super();
    const scheduler = (this.scheduler = new Scheduler((error) => this.bug(error), trace));
    const onBug = (error: unknown): void => this.bug(error);
    this.network = new Network(scheduler, random, onBug);
    this.bus = new SimBus(scheduler, random);
    this.ledger = new SimLedger(scheduler, random, mutant);
    this.counters = new SimCounters(
      scheduler,
      random,
      {
        held: (_accountId, requestId, charge, tokens) => {
          const before = this.holds(requestId, charge, tokens);
          this.onHeld(requestId, METERS.filter((meter) => (meter === 'charge' ? charge : tokens) > before[meter]));
        },
        refused: (requestId) => this.growth.sawRefusal(requestId),
        finished: (requestId, charge, tokens) => void this.finished.set(requestId, { charge, tokens }),
        decided: (accountId, _requestId, decision, spend, inTokens) => this.decided(accountId, decision, spend, inTokens ? 'tokens' : 'charge', this.clients.length),
      },
      COUNTER_MUTANTS.find((name) => name === mutant),
    );
    this.plugins = new SimPlugins(random);
    this.growth = new GrowthRecord(scheduler, this.coverage);
    this.callers = ACCOUNTS.map((index) => callerOf(index, random));
    for (const caller of this.callers) this.terms.set(caller.account.id, [caller]);
    this.providers = PROVIDERS.map((name) => new SimProvider(name, pricesOf(name, random), scheduler, random));
    for (const provider of this.providers) provider.onHeaded = (id) => this.onHeaded(id.slice(0, id.indexOf('/')));
    this.workers = [...this.providers, ...(hasReplica ? this.providers.slice(0, 1) : [])].map((provider, index): Worker => {
      const name = index < PROVIDERS.length ? provider.name : `${provider.name}2`;
      return { name, provider, disk: new SimDisk(name, () => this.killWorker(index)), door: { life: undefined, handlers: undefined }, served: new Set(), journal: undefined, dispatcher: undefined };
    });
    this.edges = [0, 1].map((index) => new SimEdge({ make: () => this.edgeParts(index), later: (start) => this.later(start), onBug, onCutOff: () => this.coverage.took('edge: stopped and cut answers off') }));
    this.startBilling();
    this.startAccounts();
    for (const index of this.quotas.keys()) this.startQuota(index);
    for (const index of this.workers.keys()) this.startWorker(index);
  }

  /** Journals that are open now. */
  journals(): readonly OpenJournal[] {
    return this.workers.flatMap(({ journal }) => (journal === undefined ? [] : [journal]));
  }

  lives(): readonly Life[] {
    return [...this.edges.map(({ life }) => life), ...[...this.quotas, this.billing, this.accounts, ...this.workers.map(({ door }) => door)].flatMap(({ life }) => (life === undefined ? [] : [life]))].filter((life) => !life.isDead);
  }

  /** Makes providers' answers outgrow their first holds where the request permits it. */
  answerLong(): void {
    for (const provider of this.providers) provider.isLong = true;
  }

  disk(index: number): SimDisk {
    return this.workerAt(index).disk;
  }

  /** Changes an account's tier and limits; requests admitted before keep their terms. */
  change(index: number, random: Random): void {
    this.changeTerms(index, () => callerOf(index, random));
  }

  changeTerms(index: number, change: (before: Caller) => Caller): void {
    const before = this.callers[index];
    if (before === undefined) return;
    const after = change(before);
    this.callers[index] = after;
    this.terms.get(before.account.id)?.push(after);
    this.coverage.took(before.account.tier === after.account.tier ? 'terms: changed' : 'terms: another tier');
    this.scheduler.say(() => `TERMS ${JSON.stringify(after.account)}`);
  }

  /** Starts one request of a client now. */
  ask(traffic: Traffic, isProbe = false): void {
    const edge = this.edges[traffic.edge];
    const caller = this.callers[traffic.account];
    if (edge === undefined || caller === undefined) throw new RangeError('traffic names an edge and an account');
    const { life } = edge;
    const client = new SimClient(traffic, caller, (answered) => this.onAnswered(answered), isProbe, life);
    this.clients.push(client);
    this.scheduler.say(() => `client asks edge ${traffic.edge}: ${JSON.stringify(traffic)}`);
    if (!edge.isOpen) {
      client.reset();
      return;
    }
    const plan = planOf(traffic, caller, this.providers);
    const turn: Turn = { requestId: traffic.requestId, caller, request: requestOf(traffic), answer: client };
    const { key } = traffic;
    edge.serve(client, ({ neighbours, repeats }) => {
      const own: Neighbours = {
        ...neighbours,
        routing: { decide: (): Promise<DecideResponse__Output> => Promise.resolve(plan), doubt: () => undefined },
        plugins: traffic.plugins === undefined ? undefined : this.plugins.portFor(life, traffic.requestId, traffic.plugins),
      };
      return key === undefined ? conduct(own, turn) : conductOnce(own, repeats, turn, key, client);
    });
    if (traffic.leavesAfterMs !== undefined) this.scheduler.at(traffic.leavesAfterMs, () => life.run(() => client.leave()));
    if (traffic.slowAfterMs !== undefined) {
      this.scheduler.at(traffic.slowAfterMs, () => life.run(() => client.slow()));
      this.scheduler.at(traffic.slowAfterMs + traffic.slowForMs, () => life.run(() => client.drain()));
    }
  }

  /** The request's client hangs up, unless it is over. */
  leave(requestId: string): void {
    const client = this.clients.find((one) => one.requestId === requestId);
    if (client !== undefined) this.edges[client.traffic.edge]?.life.run(() => client.leave());
  }

  killEdge(index: number): void {
    this.edges[index]?.kill();
  }

  /** SIGTERM; answers may finish for `drainMs`. */
  stopEdge(index: number, drainMs: number): void {
    const edge = this.edges[index];
    if (edge?.isOpen !== true) return;
    const rounds = edge.underWay().filter(({ traffic }) => traffic.plugins !== undefined);
    const holders = this.replicas().filter(({ served }) => rounds.some(({ requestId }) => served.has(requestId)));
    this.coverage.took('edge: stopped');
    if (holders.length > 1) this.coverage.took('edge: stopped amid rounds of two replicas');
    edge.stop(drainMs);
  }

  isOpen(edge: number): boolean {
    return this.edges[edge]?.isOpen === true;
  }

  /** Replicas of the first provider's worker: the requests that each received, and a function that kills it. */
  replicas(): readonly { readonly served: ReadonlySet<string>; readonly kill: () => void }[] {
    return this.workers.flatMap(({ provider, served }, index) => (provider === this.providers[0] ? [{ served, kill: () => this.killWorker(index) }] : []));
  }

  /** Freezes all edges until `heal`. */
  freezeEdges(): void {
    for (const { life } of this.edges) if (!life.isDead) life.freeze();
  }

  /** SIGTERM. `onBack` is called when the worker serves again, unless something else ended it. */
  stopWorker(index: number, stop: WorkerStop, onBack: () => void): void {
    const worker = this.workerAt(index);
    const { life } = worker.door;
    const writer = worker.journal?.state().writer;
    if (life === undefined || life.isDead || writer === undefined) return;
    const over = (): void => {
      if (life.isDead) return;
      if (this.ledger.hasEnded(writer)) this.coverage.took('worker: ended');
      this.killWorker(index, stop.awayMs, onBack);
    };
    if (this.mutant !== 'end-early') return life.run(() => void drainWorker(worker, life, stop).then(over, (error: unknown) => this.bug(error)));
    this.ledger.endEarly(writer);
    over();
  }

  killWorker(index: number, awayMs?: number, onBack?: () => void): void {
    const worker = this.workerAt(index);
    if (worker.door.life?.isDead !== false) return;
    worker.door.life.kill();
    for (const requestId of worker.provider.reached) if (worker.served.has(requestId) && this.ledger.requestOf(requestId)?.booked === undefined) this.orphaned.add(requestId);
    worker.journal = undefined;
    worker.dispatcher = undefined;
    if (awayMs === undefined) this.later(() => this.startWorker(index));
    else this.scheduler.at(awayMs, () => this.startWorker(index, onBack));
  }

  /** Kills the worker whose log has that name. */
  killWriter(writer: string): void {
    const index = this.workers.findIndex(({ journal }) => journal?.state().writer === writer);
    if (index >= 0) this.killWorker(index);
  }

  cutWorker(index: number): void {
    const { life } = this.workerAt(index).door;
    if (life !== undefined) this.network.cut(life);
  }

  killQuota(index: number): void {
    const life = this.quotas[index]?.life;
    if (life?.isDead !== false) return;
    life.kill();
    this.later(() => this.startQuota(index));
  }

  killQuotaOf(life: Life): void {
    this.killQuota(this.quotas.findIndex((quota) => quota.life === life));
  }

  killBilling(): void {
    if (this.billing.life?.isDead !== false) return;
    this.billing.life.kill();
    this.later(() => this.startBilling());
  }

  killAccounts(): void {
    if (this.accounts.life?.isDead !== false) return;
    this.accounts.life.kill();
    this.later(() => this.startAccounts());
  }

  /** Restores the ledger from a backup. The counters are not informed, and know more than the ledger does. */
  restoreLedger(): void {
    for (const { requestId } of this.clients) {
      const booked = this.ledger.bookedFor(requestId);
      if (booked !== undefined) this.finished.set(requestId, booked);
    }
    // Until the logs have been sent again, the ledger shows less than was spent.
    for (const [accountId, lost] of this.ledger.restore()) this.forget(accountId, lost);
  }

  /** Ends all faults; stopped processes come back by themselves. */
  heal(): void {
    this.network.calm();
    this.counters.calm();
    this.bus.calm();
    this.ledger.calm();
    for (const provider of this.providers) provider.isCalm = true;
    for (const { disk } of this.workers) {
      disk.isFull = false;
      disk.killAtWrite = undefined;
    }
    for (const life of this.lives()) life.thaw();
  }

  private isGivenUp(requestId: string, attempt: number): boolean {
    return this.finished.get(requestId)?.charge === 0n || this.ledger.requestOf(requestId)?.facts.outcomes.some((told) => told.attempt === attempt && told.outcome === 'DISCARDED' && !told.toldByEdge) === true;
  }

  private workerAt(index: number): Worker {
    const worker = this.workers[index];
    if (worker === undefined) throw new RangeError('there is no such worker');
    return worker;
  }

  private later(start: () => void): void {
    this.scheduler.at(50 + this.random.next() * RESTART_MS_MAX, start);
  }

  private newLife(name: string): Life {
    return new Life(name, this.scheduler, this.random.int(-2_000, 2_000));
  }

  private edgeParts(index: number): EdgeParts {
    const doors = { quota: this.quotas, accounts: [this.accounts], billing: [this.billing], workers: new Map(this.providers.map((each) => [each.name, this.workers.filter(({ provider }) => provider === each).map(({ door }) => door)])) };
    return edgeIn({ life: this.newLife(`edge ${index}`), network: this.network, doors, mutant: this.mutant, record: this, nowMs: () => this.scheduler.nowMs, onServed: (request, admission) => {
      this.coverage.took('new → served from an advance');
      this.counters.served(request, admission);
    } });
  }

  private startAccounts(): void {
    const life = this.newLife('accounts');
    const { unary, ...rest } = claimHandlers(this.mutant === 'begun-unwritten' ? withoutBegins(this.claimStore) : this.claimStore, life);
    const claim = unary['ClaimRequest'];
    const forgetting: typeof claim = (request, call) => {
      this.claimStore = newClaimStore();
      return claimHandlers(this.claimStore, life).unary['ClaimRequest']?.(request, call);
    };
    Object.assign(this.accounts, { life, handlers: { ...rest, unary: { ...unary, ...(this.mutant === 'keys-forgotten' ? { ClaimRequest: forgetting, BeginClaim: standing } : {}) } } });
  }

  private startQuota(index: number): void {
    const door = this.quotas[index];
    if (door === undefined) return;
    const life = this.newLife(`quota ${index}`);
    const billing = this.network.client({ from: life, area: 'billing', doors: [this.billing], deadlineMs: TOTALS_DEADLINE_MS });
    Object.assign(door, { life, handlers: quotaIn({ life, store: this.counters.openFor(life), bus: this.bus.openFor(life), billing, coverage: this.coverage }) });
  }

  private startBilling(): void {
    const life = this.newLife('billing');
    const handlers = billingIn({ life, ledger: this.ledger, bus: this.bus.openFor(life), nowMs: () => this.scheduler.nowMs });
    Object.assign(this.billing, { life, handlers });
  }

  private startWorker(index: number, onServing?: () => void): void {
    const worker = this.workerAt(index);
    const { provider, disk, door, served } = worker;
    const life = this.newLife(`worker ${worker.name}`);
    const { clock } = life;
    Object.assign(door, { life, handlers: undefined });
    const quota = this.network.client({ from: life, area: 'quota', doors: this.quotas, deadlineMs: NEIGHBOUR_DEADLINE_MS });
    const billing = this.network.client({ from: life, area: 'billing', doors: [this.billing], deadlineMs: NEIGHBOUR_DEADLINE_MS });
    const ownBus = this.bus.openFor(life);
    const bus = this.mutant === 'cut-at-bus' ? cutAtBus(ownBus, disk) : this.mutant === 'rounds-apart' ? withoutCalls(ownBus) : ownBus;
    const afterTurn = (callback: () => void): void => void this.scheduler.at(0, () => life.run(callback));
    openJournal({ directory: worker.name, provider: provider.name, clock, randomBytes: this.random.bytes, log: silentLog, bus, quota, billing, disk: disk.openFor(life), afterTurn }).then(
      (journal) => {
        if (life.isDead) return;
        worker.journal = journal;
        const { dispatcher, handlers } = workerIn({
          life, provider, journal, bus: ownBus, mutant: this.mutant,
          extendHold: watchGrowth(this, extendingAt(quota, journal.state().writer)),
          onDispatch: ({ requestId }) => void served.add(requestId),
          onDelivered: (requestId, attempt) => {
            if (this.isGivenUp(requestId, attempt)) this.revived.add(requestId);
          },
          watched: (request, call) => watchCall(this, request, call, () => this.onLeft(request.requestId, index)),
        });
        worker.dispatcher = dispatcher;
        door.handlers = handlers;
        onServing?.();
      },
      () => {
        // It is restarted until the disk accepts writes.
        life.kill();
        this.later(() => this.startWorker(index));
      },
    );
  }
}
