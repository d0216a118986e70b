/**
 * Frames of a link that has a TCP or TLS connection of its own (ADR 103). A frame is four bytes and its body: one byte of kind,
 * three bytes of the body's length (big-endian), and the body: of a batch, a link.v1.Batch. Before the first frame each side
 * sends one line, `SIGNALBOX-LINK/1 <word>` with a URI-encoded word: the client the gRPC path of the Link, the server its instance.
 */
import { encodeBatch } from './link-codec.js';
import type { LinkItem } from './link-item.js';

/** A frame of an unknown kind, from a newer peer, is ignored. */
export const FRAME = { batch: 0, end: 1, ping: 2, pong: 3 } as const;

const HEAD_BYTES = 4;

/** Names the protocol in the first line, and in TLS's negotiation (ALPN). */
export const PROTOCOL = 'SIGNALBOX-LINK/1';
/** A longer first line is none of ours. */
export const GREETING_BYTES_MAX = 512;

export function greeting(word: string): string {
  return `${PROTOCOL} ${encodeURIComponent(word)}\n`;
}

function decoded(word: string): string | undefined {
  try {
    return decodeURIComponent(word);
  } catch {
    return undefined;
  }
}

/** The word of a first line, and how many bytes the line took; `more`: it may still become one; `other`: another protocol. */
export function readGreeting(bytes: Buffer): { readonly word: string; readonly length: number } | 'more' | 'other' {
  const lead = `${PROTOCOL} `;
  const length = Math.min(bytes.length, lead.length);
  if (bytes.toString('latin1', 0, length) !== lead.slice(0, length)) return 'other';
  const end = bytes.indexOf(0x0a);
  if (end >= GREETING_BYTES_MAX || (end === -1 && bytes.length >= GREETING_BYTES_MAX)) return 'other';
  if (end === -1) return 'more';
  const word = decoded(bytes.toString('latin1', lead.length, end));
  return word === undefined ? 'other' : { word, length: end + 1 };
}

/** A frame without a body. */
export function bareFrame(kind: number): Buffer {
  return Buffer.from([kind, 0, 0, 0]);
}

/** Items as one frame. A batch is a few hundred kilobytes at most (BATCH_BYTES and faults), so three bytes of length are enough. */
export function batchFrame(items: readonly LinkItem[]): Buffer {
  const frame = encodeBatch(items, HEAD_BYTES);
  frame.writeUInt32BE(frame.length - HEAD_BYTES, 0);
  frame[0] = FRAME.batch;
  return frame;
}

/** Cuts a byte stream into frames. */
export class FrameReader {
  /** The beginning of a frame that is not complete. */
  private parts: Buffer[] = [];
  private heldBytes = 0;
  /** Below so many held bytes nothing can be read. */
  private wantedBytes = 0;

  /** The body is a view of `bytes` or of a copy; it may be kept. */
  constructor(private readonly onFrame: (kind: number, body: Buffer) => void) {}

  /** `bytes` is not written to afterwards. */
  push(bytes: Buffer): void {
    let whole = bytes;
    if (this.heldBytes > 0) {
      this.parts.push(bytes);
      this.heldBytes += bytes.length;
      if (this.heldBytes < this.wantedBytes) return;
      whole = Buffer.concat(this.parts, this.heldBytes);
      this.parts = [];
      this.heldBytes = 0;
    }
    let at = 0;
    while (whole.length - at >= HEAD_BYTES) {
      const head = whole.readUInt32BE(at);
      const end = at + HEAD_BYTES + (head & 0xffffff);
      if (end > whole.length) {
        this.hold(whole, at, end - at);
        return;
      }
      this.onFrame(head >>> 24, whole.subarray(at + HEAD_BYTES, end));
      at = end;
    }
    if (at < whole.length) this.hold(whole, at, HEAD_BYTES);
  }

  private hold(bytes: Buffer, at: number, wantedBytes: number): void {
    const rest = bytes.subarray(at);
    this.parts = [rest];
    this.heldBytes = rest.length;
    this.wantedBytes = wantedBytes;
  }
}
