/** Collects bytes that arrive in pieces of any size. Even if they arrive one by one, memory use stays close to their number. */

/** Smaller pieces are copied, since each Buffer costs some hundred bytes of overhead. */
const SMALL_BYTES = 4_096;
/** This many consecutive small pieces are copied together, so that a body of only a few pieces is copied just once, when it is complete. */
const LOOSE_MAX = 8;
/** Buffers for small pieces have room for as much as has arrived so far, within these bounds. */
const SLAB_BYTES_MIN = 4_096;
const SLAB_BYTES_MAX = 65_536;

const NOTHING = Buffer.alloc(0);

/** Holds less than twice the bytes that were pushed, plus a few kilobytes. */
export class Pieces {
  private parts: Buffer[] = [];
  private count = 0;
  private held = 0;
  /** Number of uncopied small pieces at the end of the parts. */
  private loose = 0;
  private slab = NOTHING;
  private slabTo = 0;
  /** Start of the part that is a view of the bytes copied last. */
  private viewFrom = 0;
  /** That part exists, and only loose pieces follow it. */
  private isShown = false;

  /** Total bytes of all pieces. */
  get bytes(): number {
    return this.count;
  }

  /** Memory used for them. */
  get heldBytes(): number {
    return this.held;
  }

  /** The piece may be kept without a copy, so its bytes must not change any more. */
  push(piece: Buffer): void {
    const bytes = piece.length;
    if (bytes === 0) return;
    this.parts.push(piece);
    this.count += bytes;
    this.held += bytes;
    if (bytes >= SMALL_BYTES) {
      this.loose = 0;
      this.viewFrom = this.slabTo;
      this.isShown = false;
      return;
    }
    this.loose += 1;
    if (this.loose === LOOSE_MAX) this.copyLoose();
  }

  /** Returns all bytes and clears the collection; returns the piece itself if there was only one. */
  take(): Buffer {
    const [only] = this.parts;
    const whole = only !== undefined && this.parts.length === 1 ? only : Buffer.concat(this.parts, this.count);
    this.clear();
    return whole;
  }

  clear(): void {
    this.parts = [];
    this.count = this.held = this.loose = this.slabTo = this.viewFrom = 0;
    this.slab = NOTHING;
    this.isShown = false;
  }

  private copyLoose(): void {
    for (const piece of this.parts.splice(this.parts.length - this.loose)) {
      this.held -= piece.length;
      for (let from = 0; from < piece.length; ) {
        if (this.slabTo === this.slab.length) this.openSlab();
        const copied = piece.copy(this.slab, this.slabTo, from);
        from += copied;
        this.slabTo += copied;
      }
    }
    this.loose = 0;
    this.show();
  }

  private openSlab(): void {
    this.show();
    this.slab = Buffer.allocUnsafeSlow(Math.min(SLAB_BYTES_MAX, Math.max(SLAB_BYTES_MIN, this.count)));
    this.held += this.slab.length;
    this.slabTo = this.viewFrom = 0;
    this.isShown = false;
  }

  private show(): void {
    if (this.viewFrom === this.slabTo) return;
    if (this.isShown) this.parts.pop();
    this.parts.push(this.slab.subarray(this.viewFrom, this.slabTo));
    this.isShown = true;
  }
}
