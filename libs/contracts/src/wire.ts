/** Reading and writing protobuf (https://protobuf.dev/programming-guides/encoding), for the generated codecs. */

import { knownText } from './known-text.js';

export const NO_BYTES: Buffer = Buffer.alloc(0);

/** Fresh space is taken in slabs of this size; encoded messages are views of them. */
const SLAB_BYTES = 64 * 1024;
/** A varint of 64 bits. */
const VARINT_BYTES_MAX = 10;
const LENGTH_BYTES_MAX = 5;
/** Up to this many characters, a loop is faster than a call into native code. */
const SHORT_TEXT = 64;
const TWO_32 = 4_294_967_296;
/** Every integer with up to this many digits is exact in a double. */
const SAFE_DIGITS = 15;

/** A 64-bit integer as the contracts carry it: decimal text, or a safe integer. */
export type Int64 = number | string | { toString(): string };

export function isZero(value: Int64): boolean {
  return value === '0' || value === 0 || value === '';
}

/** The value of plain decimal text of at most 15 digits; −1 for any other text. */
function smallNatural(text: string): number {
  const { length } = text;
  if (length === 0 || length > SAFE_DIGITS) return -1;
  let value = 0;
  for (let i = 0; i < length; i += 1) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/** Appends to a slab that all messages of this process share. Not re-entrant: one message is written completely before the next begins. */
export class Writer {
  private slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  private start = 0;
  private at = 0;

  /** The bytes written since the last call, as a view nobody else writes to. */
  finish(): Buffer {
    const message = this.slab.subarray(this.start, this.at);
    this.start = this.at;
    return message;
  }

  /** Discards what was written since the last `finish`. */
  abandon(): void {
    this.at = this.start;
  }

  uint32(value: number): void {
    this.room(LENGTH_BYTES_MAX);
    this.varint32(value >>> 0);
  }

  bool(value: boolean): void {
    this.room(1);
    this.slab[this.at] = value ? 1 : 0;
    this.at += 1;
  }

  double(value: number | string): void {
    this.room(8);
    this.at = this.slab.writeDoubleLE(Number(value), this.at);
  }

  /** Throws RangeError outside −2^63…2^63−1, SyntaxError on text that is no integer. */
  int64(value: Int64): void {
    this.room(VARINT_BYTES_MAX);
    const text = typeof value === 'string' ? value : value.toString();
    const small = smallNatural(text);
    if (small >= 0) {
      if (small < TWO_32) this.varint32(small);
      else this.varint64(small % TWO_32, Math.floor(small / TWO_32));
      return;
    }
    const wide = BigInt(text);
    const wrapped = BigInt.asUintN(64, wide);
    if (BigInt.asIntN(64, wide) !== wide) throw new RangeError('An integer does not fit into 64 bits.');
    this.varint64(Number(wrapped & 0xffffffffn), Number(wrapped >> 32n));
  }

  string(text: string): void {
    // Read once: V8 has several internal kinds of string, and each read of `length` costs as much as a few characters.
    const { length } = text;
    if (length <= SHORT_TEXT) {
      this.room(1 + SHORT_TEXT);
      const { slab } = this;
      const start = this.at + 1;
      let i = 0;
      for (; i < length; i += 1) {
        const code = text.charCodeAt(i);
        if (code > 0x7f) break;
        slab[start + i] = code;
      }
      if (i === length) {
        slab[this.at] = length;
        this.at = start + length;
        return;
      }
    }
    // The length is filled in afterwards, which saves a separate pass over the text to measure it.
    this.room(LENGTH_BYTES_MAX + length * 3);
    const at = this.open();
    this.at += this.slab.write(text, this.at, 'utf8');
    this.close(at);
  }

  bytes(bytes: Uint8Array | string): void {
    if (typeof bytes === 'string') throw new TypeError('Bytes are not given as text.');
    this.room(LENGTH_BYTES_MAX + bytes.length);
    this.varint32(bytes.length);
    this.slab.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Appends fields that are already encoded. */
  fields(encoded: Uint8Array): void {
    this.room(encoded.length);
    this.slab.set(encoded, this.at);
    this.at += encoded.length;
  }

  /** Begins a length-delimited part; pass the result to `close`. */
  open(): number {
    this.room(1);
    this.at += 1;
    return this.at - this.start;
  }

  close(opened: number): void {
    const from = this.start + opened;
    const length = this.at - from;
    if (length < 0x80) {
      this.slab[from - 1] = length;
      return;
    }
    const extra = length < 0x4000 ? 1 : length < 0x200000 ? 2 : length < 0x10000000 ? 3 : 4;
    this.room(extra);
    // `room` may have moved the message to another slab.
    const at = this.start + opened;
    this.slab.copyWithin(at + extra, at, this.at);
    const end = this.at + extra;
    this.at = at - 1;
    this.varint32(length);
    this.at = end;
  }

  private room(bytes: number): void {
    if (this.at + bytes <= this.slab.length) return;
    const written = this.at - this.start;
    const slab = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, (written + bytes) * 2));
    this.slab.copy(slab, 0, this.start, this.at);
    this.slab = slab;
    this.start = 0;
    this.at = written;
  }

  private varint32(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.slab[this.at] = (rest & 0x7f) | 0x80;
      this.at += 1;
      rest >>>= 7;
    }
    this.slab[this.at] = rest;
    this.at += 1;
  }

  private varint64(low: number, high: number): void {
    let lo = low >>> 0;
    let hi = high >>> 0;
    while (hi > 0) {
      this.slab[this.at] = (lo & 0x7f) | 0x80;
      this.at += 1;
      lo = ((lo >>> 7) | (hi << 25)) >>> 0;
      hi >>>= 7;
    }
    this.varint32(lo);
  }
}

