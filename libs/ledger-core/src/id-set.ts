/** Ids that were used up, in 64 bits each: millions are remembered between two looks, and a set of texts costs ten times that. */

const CAPACITY_MIN = 16;

/**
 * Keeps a fingerprint of each id, not the id. With a million ids in the set, an id that is not among them is taken
 * for one with a chance of 1 in 10^13. Memory: 11 to 21 bytes an id.
 */
export class IdSet {
  /** Two words a slot, both 0 where it is free. */
  private words = new Uint32Array(2 * CAPACITY_MIN);
  private count = 0;
  /** Fingerprint of the id looked at last. */
  private low = 0;
  private high = 0;

  get size(): number {
    return this.count;
  }

  has(id: string): boolean {
    this.read(id);
    return this.words[this.find()] !== 0;
  }

  add(id: string): void {
    this.read(id);
    const at = this.find();
    if (this.words[at] !== 0) return;
    this.put(at);
    this.count += 1;
    // At most three quarters full, so that a look ends after a few steps.
    if (this.count * 8 > this.words.length * 3) this.grow();
  }

  /** Two independent hashes of the characters, each finished so that every bit depends on all of them. `low` is never 0. */
  private read(id: string): void {
    let low = 0x811c9dc5 | 0;
    let high = id.length;
    for (let i = 0; i < id.length; i += 1) {
      const code = id.charCodeAt(i);
      low = Math.imul(low ^ code, 0x01000193);
      high = Math.imul(((high << 5) | (high >>> 27)) ^ code, 0x9e3779b1);
    }
    this.low = finish(low) | 1;
    this.high = finish(high);
  }

  /** Index of the slot that holds the fingerprint, or of the free one where it belongs. */
  private find(): number {
    const { words, low, high } = this;
    const mask = words.length - 1;
    let at = (high << 1) & mask;
    while (words[at] !== 0 && (words[at] !== low >>> 0 || words[at + 1] !== high >>> 0)) at = (at + 2) & mask;
    return at;
  }

  private put(at: number): void {
    this.words[at] = this.low;
    this.words[at + 1] = this.high;
  }

  private grow(): void {
    const before = this.words;
    this.words = new Uint32Array(2 * before.length);
    for (let i = 0; i < before.length; i += 2) {
      this.low = before[i] ?? 0;
      this.high = before[i + 1] ?? 0;
      if (this.low !== 0) this.put(this.find());
    }
  }
}

function finish(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
