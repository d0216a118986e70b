/** Joins text and bytes in one buffer, without a buffer for each part. */

/** `head` and `tail` in UTF-8 around `middle`. */
export function joinBytes(head: string, middle: Uint8Array, tail: string): Buffer {
  // A UTF-16 unit takes at most three bytes.
  const out = Buffer.allocUnsafe(3 * (head.length + tail.length) + middle.length);
  const start = out.write(head, 0);
  out.set(middle, start);
  const end = start + middle.length;
  return out.subarray(0, end + out.write(tail, end));
}
