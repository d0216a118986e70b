/** The running calls of one link, by id. */

interface Numbered {
  readonly id: number;
}

/** A power of two. Clients count ids up, so neighbouring calls use different slots. */
const SLOTS = 512;

/**
 * A table of slots, cleared when a call ends. A Map would be simpler but costs garbage collection: calls come and go so
 * fast that V8 rebuilds the Map's table every few dozen of them. A discarded table in old space keeps the calls that were
 * running then alive until the next collection of old space.
 */
export class LiveCalls<Call extends Numbered> {
  private readonly slots = new Array<Call | undefined>(SLOTS).fill(undefined);
  /** Calls whose slot was taken. */
  private readonly others = new Map<number, Call>(); // kept: empty while neighbouring calls are fewer than the slots.
  private inSlots = 0;

  get size(): number {
    return this.inSlots + this.others.size;
  }

  get(id: number): Call | undefined {
    const call = this.slots[id % SLOTS];
    if (call?.id === id) return call;
    return this.others.size === 0 ? undefined : this.others.get(id);
  }

  /** No running call may have the same id. */
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

  /** Removes all calls from the table and returns them. */
  takeAll(): Call[] {
    const all = this.all();
    this.slots.fill(undefined);
    this.others.clear();
    this.inSlots = 0;
    return all;
  }
}
