/** Checks the keys of a JSON body: no key twice in one object, and none named `__proto__`. */
import { secretHash } from './secret-hash.js';

const BACKSLASH = 0x5c;
/** Objects with more keys use a hash table: comparing each with each would take quadratic time. */
const LINEAR_KEYS_MAX = 16;
/** Keys up to this size are compared byte by byte, since a call into native code costs more. */
const SHORT_BYTES = 32;

/** The key between its quotes, escapes resolved. Throws SyntaxError on a wrong escape. */
export function keyText(body: Buffer, start: number, end: number): string {
  const raw = body.toString('utf8', start, end);
  return raw.includes('\\') ? String(JSON.parse(`"${raw}"`)) : raw;
}

/** FNV-1a of the key's bytes. All keys with escapes hash to 0, since the same text can be written in several ways. */
function keyHash(body: Buffer, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0;
  for (let i = start; i < end; i += 1) {
    const byte = body[i] as number;
    if (byte === BACKSLASH) return 0;
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return hash | 1;
}

const NO_BODY = Buffer.alloc(0);
const FORBIDDEN = '__proto__';
const FORBIDDEN_HASH = keyHash(Buffer.from(FORBIDDEN), 0, FORBIDDEN.length);

/** Most entries whose arrays are kept for the next body. */
const KEPT_KEYS = 1_024;

export type KeyVerdict = 'ok' | 'duplicate-key' | 'forbidden-key';

/**
 * Keys of all open objects, innermost last, as hashes and ranges, so that an ordinary key needs no string. Entries beyond
 * `size` and `depth` belong to closed objects and are left in place, since shortening an array is expensive.
 */
export class KeyStack {
  private body: Buffer = NO_BODY;
  private size = 0;
  private hashes: number[] = [];
  private starts: number[] = [];
  private ends: number[] = [];
  /** Texts of keys with escapes, and of keys compared with one; each is created once. */
  private texts: (string | undefined)[] = [];
  private depth = 0;
  private readonly bases: number[] = [];
  private readonly wide: (WideObject | undefined)[] = [];
  /** The body had a key with an escape: from then on texts are compared. */
  private hasEscapes = false;
  private hasTexts = false;

  /** Empties the stack for another body. An empty one releases the last body. */
  reset(body: Buffer): void {
    this.body = body;
    while (this.depth > 0) this.close();
    this.size = 0;
    if (this.hashes.length > KEPT_KEYS) {
      this.hashes = [];
      this.starts = [];
      this.ends = [];
    }
    if (this.hasTexts) this.texts = [];
    this.hasTexts = false;
    this.hasEscapes = false;
  }

  open(): void {
    this.bases[this.depth] = this.size;
    this.wide[this.depth] = undefined;
    this.depth += 1;
  }

  close(): void {
    this.depth -= 1;
    this.wide[this.depth] = undefined;
    this.size = this.bases[this.depth] ?? 0;
  }

  /** Throws SyntaxError on a wrong escape. */
  add(start: number, end: number): KeyVerdict {
    const { body, size } = this;
    const hash = keyHash(body, start, end);
    let text: string | undefined;
    if (hash === 0) {
      this.hasEscapes = true;
      this.hasTexts = true;
      text = keyText(body, start, end);
      if (text === FORBIDDEN) return 'forbidden-key';
    } else if (hash === FORBIDDEN_HASH && end - start === FORBIDDEN.length && keyText(body, start, end) === FORBIDDEN) return 'forbidden-key';
    this.texts[size] = text;
    this.starts[size] = start;
    this.ends[size] = end;
    const object = this.depth - 1;
    const base = this.bases[object] ?? 0;
    const wide = this.wide[object];
    if (wide === undefined) {
      for (let i = base; i < size; i += 1) {
        if (!this.hasEscapes && this.hashes[i] !== hash) continue;
        if (this.isSame(i, size)) return 'duplicate-key';
      }
      this.hashes[size] = hash;
      if (size + 1 - base > LINEAR_KEYS_MAX) this.widen(object, base);
    } else if (!wide.add(size, this.secretHash(size))) return 'duplicate-key';
    this.size = size + 1;
    return 'ok';
  }

  /** Moves the object's keys to a hash table. */
  private widen(object: number, base: number): void {
    const wide = new WideObject((one, other) => this.isSame(one, other));
    this.wide[object] = wide;
    for (let i = base; i <= this.size; i += 1) wide.add(i, this.secretHash(i));
  }

  private secretHash(index: number): number {
    const text = this.hasEscapes ? this.texts[index] : undefined;
    if (text === undefined) return secretHash(this.body, this.starts[index] ?? 0, this.ends[index] ?? 0);
    const bytes = Buffer.from(text);
    return secretHash(bytes, 0, bytes.length);
  }

  /** Whether two keys are the same. */
  private isSame(one: number, other: number): boolean {
    if (this.hasEscapes) {
      this.hasTexts = true;
      return this.textAt(one) === this.textAt(other);
    }
    const { body } = this;
    const start = this.starts[one] ?? 0;
    const from = this.starts[other] ?? 0;
    const length = (this.ends[one] ?? 0) - start;
    if (length !== (this.ends[other] ?? 0) - from) return false;
    // An attacker can make keys with equal hashes, and of megabytes.
    if (length > SHORT_BYTES) return body.compare(body, from, from + length, start, start + length) === 0;
    for (let i = 0; i < length; i += 1) if (body[start + i] !== body[from + i]) return false;
    return true;
  }

  private textAt(index: number): string {
    return (this.texts[index] ??= keyText(this.body, this.starts[index] ?? 0, this.ends[index] ?? 0));
  }
}

/** Hash table for the keys of a large object, by their secret hash: open addressing, at most half full. */
class WideObject {
  /** Index of each key in the stack plus one; 0 = free. */
  private places = new Int32Array(64);
  private hashes = new Int32Array(64);
  private count = 0;

  constructor(private readonly isSame: (one: number, other: number) => boolean) {}

  /** False when the object has the key already. */
  add(place: number, hash: number): boolean {
    const mask = this.places.length - 1;
    let slot = hash & mask;
    for (let held = this.places[slot] ?? 0; held !== 0; held = this.places[slot] ?? 0) {
      if (this.hashes[slot] === hash && this.isSame(held - 1, place)) return false;
      slot = (slot + 1) & mask;
    }
    this.places[slot] = place + 1;
    this.hashes[slot] = hash;
    this.count += 1;
    if (this.count * 2 > this.places.length) this.grow();
    return true;
  }

  private grow(): void {
    const { places, hashes } = this;
    const mask = places.length * 4 - 1;
    this.places = new Int32Array(places.length * 4);
    this.hashes = new Int32Array(places.length * 4);
    for (let i = 0; i < places.length; i += 1) {
      const place = places[i] ?? 0;
      if (place === 0) continue;
      const hash = hashes[i] ?? 0;
      let slot = hash & mask;
      while (this.places[slot] !== 0) slot = (slot + 1) & mask;
      this.places[slot] = place;
      this.hashes[slot] = hash;
    }
  }
}