/** Reads one message and checks that it stays inside it. Throws RangeError on bytes that are not a message. */
export class Reader {
  at = 0;
  constructor(private readonly data: Buffer) {}

  uint32(): number {
    const { data } = this;
    const first = data[this.at] ?? fail();
    this.at += 1;
    if (first < 0x80) return first;
    let value = first & 0x7f;
    for (let shift = 7; shift < 70; shift += 7) {
      const byte = data[this.at] ?? fail();
      this.at += 1;
      // A value that does not fit is rejected, not truncated: it may be money.
      if (shift > 28 ? (byte & 0x7f) !== 0 : shift === 28 && (byte & 0x70) !== 0) fail();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    return fail();
  }

  bool(): boolean {
    return this.uint32() !== 0;
  }

  double(): number {
    if (this.at + 8 > this.data.length) fail();
    const value = this.data.readDoubleLE(this.at);
    this.at += 8;
    return value;
  }

  int64(): string {
    const { data } = this;
    const first = data[this.at] ?? fail();
    if (first === 0) {
      this.at += 1;
      return '0';
    }
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = data[this.at] ?? fail();
      this.at += 1;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high |= bits >>> 4;
      } else high |= bits << (shift - 32);
      if (byte < 0x80) return int64Text(low >>> 0, high >>> 0);
    }
    return fail();
  }

  string(end: number): string {
    const stop = this.delimited(end);
    const { at } = this;
    this.at = stop;
    return knownText(this.data, at, stop);
  }

  /** A view of the message's bytes, not a copy. */
  bytes(end: number): Buffer {
    const stop = this.delimited(end);
    const bytes = this.data.subarray(this.at, stop);
    this.at = stop;
    return bytes;
  }

  /** Reads the length of a part and returns where the part ends. Throws if that is beyond `end`. */
  delimited(end: number): number {
    const length = this.uint32();
    if (this.at + length > end) fail();
    return this.at + length;
  }

  /** Skips an unknown field, as a newer peer may send. */
  skip(tag: number, end: number): void {
    switch (tag & 7) {
      case 0:
        this.int64();
        break;
      case 1:
        this.at += 8;
        break;
      case 2:
        this.at = this.delimited(end);
        break;
      case 5:
        this.at += 4;
        break;
      default:
        fail();
    }
  }

  /** Called at the end of a part; throws if reading ran past it. */
  check(end: number): void {
    if (this.at !== end) fail();
  }
}

