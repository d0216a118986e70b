/** The calls in work on one link, by id. */

interface Numbered {
  readonly id: number;
}

/** A power of two: neighbouring ids, as clients give them, fall into different slots. */
const SLOTS = 512;

/**
 * A table of slots that are emptied when a call ends. A Map would do but for the garbage collector: calls come and go so
 * fast that it is rebuilt every few dozen of them, and each discarded table, once old, keeps alive whatever was in work
 * when it was discarded, until the next collection of old space.
 */
export class LiveCalls<Call extends Numbered> {
  private readonly slots = new Array<Call | undefined>(SLOTS).fill(undefined);
  /** Calls whose slot was taken. */
  private readonly others = new Map<number, Call>(); // kept: empty while fewer are in work than there are slots.
  private inSlots = 0;

  get size(): number {
    return this.inSlots + this.others.size;
  }

  get(id: number): Call | undefined {
    const call = this.slots[id % SLOTS];
    if (call?.id === id) return call;
    return this.others.size === 0 ? undefined : this.others.get(id);
  }

  /** No call with its id may be in work. */
  add(call: Call): void {
    const slot = call.id % SLOTS;
    if (this.slots[slot] === undefined) {
      this.slots[slot] = call;
      this.inSlots += 1;
    } else this.others.set(call.id, call);
  }

  remove(id: number): void {
    const slot = id % SLOTS;
    if (this.slots[slot]?.id === id) {
      this.slots[slot] = undefined;
      this.inSlots -= 1;
    } else this.others.delete(id);
  }

  all(): Call[] {
    return [...this.slots.filter((call) => call !== undefined), ...this.others.values()];
  }

  /** All of them, out of the table. */
  takeAll(): Call[] {
    const all = this.all();
    this.slots.fill(undefined);
    this.others.clear();
    this.inSlots = 0;
    return all;
  }
}
