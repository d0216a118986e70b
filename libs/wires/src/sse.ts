/** Server-sent events, strictly and in pieces: bytes in, the `data` of whole events out. */
import { Pieces } from '@signalbox/kernel/pieces';

/** Longer events are of no wire: a picture that a model draws comes in one, of a few megabytes. Memory stays bounded. */
export const SSE_EVENT_BYTES_MAX = 8_388_608;
/** Lines that one event's data may be spread over. */
const DATA_LINES_MAX = 1_024;

const TAB = 9;
const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
const OPEN_ARRAY = 91;
const OPEN_OBJECT = 123;
const CLOSE_ARRAY = 93;
const CLOSE_OBJECT = 125;
const NEW_LINE = Buffer.from('\n');
const ERROR_NAME = Buffer.from('"error"');
/** More is no error that a host tells. */
const BARE_BYTES_MAX = 65_536;

/** An event's data: `bytes` from `from` up to `to`, which stay as they are. */
export type OnData = (bytes: Buffer, from: number, to: number) => void;

export interface SseParser {
  /** Calls `onData` for each whole event, in order. False when a line or event is beyond the limit: feed no more. */
  push(bytes: Uint8Array): boolean;
  /** Hands over an event whose closing blank line never came, or a body that was no stream. */
  close(): boolean;
}

/** Where the first byte that is no blank stands in `bytes`; its length when there is none. */
function firstWord(bytes: Buffer): number {
  let at = 0;
  for (let byte = bytes[at]; byte === SPACE || byte === LF || byte === CR || byte === TAB; byte = bytes[at]) at += 1;
  return at;
}

/**
 * LF, CRLF or CR alone end lines, the same throughout a stream: its first line says which. A byte order mark before one is skipped; comments, `event`, `id` and `retry` fields are skipped; several `data` lines join with LF.
 * A body that begins with a bracket is JSON in the place of a stream, an error as a rule: it comes as one event. So does an
 * error that a host (Google) writes as bare JSON behind its events, once the stream has ended with it.
 */
