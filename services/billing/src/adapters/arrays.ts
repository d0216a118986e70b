/**
 * Arrays in Postgres' binary format. A batch of rows is sent as one array per column, so that the statement is the same for
 * every batch size and nothing has to be quoted and parsed. An array is encoded as it grows; its elements are kept only as
 * bytes.
 */

const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const INT8_BYTES = 8;
const INT4_BYTES = 4;
/** Fixed type ids (OIDs) of Postgres. */
const TYPE = { int8: 20, int4: 23, text: 25 } as const;
/** Up to this many characters, a loop is faster than a call into native code. */
const SHORT_TEXT = 64;
/** Most bytes in UTF-8 of one UTF-16 code unit. */
const UNIT_BYTES_MAX = 3;

/** An array with one dimension, whose indexes start at 1. */
abstract class GrowingArray {
  protected space: Buffer;
  /** View of `space`: it writes 64-bit integers without creating intermediate ones. */
  protected view: DataView;
  /** Where the next element goes. */
  protected at = HEADER_BYTES;
  protected length = 0;
  protected hasNulls = false;

  constructor(private readonly type: number, bytes: number) {
    this.space = Buffer.allocUnsafeSlow(HEADER_BYTES + bytes);
    this.view = new DataView(this.space.buffer);
  }

  /** The encoded parameter. It is a view, and not to be used after further elements are added. */
  bytes(): Buffer {
    const { space, view, length } = this;
    view.setInt32(0, length === 0 ? 0 : 1);
    view.setInt32(4, this.hasNulls ? 1 : 0);
    view.setInt32(8, this.type);
    view.setInt32(12, length);
    view.setInt32(16, 1);
    return space.subarray(0, length === 0 ? 12 : this.at);
  }

  protected room(bytes: number): void {
    if (this.at + bytes <= this.space.length) return;
    const space = Buffer.allocUnsafeSlow(Math.max(this.space.length * 2, this.at + bytes));
    this.space.copy(space, 0, 0, this.at);
    this.space = space;
    this.view = new DataView(space.buffer);
  }
}

/** A text in UTF-8. */
export interface EncodedText {
  readonly bytes: number;
  /** Copies it to `at` in `target`, which has room for it. */
  copyTo(target: Buffer, at: number): void;
}

/** For a parameter of type `text[]`. */
export class TextArray extends GrowingArray {
  /** Reserves space for `elements` of `elementBytes` each; grows if necessary. */
  constructor(elements: number, elementBytes: number) {
    super(TYPE.text, elements * (LENGTH_BYTES + elementBytes));
  }

  add(value: string | null): void {
    this.length += 1;
    if (value === null) {
      this.hasNulls = true;
      this.room(LENGTH_BYTES);
      this.view.setInt32(this.at, -1);
      this.at += LENGTH_BYTES;
      return;
    }
    this.room(LENGTH_BYTES + value.length * UNIT_BYTES_MAX);
    const length = this.text(value, this.at + LENGTH_BYTES);
    this.view.setInt32(this.at, length);
    this.at += LENGTH_BYTES + length;
  }

  /** Adds a text that is bytes already. */
  addText(text: EncodedText): void {
    const { bytes } = text;
    this.room(LENGTH_BYTES + bytes);
    this.length += 1;
    this.view.setInt32(this.at, bytes);
    text.copyTo(this.space, this.at + LENGTH_BYTES);
    this.at += LENGTH_BYTES + bytes;
  }

  /** Writes the text and returns its length in bytes. */
  private text(value: string, at: number): number {
    const { space } = this;
    const { length } = value;
    if (length > SHORT_TEXT) return space.write(value, at);
    for (let i = 0; i < length; i += 1) {
      const code = value.charCodeAt(i);
      if (code > 0x7f) return space.write(value, at);
      space[at + i] = code;
    }
    return length;
  }
}

/** For a parameter of type `bigint[]`. */
export class BigintArray extends GrowingArray {
  /** Reserves space for `elements`; grows if necessary. */
  constructor(elements: number) {
    super(TYPE.int8, elements * (LENGTH_BYTES + INT8_BYTES));
  }

  /** Throws RangeError beyond 64 bits, and for a number that is not an integer. */
  add(value: bigint | number): void {
    const whole = BigInt(value);
    if (BigInt.asIntN(64, whole) !== whole) throw new RangeError('A whole number does not fit into 64 bits.');
    this.room(LENGTH_BYTES + INT8_BYTES);
    this.length += 1;
    this.view.setInt32(this.at, INT8_BYTES);
    this.view.setBigInt64(this.at + LENGTH_BYTES, whole);
    this.at += LENGTH_BYTES + INT8_BYTES;
  }
}

/** For a parameter of type `integer[]`. */
export class IntegerArray extends GrowingArray {
  /** Reserves space for `elements`; grows if necessary. */
  constructor(elements: number) {
    super(TYPE.int4, elements * (LENGTH_BYTES + INT4_BYTES));
  }

  /** Throws RangeError beyond 32 bits. */
  add(value: number): void {
    if ((value | 0) !== value) throw new RangeError('A whole number does not fit into 32 bits.');
    this.room(LENGTH_BYTES + INT4_BYTES);
    this.length += 1;
    this.view.setInt32(this.at, INT4_BYTES);
    this.view.setInt32(this.at + LENGTH_BYTES, value);
    this.at += LENGTH_BYTES + INT4_BYTES;
  }
}

/** 32 bytes, enough for an id. */
const ID_BYTES = 32;

/** One text per row. */
export function textsOf<Row>(rows: readonly Row[], pick: (row: Row) => string): Buffer {
  const array = new TextArray(rows.length, ID_BYTES);
  for (const row of rows) array.add(pick(row));
  return array.bytes();
}

/** One integer per row. Throws like `BigintArray.add`. */
export function bigintsOf<Row>(rows: readonly Row[], pick: (row: Row) => bigint | number): Buffer {
  const array = new BigintArray(rows.length);
  for (const row of rows) array.add(pick(row));
  return array.bytes();
}

/** One 32-bit integer per row. Throws like `IntegerArray.add`. */
export function integersOf<Row>(rows: readonly Row[], pick: (row: Row) => number): Buffer {
  const array = new IntegerArray(rows.length);
  for (const row of rows) array.add(pick(row));
  return array.bytes();
}

export function textArray(values: readonly string[]): Buffer {
  return textsOf(values, (value) => value);
}
