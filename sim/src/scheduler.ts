/** Virtual time: runs one event after the other, and after each the promises that it settles. */
import type { Timer } from '@signalbox/kernel/clock';

class Entry implements Timer {
  constructor(
    readonly at: number,
    readonly order: number,
    public fire: (() => void) | undefined,
  ) {}

  cancel(): void {
    this.fire = undefined;
  }
}

const isBefore = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

/** Milliseconds from 0. No real time passes: a run of minutes takes milliseconds. */
export class Scheduler {
  /** Events fired. */
  steps = 0;
  private elapsed = 0;
  private order = 0;
  private readonly heap: Entry[] = [];

  /** `trace` receives a line per event, for a person who replays a seed. */
  constructor(
    private readonly onBug: (error: unknown) => void,
    private readonly trace?: (line: string) => void,
  ) {}

  /** `line` is only called if there is a trace. */
  say(line: () => string): void {
    this.trace?.(`${this.elapsed.toFixed(2).padStart(10)} ${line()}`);
  }

  get nowMs(): number {
    return this.elapsed;
  }

  /** Fires once, `delayMs` from now; events of the same instant fire in the order of the calls. */
  at(delayMs: number, fire: () => void): Timer {
    const entry = new Entry(this.elapsed + Math.max(0, delayMs), this.order, fire);
    this.order += 1;
    this.push(entry);
    return entry;
  }

  /** Fires all events up to `endMs`, and sets the time to it. */
  async runUntil(endMs: number): Promise<void> {
    for (let next = this.heap[0]; next !== undefined && next.at <= endMs; next = this.heap[0]) {
      this.pop();
      const { fire } = next;
      if (fire === undefined) continue;
      this.elapsed = next.at;
      this.steps += 1;
      try {
        fire();
      } catch (error) {
        this.onBug(error);
      }
      // Promises in a run wait only for these events, so one turn settles them all.
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
    this.elapsed = Math.max(this.elapsed, endMs);
  }

  private push(entry: Entry): void {
    const { heap } = this;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || isBefore(parent, entry)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = entry;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop();
    const size = heap.length;
    if (last === undefined || size === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const left = heap[child];
      if (left === undefined) break;
      const right = heap[child + 1];
      let least = left;
      if (right !== undefined && isBefore(right, left)) {
        least = right;
        child += 1;
      }
      if (isBefore(last, least)) break;
      heap[at] = least;
      at = child;
    }
    heap[at] = last;
  }
}
