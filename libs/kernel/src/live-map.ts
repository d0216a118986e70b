/**
 * Collections of what is in work right now: thousands of entries come and go in a second, few are there at a time.
 *
 * A `Map` or `Set` is wrong for it but for the garbage collector alone: it is rebuilt every few dozen deletions, V8 links each
 * discarded table to the next for iterators, and a discarded table in old space so keeps every later table, and all that was in
 * work when one was discarded, until the next collection of old space. Here a discarded table holds keys and numbers only.
 */

/** Items by the slot they were given; slots are used again. */
export class LiveList<T> {
  private readonly items: (T | undefined)[] = [];
  private readonly free: number[] = [];

  get size(): number {
    return this.items.length - this.free.length;
  }

  /** The item's slot: 0 or more, its own until it is removed. `undefined` is no item. */
  add(item: T & ({} | null)): number {
    const slot = this.free.pop();
    if (slot === undefined) return this.items.push(item) - 1;
    this.items[slot] = item;
    return slot;
  }

  /** Undefined when nothing is in the slot. */
  get(slot: number): T | undefined {
    return this.items[slot];
  }

  replace(slot: number, item: T & ({} | null)): void {
    this.items[slot] = item;
  }

  /** Frees the slot of an item that is in the list; call it once. */
  remove(slot: number): void {
    this.items[slot] = undefined;
    this.free.push(slot);
  }

  /** A picture, in no order that means something. */
  all(): T[] {
    return this.items.filter((item) => item !== undefined);
  }
}

/** As a `Map` in what it answers and in which order; `undefined` is no value. */
export class LiveMap<K, V extends {} | null> {
  private readonly slots = new Map<K, number>(); // kept: keys and numbers alone, which is what this class is for.
  private readonly list = new LiveList<V>();

  get size(): number {
    return this.slots.size;
  }

  has(key: K): boolean {
    return this.slots.has(key);
  }

  get(key: K): V | undefined {
    const slot = this.slots.get(key);
    return slot === undefined ? undefined : this.list.get(slot);
  }

  set(key: K, value: V): void {
    const slot = this.slots.get(key);
    if (slot === undefined) this.slots.set(key, this.list.add(value));
    else this.list.replace(slot, value);
  }

  /** True when it was there. */
  delete(key: K): boolean {
    const slot = this.slots.get(key);
    if (slot === undefined) return false;
    this.list.remove(slot);
    return this.slots.delete(key);
  }

  keys(): IterableIterator<K> {
    return this.slots.keys();
  }

  *values(): IterableIterator<V> {
    for (const [, value] of this) yield value;
  }

  /** In the order in which the keys were set; entries may be deleted on the way. */
  *[Symbol.iterator](): IterableIterator<[K, V]> {
    for (const [key, slot] of this.slots) {
      const value = this.list.get(slot);
      if (value !== undefined) yield [key, value];
    }
  }
}
