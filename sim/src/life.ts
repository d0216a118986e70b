/** One process from its start to its end: its pending tasks die with it; messages to a frozen process wait. */
import type { Clock, EpochMs } from '@signalbox/kernel/clock';
import type { Scheduler } from './scheduler.js';

/** 2026-11-21T12:00:00Z. */
export const EPOCH_MS: EpochMs = 1_795_262_400_000;

export class Life {
  readonly clock: Clock;
  /** It ended by itself after everything that it had to report was received, so nothing was lost with it. */
  hasToldAll = false;
  private dead = false;
  private frozen = false;
  private backlog: (() => void)[] = [];
  private readonly mourners = new Set<() => void>();

  constructor(
    readonly name: string,
    private readonly scheduler: Scheduler,
    /** How far its wall clock is off, in milliseconds. */
    skewMs: number,
  ) {
    scheduler.say(() => `START ${name}`);
    this.clock = {
      nowMs: () => Math.floor(EPOCH_MS + skewMs + scheduler.nowMs),
      monotonicMs: () => scheduler.nowMs,
      setTimer: (delayMs, fire) => {
        let isCancelled = this.dead;
        const event = scheduler.at(delayMs, () => this.run(() => {
          if (!isCancelled) fire();
        }));
        return {
          cancel: () => {
            isCancelled = true;
            event.cancel();
          },
        };
      },
    };
  }

  get isDead(): boolean {
    return this.dead;
  }

  /** Runs a task inside the process: now, after `thaw`, or never. */
  run(task: () => void): void {
    if (this.dead) return;
    if (this.frozen) this.backlog.push(task);
    else task();
  }

  /** SIGKILL: connected processes notice it. */
  kill(): void {
    if (this.dead) return;
    this.scheduler.say(() => `KILL ${this.name}`);
    this.dead = true;
    this.backlog = [];
    for (const mourn of this.mourners) mourn();
    this.mourners.clear();
  }

  /** SIGSTOP. */
  freeze(): void {
    this.scheduler.say(() => `FREEZE ${this.name}`);
    this.frozen = true;
  }

  /** SIGCONT: waiting tasks run in order, each as a separate event. */
  thaw(): void {
    this.scheduler.say(() => `THAW ${this.name}`);
    this.frozen = false;
    for (const task of this.backlog.splice(0)) this.scheduler.at(0, () => this.run(task));
  }

  /** Calls `listener` at the kill; the function returned unsubscribes. */
  onDeath(listener: () => void): () => void {
    this.mourners.add(listener);
    return () => void this.mourners.delete(listener);
  }
}
