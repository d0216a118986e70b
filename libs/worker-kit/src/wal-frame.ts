/**
 * One record of the write-ahead log as bytes, little-endian:
 * marker (4) · length of the payload (4) · crc32 of all that follows (4) · kind (1) · sequence (6) · payload.
 */
import { crc32 } from 'node:zlib';

/** These numbers are on disk: never reuse one. */
export const FRAME = {
  /** First frame of each segment. Payload: the writer's id; sequence: that of the next record. */
  head: 1,
  /** Payload: AttemptEnded with what is known before the provider is called; its tokens are the estimated prompt. */
  start: 2,
  /** Payload: AttemptEnded with only the identity and tokens; sequence 0. */
  check: 3,
  /** Payload: AttemptEnded. */
  end: 4,
  /** Payload: OutcomeTold. */
  outcome: 5,
} as const;
export type FrameKind = (typeof FRAME)[keyof typeof FRAME];

export interface Frame {
  /** Readers skip kinds of later versions. */
  readonly kind: number;
  readonly seq: number;
  /** A view of the bytes that were read, not a copy. */
  readonly payload: Buffer;
}

/** These bytes cannot occur in UTF-8 text, so that after damage the reader finds the beginning of the next frame. */
const MARKER = Buffer.from([0xf8, 0xfb, 0xfe, 0xfa]);
const MARKER_NUMBER = MARKER.readUInt32LE(0);
const LENGTH_AT = 4;
const CRC_AT = 8;
const KIND_AT = 12;
const SEQ_AT = 13;
const SEQ_BYTES = 6;
const PAYLOAD_AT = SEQ_AT + SEQ_BYTES;

/** 64 KiB: what a few hundred attempts write in a turn. */
const BUFFER_BYTES = 65_536;

/** Collects the frames of one write in a buffer that is reused. */
export class FrameBuffer {
  private space = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  private used = 0;
  /** Kind and sequence of the frame being added. */
  private readonly head = Buffer.alloc(1 + SEQ_BYTES);

  add(kind: FrameKind, seq: number, payload: Uint8Array): void {
    const at = this.used;
    const end = at + PAYLOAD_AT + payload.length;
    if (end > this.space.length) this.grow(end);
    const { space, head } = this;
    head[0] = kind;
    head.writeUIntLE(seq, 1, SEQ_BYTES);
    space.writeUInt32LE(MARKER_NUMBER, at);
    space.writeUInt32LE(payload.length, at + LENGTH_AT);
    space.writeUInt32LE(crc32(payload, crc32(head)), at + CRC_AT);
    space.set(head, at + KIND_AT);
    space.set(payload, at + PAYLOAD_AT);
    this.used = end;
  }

  /** What was added since `clear`; valid until the next call. */
  bytes(): Buffer {
    return this.space.subarray(0, this.used);
  }

  clear(): void {
    this.used = 0;
    // Space that grew for a large write must not be kept for ever.
    if (this.space.length > 16 * BUFFER_BYTES) this.space = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  }

  private grow(least: number): void {
    const space = Buffer.allocUnsafeSlow(Math.max(least, this.space.length * 2));
    this.space.copy(space, 0, 0, this.used);
    this.space = space;
  }
}

function frameAt(bytes: Buffer, at: number): Frame | undefined {
  if (at + PAYLOAD_AT > bytes.length || bytes.readUInt32LE(at) !== MARKER_NUMBER) return undefined;
  const end = at + PAYLOAD_AT + bytes.readUInt32LE(at + LENGTH_AT);
  if (end > bytes.length || crc32(bytes.subarray(at + KIND_AT, end)) !== bytes.readUInt32LE(at + CRC_AT)) return undefined;
  return { kind: bytes.readUInt8(at + KIND_AT), seq: bytes.readUIntLE(at + SEQ_AT, SEQ_BYTES), payload: bytes.subarray(at + PAYLOAD_AT, end) };
}

/** Calls back with each valid frame, in order; returns the number of damaged places that were skipped (a torn tail is one). */
export function readFrames(bytes: Buffer, onFrame: (frame: Frame) => void): number {
  let damaged = 0;
  let at = 0;
  let isLost = false;
  while (at < bytes.length) {
    const frame = frameAt(bytes, at);
    if (frame !== undefined) {
      isLost = false;
      at += PAYLOAD_AT + frame.payload.length;
      onFrame(frame);
      continue;
    }
    if (!isLost) damaged += 1;
    isLost = true;
    const next = bytes.indexOf(MARKER, at + 1);
    at = next === -1 ? bytes.length : next;
  }
  return damaged;
}
