/** Probabilities of a long answer are taken out of it before it is read, read by themselves, and put back where they stood. */
import { randomBytes } from 'node:crypto';
import type { Segment } from './json-bounds.js';

const MARK_BYTES = 9;

export interface Apart {
  /** The answer, with the text `mark` and its number in the place of each segment. */
  readonly body: Buffer;
  /** Stands nowhere else in `body`. */
  readonly mark: string;
}

/** `segments` as JsonTally found them. */
export function setApart(body: Buffer, segments: readonly Segment[]): Apart {
  // Random, not searched for: a mark that grows until the answer does not hold it takes minutes, if the answer holds one of 200,000 characters.
  const mark = randomBytes(MARK_BYTES).toString('base64url');
  const pieces: Buffer[] = [];
  let end = 0;
  for (const [at, [from, to]] of segments.entries()) {
    pieces.push(body.subarray(end, from), Buffer.from(`"${mark}${String(at)}"`));
    end = to;
  }
  return { body: Buffer.concat([...pieces, body.subarray(end)]), mark };
}

/** The elements of a segment as JSON.stringify writes them, without the brackets; undefined when they are no JSON. */
export function elementsOf(body: Buffer, [from, to]: Segment): Buffer | undefined {
  try {
    const elements = JSON.parse(`[${body.toString('utf8', from, to)}]`) as readonly unknown[];
    return elements.length === 0 ? undefined : Buffer.from(JSON.stringify(elements).slice(1, -1));
  } catch {
    return undefined;
  }
}

/** `json`, which JSON.stringify wrote, with `elements` in the places of their marks. Undefined when there are others, in another order, or not all of them: they were not given on as they came. */
export function putBack(json: Uint8Array, mark: string, elements: readonly Buffer[]): Buffer | undefined {
  const text = Buffer.from(json.buffer, json.byteOffset, json.length);
  const pieces: Buffer[] = [];
  let end = 0;
  for (const [at, each] of elements.entries()) {
    // No segment is the first of its list.
    const place = `,"${mark}${String(at)}"`;
    const from = text.indexOf(mark, end) - 2;
    if (from < end || text.toString('utf8', from, from + place.length) !== place) return undefined;
    pieces.push(text.subarray(end, from + 1), each);
    end = from + place.length;
  }
  return text.includes(mark, end) ? undefined : Buffer.concat([...pieces, text.subarray(end)]);
}
