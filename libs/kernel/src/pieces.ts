/** Bytes that come in pieces of any size and are kept until they are whole: whoever sends them one by one takes little more memory than their number. */

/** A smaller piece is copied: what Node keeps about each comes to some hundred bytes. */
const SMALL_BYTES = 4_096;
/** So many small ones on end are copied together: what comes in a few pieces is copied once, when it is whole. */
const LOOSE_MAX = 8;
/** What small pieces are copied into has room for as much as has come, within these bounds. */
const SLAB_BYTES_MIN = 4_096;
const SLAB_BYTES_MAX = 65_536;

const NOTHING = Buffer.alloc(0);

/** In use it holds less than twice the bytes that were given, and a few kilobytes. */
export class Pieces {
  private parts: Buffer[] = [];
  private count = 0;
  private held = 0;
  /** Small pieces at the end of the parts, as they came. */
  private loose = 0;
  private slab = NOTHING;
  private slabTo = 0;
  /** Where the part begins that shows what was copied last. */
  private viewFrom = 0;
  /** That part is there, and only loose ones stand behind it. */
  private isShown = false;

  /** Of all pieces together. */
  get bytes(): number {
    return this.count;
  }

  /** Memory that is taken up for them. */
  get heldBytes(): number {
    return this.held;
  }

  /** It may be kept as it is: its bytes must not change any more. */
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

  /** All bytes, of which nothing is kept: the piece itself where only one came. */
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
