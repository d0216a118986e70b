/** Writes whole numbers as digits into space that is used again, without a text of their own on the way. */

/** Numbers are written in two parts that fit into 32 bits, since arithmetic on those is fast. */
const PART = 10_000_000;
const PART_DIGITS = 7;
const ZERO = 0x30;

/** Most digits of one number. */
export const DIGITS_MAX = 16;

/** True for numbers that `writeDigits` writes. */
export function hasDigits(value: number): boolean {
  return value >= 0 && Number.isSafeInteger(value);
}

/** Writes a whole number of 0 to 2^53 - 1 at `at`, where DIGITS_MAX bytes are free, and returns where it ends. */
export function writeDigits(space: Buffer, at: number, value: number): number {
  if (value < PART) return writePart(space, at, value, 1);
  const high = Math.floor(value / PART);
  const top = Math.floor(high / PART);
  const end = top === 0 ? writePart(space, at, high, 1) : writePart(space, writePart(space, at, top, 1), high - top * PART, PART_DIGITS);
  return writePart(space, end, value - high * PART, PART_DIGITS);
}

/** Of a number below PART, at least `least` digits, with zeros in front. */
function writePart(space: Buffer, at: number, value: number, least: number): number {
  let end = at + least;
  for (let power = 10; end < at + PART_DIGITS && power <= value; power *= 10) end += 1;
  let rest = value | 0;
  for (let i = end - 1; i >= at; i -= 1) {
    const shorter = (rest / 10) | 0;
    space[i] = ZERO + rest - shorter * 10;
    rest = shorter;
  }
  return end;
}
