/** One edge of the simulated gateway: whom it serves, how it dies, how it stops. */
import { settleRequests, untilNone, type Neighbours, type Repeats, type WorkerClients } from '@signalbox/edge/proof';
import type { SimClient } from './client.js';
import type { Life } from './life.js';

/** What makes an edge, from its start to its end. */
export interface EdgeParts {
  readonly life: Life;
  readonly neighbours: Neighbours;
  readonly repeats: Repeats;
  /** Those of `neighbours`, which a mutant may stand before. */
  readonly workers: WorkerClients;
}

export interface SimEdgeOptions {
  readonly make: () => EdgeParts;
  /** Calls back when the keeper starts it again. */
  readonly later: (start: () => void) => void;
  readonly onBug: (error: unknown) => void;
  readonly onCutOff: () => void;
}

export class SimEdge {
  /** Whose requests have not ended. */
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

  /** Runs a request to its end; to be called while it is open. */
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

  /** SIGTERM: takes no more requests, lets its answers end for so long, cuts off what is left, tells what is to be told and ends. */
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