export function createSseParser(onData: OnData): SseParser {
  const pieces = new Pieces();
  let data: Buffer | undefined;
  let dataFrom = 0;
  let dataTo = 0;
  /** Lines of this event's data behind the first, each after its LF. */
  let moreData: Buffer[] = [];
  let dataBytes = 0;
  /** undefined while only blanks came. */
  let isJson: boolean | undefined;
  /** Lines end with CR alone; undefined while no line has ended. */
  let isByCr: boolean | undefined;
  /** The last byte was a CR. */
  let isAfterCr = false;

  /** Lines of JSON that is no event's data, and their bytes. */
  let bare: Buffer[] | undefined;
  let bareBytes = 0;

  const keepBare = (bytes: Buffer): void => {
    bare ??= [];
    bareBytes += bytes.length;
    // A copy: blank lines around it may be megabytes.
    if (bareBytes <= BARE_BYTES_MAX) bare.push(Buffer.from(bytes), NEW_LINE);
  };

  const giveBare = (): void => {
    if (bare === undefined || bareBytes > BARE_BYTES_MAX) return;
    const whole = Buffer.concat(bare.slice(0, -1));
    const last = whole[whole.length - 1];
    if ((last === CLOSE_OBJECT || last === CLOSE_ARRAY) && whole.includes(ERROR_NAME)) onData(whole, 0, whole.length);
  };

  const dispatch = (): void => {
    if (data === undefined) return;
    const bytes = data;
    const more = moreData;
    data = undefined;
    if (more.length === 0) {
      onData(bytes, dataFrom, dataTo);
      return;
    }
    moreData = [];
    const whole = Buffer.concat([bytes.subarray(dataFrom, dataTo), ...more]);
    onData(whole, 0, whole.length);
  };

  const line = (bytes: Buffer, from: number, end: number): boolean => {
    let at = from;
    // One stands before each event where a host writes them one by one: no field is called so.
    if (bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf) at += 3;
    const to = end > at && bytes[end - 1] === CR ? end - 1 : end;
    if (to <= at) {
      dispatch();
      return true;
    }
    // "data" and then a colon; anything else says nothing that a wire here needs.
    if (to - at < 5 || bytes[at] !== 100 || bytes[at + 1] !== 97 || bytes[at + 2] !== 116 || bytes[at + 3] !== 97 || bytes[at + 4] !== COLON) {
      if (bare !== undefined || bytes[at] === OPEN_OBJECT || bytes[at] === OPEN_ARRAY) keepBare(bytes.subarray(at, to));
      return true;
    }
    bare = undefined;
    bareBytes = 0;
    at += to - at > 5 && bytes[at + 5] === SPACE ? 6 : 5;
    if (data === undefined) {
      data = bytes;
      dataFrom = at;
      dataTo = to;
      dataBytes = to - at;
    } else {
      // Joined when the event is whole: with each line anew, an event of many would cost the square of its length.
      moreData.push(NEW_LINE, bytes.subarray(at, to));
      if (moreData.length >= 2 * DATA_LINES_MAX) return false;
      dataBytes += 1 + to - at;
    }
    return dataBytes <= SSE_EVENT_BYTES_MAX;
  };

  const keep = (rest: Buffer): boolean => {
    pieces.push(rest);
    return pieces.bytes <= SSE_EVENT_BYTES_MAX;
  };

  /** The line that earlier pieces began and `last` completes. */
  const joined = (last: Buffer): boolean => {
    pieces.push(last);
    const whole = pieces.take();
    return whole.length <= SSE_EVENT_BYTES_MAX && line(whole, 0, whole.length);
  };

  /** Decides by the first line, from the bytes that end it. */
  const learnEnds = (bytes: Buffer): void => {
    const lf = bytes.indexOf(LF);
    const cr = isAfterCr ? -1 : bytes.indexOf(CR);
    if (!isAfterCr && cr === -1) {
      if (lf !== -1) isByCr = false;
    } else if (cr + 1 < bytes.length) isByCr = (lf === -1 || lf > cr) && bytes[cr + 1] !== LF;
    else if (lf !== -1) isByCr = false;
    else isAfterCr = true;
  };

  /** A copy in which LF ends each line. */
  const withLf = (bytes: Buffer): Buffer => {
    const copy = Buffer.allocUnsafe(bytes.length);
    let length = 0;
    for (const byte of bytes) {
      const isSecond = byte === LF && isAfterCr;
      isAfterCr = byte === CR;
      if (isSecond) continue;
      copy[length] = isAfterCr ? LF : byte;
      length += 1;
    }
    return copy.subarray(0, length);
  };

  const inLines = (bytes: Buffer): boolean => {
    let from = 0;
    for (;;) {
      const end = bytes.indexOf(LF, from);
      if (end === -1) return from === bytes.length || keep(from === 0 ? bytes : bytes.subarray(from));
      if (pieces.bytes > 0) {
        if (!joined(bytes.subarray(from, end))) return false;
      } else if (end - from > SSE_EVENT_BYTES_MAX || !line(bytes, from, end)) return false;
      from = end + 1;
    }
  };

  return {
    push: (raw) => {
      const bytes = Buffer.isBuffer(raw) ? raw : Buffer.from(raw.buffer, raw.byteOffset, raw.length);
      if (isJson === undefined) {
        const first = bytes[firstWord(bytes)];
        if (first !== undefined) isJson = first === OPEN_OBJECT || first === OPEN_ARRAY;
      }
      if (isJson === true) return keep(bytes);
      if (isByCr === undefined) {
        learnEnds(bytes);
        if (isByCr === true && pieces.bytes > 0) {
          isAfterCr = false;
          pieces.push(bytes);
          return inLines(withLf(pieces.take()));
        }
      }
      return inLines(isByCr === true ? withLf(bytes) : bytes);
    },
    close: () => {
      if (isJson === true) {
        const body = pieces.take();
        onData(body, 0, body.length);
        return true;
      }
      if (pieces.bytes > 0 && !joined(Buffer.alloc(0))) return false;
      dispatch();
      giveBare();
      return true;
    },
  };
}
