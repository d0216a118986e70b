/**
 * Arrays in Postgres' binary form: a batch of rows goes as one array a column, so that a statement stays the same
 * whatever the batch's size, and nothing is quoted on one side and parsed on the other.
 */

const HEADER_BYTES = 20;
const INT8_BYTES = 8;
const INT4_BYTES = 4;
/** Types by their fixed numbers in Postgres. */
const TYPE = { int8: 20, int4: 23, text: 25 } as const;

/** One dimension from 1. Bytes after the header are not set. */
function arrayOf(type: number, length: number, bodyBytes: number, hasNulls = false): Buffer {
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + bodyBytes);
  buffer.writeInt32BE(length === 0 ? 0 : 1, 0);
  buffer.writeInt32BE(hasNulls ? 1 : 0, 4);
  buffer.writeInt32BE(type, 8);
  buffer.writeInt32BE(length, 12);
  buffer.writeInt32BE(1, 16);
  return length === 0 ? buffer.subarray(0, 12) : buffer;
}

/** For a parameter of type `text[]`. */
export function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = 0;
  let hasNulls = false;
  for (const value of values) {
    bytes += 4 + (value === null ? 0 : Buffer.byteLength(value));
    hasNulls ||= value === null;
  }
  const buffer = arrayOf(TYPE.text, values.length, bytes, hasNulls);
  if (values.length === 0) return buffer;
  let at = HEADER_BYTES;
  for (const value of values) {
    const length = value === null ? 0 : buffer.write(value, at + 4);
    buffer.writeInt32BE(value === null ? -1 : length, at);
    at += 4 + length;
  }
  return buffer;
}

/** For a parameter of type `bigint[]`. Throws RangeError beyond 64 bits. */
export function bigintArray(values: readonly bigint[]): Buffer {
  const buffer = arrayOf(TYPE.int8, values.length, values.length * (4 + INT8_BYTES));
  // A view writes without taking the number apart into new ones.
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
  let at = HEADER_BYTES;
  for (const value of values) {
    if (BigInt.asIntN(64, value) !== value) throw new RangeError('A whole number does not fit into 64 bits.');
    view.setInt32(at, INT8_BYTES);
    view.setBigInt64(at + 4, value);
    at += 4 + INT8_BYTES;
  }
  return buffer;
}

/** For a parameter of type `integer[]`. Throws RangeError beyond 32 bits. */
export function integerArray(values: readonly number[]): Buffer {
  const buffer = arrayOf(TYPE.int4, values.length, values.length * (4 + INT4_BYTES));
  let at = HEADER_BYTES;
  for (const value of values) {
    buffer.writeInt32BE(INT4_BYTES, at);
    buffer.writeInt32BE(value, at + 4);
    at += 4 + INT4_BYTES;
  }
  return buffer;
}
