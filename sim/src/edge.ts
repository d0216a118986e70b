/** One edge of the simulated gateway: its requests, kills and stops. */
import { settleRequests, untilNone, type Neighbours, type Repeats, type WorkerClients } from '@signalbox/edge/proof';
import type { SimClient } from './client.js';
import type { Life } from './life.js';

/** The parts of an edge during one life. */
export interface EdgeParts {
  readonly life: Life;
  readonly neighbours: Neighbours;
  readonly repeats: Repeats;
  /** The worker clients of `neighbours`, without a mutant's wrapper. */
  readonly workers: WorkerClients;
}

export interface SimEdgeOptions {
  readonly make: () => EdgeParts;
  /** Calls back when edge is to be restarted. */
  readonly later: (start: () => void) => void;
  readonly onBug: (error: unknown) => void;
  readonly onCutOff: () => void;
}

export class SimEdge {
  /** Clients whose requests have not ended. */
  private clients = new Set<SimClient>();
  private parts: EdgeParts;
  private isStopping = false;

  constructor(private readonly options: SimEdgeOptions) {
    this.parts = options.make();
  }

  get life(): Life {
    return this.parts.life;
  }

  get isOpen(): boolean {
    return !this.life.isDead && !this.isStopping;
  }

  underWay(): readonly SimClient[] {
    return [...this.clients];
  }

  /** Runs a request to its end; call only while edge accepts requests. */
  serve(client: SimClient, conduct: (parts: EdgeParts) => Promise<unknown>): void {
    const { clients, parts } = this;
    clients.add(client);
    parts.life.run(() => void conduct(parts).catch(this.options.onBug).finally(() => clients.delete(client)));
  }

  /** SIGKILL. */
  kill(): void {
    if (this.life.isDead) return;
    this.life.kill();
    for (const client of this.clients) client.reset();
    this.options.later(() => this.start());
  }

  /** SIGTERM: accepts no more requests, lets answers finish for `drainMs`, cuts off the rest, reports all outcomes and ends. */
  stop(drainMs: number): void {
    if (!this.isOpen) return;
    this.isStopping = true;
    const { life } = this.parts;
    life.run(() => void this.drain(this.parts, drainMs).catch(this.options.onBug));
  }

  private async drain({ life, workers }: EdgeParts, drainMs: number): Promise<void> {
    const { clients } = this;
    const { clock } = life;
    const endMs = clock.monotonicMs() + drainMs;
    const inFlight = (): number => clients.size;
    await untilNone(inFlight, drainMs, clock);
    if (clients.size > 0) this.options.onCutOff();
    for (const client of clients) client.cutOff();
    const untold = await settleRequests({ inFlight, settle: (limitMs) => workers.settle(limitMs), clock, endMs });
    if (life.isDead) return;
    life.hasToldAll = untold === 0;
    this.kill();
  }

  private start(): void {
    this.isStopping = false;
    this.clients = new Set();
    this.parts = this.options.make();
  }
}
