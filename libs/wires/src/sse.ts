/** Server-sent events, strictly and in pieces: bytes in, the `data` of whole events out. */

/** Longer lines are no event of any wire; memory stays bounded. */
export const SSE_LINE_BYTES_MAX = 1_048_576;

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;

export interface SseParser {
  /** Calls `onData` for each whole event, in order. False when a line or event is beyond the limit: feed no more. */
  push(bytes: Uint8Array, onData: (data: Buffer) => void): boolean;
  /** Hands over an event whose closing blank line never came. */
  close(onData: (data: Buffer) => void): boolean;
}

/** LF and CRLF end lines; comments, `event`, `id` and `retry` fields are skipped; several `data` lines join with LF. */
export function createSseParser(): SseParser {
  let pieces: Buffer[] = [];
  let pieceBytes = 0;
  let data: Buffer | undefined;
  let atStart = true;

  const line = (raw: Buffer, onData: (data: Buffer) => void): boolean => {
    let text = raw;
    if (atStart) {
      atStart = false;
      if (text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf) text = text.subarray(3);
    }
    if (text.length > 0 && text[text.length - 1] === CR) text = text.subarray(0, -1);
    if (text.length === 0) {
      if (data !== undefined) {
        const event = data;
        data = undefined;
        onData(event);
      }
      return true;
    }
    // "data" and then a colon; anything else says nothing that a wire here needs.
    if (text[0] !== 100 || text[1] !== 97 || text[2] !== 116 || text[3] !== 97 || text[4] !== COLON) return true;
    const value = text.subarray(text[5] === SPACE ? 6 : 5);
    data = data === undefined ? value : Buffer.concat([data, Buffer.from('\n'), value]);
    return data.length <= SSE_LINE_BYTES_MAX;
  };

  return {
    push: (bytes, onData) => {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      let from = 0;
      for (;;) {
        const end = chunk.indexOf(LF, from);
        if (end === -1) break;
        let whole = chunk.subarray(from, end);
        if (pieceBytes > 0) {
          whole = Buffer.concat([...pieces, whole]);
          pieces = [];
          pieceBytes = 0;
        }
        if (whole.length > SSE_LINE_BYTES_MAX || !line(whole, onData)) return false;
        from = end + 1;
      }
      if (from < chunk.length) {
        pieces.push(chunk.subarray(from));
        pieceBytes += chunk.length - from;
      }
      return pieceBytes <= SSE_LINE_BYTES_MAX;
    },
    close: (onData) => {
      if (pieceBytes > 0 && !line(Buffer.concat(pieces), onData)) return false;
      pieces = [];
      pieceBytes = 0;
      return line(Buffer.alloc(0), onData);
    },
  };
}
