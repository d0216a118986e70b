/** Messages of `application/vnd.amazon.eventstream`: bytes in, whole messages out, both checksums checked. */
import { Pieces } from '@signalbox/kernel/pieces';
import { crc32 } from 'node:zlib';

/** A message of any wire here is a few kilobytes, one with an image a few megabytes; memory stays bounded. */
export const EVENT_MESSAGE_BYTES_MAX = 8_388_608;
const HEADER_BYTES_MAX = 131_072;
/** Total length, length of the headers, and the checksum of both. */
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;

export interface EventMessage {
  /** Text headers by name, such as `:event-type`; those of other kinds are left out. */
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Buffer;
}

export interface EventStreamParser {
  /** Calls `onMessage` for each whole message, in order. False when the bytes are no such stream: feed no more. */
  push(bytes: Uint8Array): boolean;
  /** False when the source ended within a message. */
  close(): boolean;
}

/** Bytes of a header's value by its type, where that is fixed: two booleans, 8 to 64 bit numbers, a time, a UUID. */
const FIXED_BYTES: ReadonlyMap<number, number> = new Map([[0, 0], [1, 0], [2, 1], [3, 2], [4, 4], [5, 8], [8, 8], [9, 16]]);
const BYTES_TYPE = 6;
const TEXT_TYPE = 7;

/** undefined when they are malformed. */
function readHeaders(bytes: Buffer): ReadonlyMap<string, string> | undefined {
  const headers = new Map<string, string>();
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + (bytes[at] ?? 0);
    if (nameEnd >= bytes.length) return undefined;
    const type = bytes[nameEnd] ?? 0;
    const hasLength = type === BYTES_TYPE || type === TEXT_TYPE;
    const valueStart = nameEnd + (hasLength ? 3 : 1);
    if (valueStart > bytes.length) return undefined;
    const length = hasLength ? bytes.readUInt16BE(nameEnd + 1) : FIXED_BYTES.get(type);
    if (length === undefined || valueStart + length > bytes.length) return undefined;
    if (type === TEXT_TYPE) headers.set(bytes.toString('utf8', at + 1, nameEnd), bytes.toString('utf8', valueStart, valueStart + length));
    at = valueStart + length;
  }
  return headers;
}

/** Length of the message that these bytes begin, 0 while that is not known; undefined when they begin none. */
function lengthOf(bytes: Buffer): number | undefined {
  if (bytes.length < PRELUDE_BYTES) return 0;
  const total = bytes.readUInt32BE(0);
  const headerBytes = bytes.readUInt32BE(4);
  const isSound = headerBytes <= HEADER_BYTES_MAX && total >= PRELUDE_BYTES + headerBytes + CHECKSUM_BYTES && total <= EVENT_MESSAGE_BYTES_MAX;
  return isSound && crc32(bytes.subarray(0, 8)) === bytes.readUInt32BE(8) ? total : undefined;
}

export function createEventStreamParser(onMessage: (message: EventMessage) => void): EventStreamParser {
  const pieces = new Pieces();
  /** Bytes that make the next step possible: a prelude, then its message. */
  let needed = PRELUDE_BYTES;
  let isBroken = false;

  const give = (message: Buffer): boolean => {
    const payloadEnd = message.length - CHECKSUM_BYTES;
    if (crc32(message.subarray(0, payloadEnd)) !== message.readUInt32BE(payloadEnd)) return false;
    const payloadStart = PRELUDE_BYTES + message.readUInt32BE(4);
    const headers = readHeaders(message.subarray(PRELUDE_BYTES, payloadStart));
    if (headers === undefined) return false;
    onMessage({ headers, payload: message.subarray(payloadStart, payloadEnd) });
    return true;
  };

  /** Takes whole messages off `bytes`; what is left, or undefined when it is no such stream. */
  const takeAll = (bytes: Buffer): Buffer | undefined => {
    let left = bytes;
    for (;;) {
      const length = lengthOf(left);
      if (length === undefined) return undefined;
      needed = length === 0 ? PRELUDE_BYTES : length;
      if (length === 0 || left.length < length) return left;
      if (!give(left.subarray(0, length))) return undefined;
      left = left.subarray(length);
    }
  };

  return {
    push: (bytes) => {
      if (isBroken) return false;
      pieces.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
      if (pieces.bytes < needed) return true;
      const left = takeAll(pieces.take());
      isBroken = left === undefined;
      if (left !== undefined) pieces.push(left);
      return !isBroken;
    },
    close: () => !isBroken && pieces.bytes === 0,
  };
}