/** The text that `Reader.int64` would return for this value. Throws like `Writer.int64`. */
export function copyInt64(value: Int64): string {
  const text = typeof value === 'string' ? value : value.toString();
  if (smallNatural(text) >= 0) return text.length === 1 || text.charCodeAt(0) !== 0x30 ? text : String(smallNatural(text));
  const wide = BigInt(text);
  if (BigInt.asIntN(64, wide) !== wide) throw new RangeError('An integer does not fit into 64 bits.');
  return wide.toString();
}

/** The same bytes as a Buffer. They are shared, not copied: nobody changes a message once it is sent. */
export function copyBytes(bytes: Uint8Array | string): Buffer {
  if (typeof bytes === 'string') throw new TypeError('Bytes are not given as text.');
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function fail(): never {
  throw new RangeError('The bytes are not a valid message of this type.');
}

function int64Text(low: number, high: number): string {
  if (high === 0) return String(low);
  if (high < 0x200000) return String(high * TWO_32 + low);
  return BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low)).toString();
}

export interface MessageCodec<Message, Output> {
  encode(message: Message): Buffer;
  /**
   * `encoded`, which holds some fields of such a message, followed by the encoding of `message`. Where both set a field,
   * the later one wins, unless it is absent or its default; sub-messages are merged and lists concatenated
   * (https://protobuf.dev/programming-guides/encoding/#last-one-wins).
   */
  encodeBehind(encoded: Uint8Array, message: Message): Buffer;
  /** Throws on bytes that are not such a message. Fields of type `bytes` are views of the input. */
  decode(bytes: Uint8Array): Output;
  /** Same result as `decode(encode(message))`, for a receiver in this process; fields of type `bytes` are shared. Throws like `encode`. */
  copy(message: Message): Output;
}

const writer = new Writer();

/** Builds the codec of one message type from its three functions. */
export function messageCodec<Message, Output>(write: (w: Writer, message: Message) => void, read: (r: Reader, end: number) => Output, copy: (message: Message) => Output): MessageCodec<Message, Output> {
  const encodeBehind = (encoded: Uint8Array, message: Message): Buffer => {
    try {
      if (encoded.length > 0) writer.fields(encoded);
      write(writer, message);
      return writer.finish();
    } catch (error) {
      writer.abandon();
      throw error;
    }
  };
  return {
    encode: (message) => encodeBehind(NO_BYTES, message),
    encodeBehind,
    decode: (bytes) => {
      const data = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      return read(new Reader(data), data.length);
    },
    copy,
  };
}

/** An RPC in the form that grpc-js takes. */
export interface Rpc {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: boolean;
  readonly requestSerialize: (message: object) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => object;
  readonly responseSerialize: (message: object) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => object;
  readonly requestCopy: (message: object) => object;
  readonly responseCopy: (message: object) => object;
}

export function rpc<Request extends object, RequestOut extends object, Response extends object, ResponseOut extends object>(path: string, request: MessageCodec<Request, RequestOut>, response: MessageCodec<Response, ResponseOut>, responseStream: boolean): Rpc {
  return {
    path,
    requestStream: false,
    responseStream,
    // The types of an RPC are checked where it is called and where it is handled.
    requestSerialize: request.encode as (message: object) => Buffer,
    requestDeserialize: request.decode,
    responseSerialize: response.encode as (message: object) => Buffer,
    responseDeserialize: response.decode,
    requestCopy: (message) => request.copy(message as Request),
    responseCopy: (message) => response.copy(message as Response),
  };
}
