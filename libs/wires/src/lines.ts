/** Lines out of pieces: bytes in, whole lines out, memory bounded. */
import { Pieces } from '@signalbox/kernel/pieces';

/** Longer lines are of no wire here. */
const LINE_BYTES_MAX = 8_388_608;

const LF = 10;
const CR = 13;

export interface LineSplitter {
  /** Calls `onLine` for each whole line, in order. False when a line is beyond the limit or `onLine` said no: feed no more. */
  push(bytes: Uint8Array): boolean;
  /** Hands over a last line that no line feed ended. */
  close(): boolean;
}

/** LF and CRLF end lines; a line comes without either. */
export function createLineSplitter(onLine: (line: Buffer) => boolean): LineSplitter {
  const pieces = new Pieces();

  const give = (raw: Buffer): boolean => raw.length <= LINE_BYTES_MAX && onLine(raw.length > 0 && raw[raw.length - 1] === CR ? raw.subarray(0, -1) : raw);
  const joined = (last: Buffer): Buffer => {
    if (pieces.bytes === 0) return last;
    pieces.push(last);
    return pieces.take();
  };

  return {
    push: (raw) => {
      const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.length);
      let from = 0;
      for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, from)) {
        if (!give(joined(bytes.subarray(from, end)))) return false;
        from = end + 1;
      }
      if (from < bytes.length) pieces.push(bytes.subarray(from));
      return pieces.bytes <= LINE_BYTES_MAX;
    },
    close: () => pieces.bytes === 0 || give(joined(Buffer.alloc(0))),
  };
}
