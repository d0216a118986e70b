/**
 * Collections for items that are being processed: thousands of entries come and go in a second, few are there at a time.
 *
 * A `Map` or `Set` is unsuitable only because of garbage collection: V8 rebuilds its table every few dozen deletions and links
 * each discarded table to the next for iterators. So a discarded table in old space keeps alive every later table, and all
 * items in them at that time, until the next collection of old space. Here a discarded table holds only keys and numbers.
 */

/** Items by slot number; slots are reused. */
export class LiveList<T> {
  private readonly items: (T | undefined)[] = [];
  private readonly free: number[] = [];

  get size(): number {
    return this.items.length - this.free.length;
  }

  /** Adds an item and returns its slot, 0 or more, which is its own until it is removed. `undefined` is not allowed. */
  add(item: T & ({} | null)): number {
    const slot = this.free.pop();
    if (slot === undefined) return this.items.push(item) - 1;
    this.items[slot] = item;
    return slot;
  }

  /** Undefined if the slot is empty. */
  get(slot: number): T | undefined {
    return this.items[slot];
  }

  replace(slot: number, item: T & ({} | null)): void {
    this.items[slot] = item;
  }

  /** Frees the slot of an item in the list; call it once. */
  remove(slot: number): void {
    this.items[slot] = undefined;
    this.free.push(slot);
  }

  /** A snapshot, in arbitrary order. */
  all(): T[] {
    return this.items.filter((item) => item !== undefined);
  }
}

/** Behaves like a `Map`, including the order; `undefined` values are not allowed. */
export class LiveMap<K, V extends {} | null> {
  private readonly slots = new Map<K, number>(); // kept: keys and numbers only, which is the purpose of this class.
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

  /** True if the key was there. */
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

  /** In the order in which the keys were set; entries may be deleted during iteration. */
  *[Symbol.iterator](): IterableIterator<[K, V]> {
    for (const [key, slot] of this.slots) {
      const value = this.list.get(slot);
      if (value !== undefined) yield [key, value];
    }
  }
}
