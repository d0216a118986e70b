/** Hand-written wire codec of link.v1.Batch: it runs for each item, and costs a fraction of the reflective one. */
import { knownText } from '@signalbox/contracts/known-text';
import { Fault } from '@signalbox/kernel/fault';
import { LinkItem, type FaultDetail } from './link-item.js';

function varintLength(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5;
}

function textLength(text: string): number {
  const { length } = text;
  for (let i = 0; i < length; i += 1) if (text.charCodeAt(i) > 0x7f) return Buffer.byteLength(text);
  return length;
}

function bytesFieldLength(length: number): number {
  return length === 0 ? 0 : 1 + varintLength(length) + length;
}

function numberFieldLength(value: number): number {
  return value === 0 ? 0 : 1 + varintLength(value);
}

function faultLength(fault: FaultDetail): number {
  return bytesFieldLength(textLength(fault.code)) + bytesFieldLength(textLength(fault.message)) + numberFieldLength(fault.retryAfterMs);
}

/** Bytes of an item inside a batch, without its own tag and length. */
function itemLength(item: LinkItem): number {
  let length = numberFieldLength(item.call) + numberFieldLength(item.kind) + bytesFieldLength(item.payload.length) + (item.more ? 2 : 0) + numberFieldLength(item.creditBytes);
  if (item.method !== '') length += bytesFieldLength(textLength(item.method));
  if (item.deadlineMs !== 0) length += numberFieldLength(item.deadlineMs);
  if (item.requestId !== '') length += bytesFieldLength(textLength(item.requestId));
  if (item.traceparent !== '') length += bytesFieldLength(textLength(item.traceparent));
  if (item.fault !== undefined) {
    const inner = faultLength(item.fault);
    length += 1 + varintLength(inner) + inner;
  }
  return length;
}

class Writer {
  offset = 0;
  constructor(readonly bytes: Buffer) {}

  varint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.bytes[this.offset] = (rest & 0x7f) | 0x80;
      this.offset += 1;
      rest = Math.floor(rest / 128);
    }
    this.bytes[this.offset] = rest;
    this.offset += 1;
  }

  numberField(tag: number, value: number): void {
    if (value === 0) return;
    this.bytes[this.offset] = tag;
    this.offset += 1;
    this.varint(value);
  }

  textField(tag: number, text: string): void {
    if (text === '') return;
    this.bytes[this.offset] = tag;
    this.offset += 1;
    const length = textLength(text);
    this.varint(length);
    if (length === text.length && length < 64) {
      for (let i = 0; i < length; i += 1) this.bytes[this.offset + i] = text.charCodeAt(i);
    } else {
      this.bytes.write(text, this.offset, 'utf8');
    }
    this.offset += length;
  }

  bytesField(tag: number, payload: Buffer): void {
    if (payload.length === 0) return;
    this.bytes[this.offset] = tag;
    this.offset += 1;
    this.varint(payload.length);
    payload.copy(this.bytes, this.offset);
    this.offset += payload.length;
  }
}

/** Items in order, as one link.v1.Batch, behind `lead` bytes that are left for the caller to fill. */
export function encodeBatch(items: readonly LinkItem[], lead = 0): Buffer {
  let total = lead;
  for (const item of items) {
    item.encodedBytes = itemLength(item);
    total += 1 + varintLength(item.encodedBytes) + item.encodedBytes;
  }
  const out = new Writer(Buffer.allocUnsafe(total));
  out.offset = lead;
  for (const item of items) {
    out.bytes[out.offset] = 0x0a;
    out.offset += 1;
    out.varint(item.encodedBytes);
    out.numberField(0x08, item.call);
    out.numberField(0x10, item.kind);
    out.textField(0x1a, item.method);
    out.numberField(0x20, item.deadlineMs);
    out.textField(0x2a, item.requestId);
    out.textField(0x32, item.traceparent);
    out.bytesField(0x3a, item.payload);
    if (item.more) out.numberField(0x40, 1);
    out.numberField(0x48, item.creditBytes);
    if (item.fault !== undefined) {
      out.bytes[out.offset] = 0x52;
      out.offset += 1;
      out.varint(faultLength(item.fault));
      out.textField(0x0a, item.fault.code);
      out.textField(0x12, item.fault.message);
      out.numberField(0x18, item.fault.retryAfterMs);
    }
  }
  return out.bytes;
}

class Reader {
  offset = 0;
  constructor(readonly bytes: Buffer) {}

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i += 1) {
      const byte = this.bytes[this.offset];
      if (byte === undefined) throw new Fault('bad_message', 'a Link batch ends inside a number');
      this.offset += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new Fault('bad_message', 'a Link batch holds a number of more than 10 bytes');
  }

  /** End of a length-delimited field that starts here, checked against `end`. */
  delimited(end: number): number {
    const length = this.varint();
    if (this.offset + length > end) throw new Fault('bad_message', 'a Link field is longer than its message');
    return this.offset + length;
  }

  text(end: number): string {
    const stop = this.delimited(end);
    const text = knownText(this.bytes, this.offset, stop);
    this.offset = stop;
    return text;
  }

  skip(tag: number, end: number): void {
    switch (tag & 7) {
      case 0:
        this.varint();
        break;
      case 1:
        this.offset += 8;
        break;
      case 2:
        this.offset = this.delimited(end);
        break;
      case 5:
        this.offset += 4;
        break;
      default:
        throw new Fault('bad_message', 'a Link batch holds a field of an unknown wire type');
    }
    this.check(end);
  }

  check(end: number): void {
    if (this.offset > end) throw new Fault('bad_message', 'a Link field is longer than its message');
  }
}

function readFault(reader: Reader, end: number): FaultDetail {
  let code = '';
  let message = '';
  let retryAfterMs = 0;
  while (reader.offset < end) {
    const tag = reader.varint();
    if (tag === 0x0a) code = reader.text(end);
    else if (tag === 0x12) message = reader.text(end);
    else if (tag === 0x18) retryAfterMs = reader.varint();
    else reader.skip(tag, end);
  }
  reader.check(end);
  return { code, message, retryAfterMs };
}

function readItem(reader: Reader, end: number): LinkItem {
  const item = new LinkItem(0, 0);
  while (reader.offset < end) {
    const tag = reader.varint();
    switch (tag) {
      case 0x08:
        item.call = reader.varint();
        break;
      case 0x10:
        item.kind = reader.varint();
        break;
      case 0x1a:
        item.method = reader.text(end);
        break;
      case 0x20:
        item.deadlineMs = reader.varint();
        break;
      case 0x2a:
        item.requestId = reader.text(end);
        break;
      case 0x32:
        item.traceparent = reader.text(end);
        break;
      case 0x3a: {
        const stop = reader.delimited(end);
        item.payload = reader.bytes.subarray(reader.offset, stop);
        reader.offset = stop;
        break;
      }
      case 0x40:
        item.more = reader.varint() !== 0;
        break;
      case 0x48:
        item.creditBytes = reader.varint();
        break;
      case 0x52:
        item.fault = readFault(reader, reader.delimited(end));
        break;
      default:
        reader.skip(tag, end);
    }
  }
  reader.check(end);
  return item;
}

/** Items of a link.v1.Batch; payloads are views of `bytes`. Unknown fields are skipped. Throws a Fault `bad_message`. */
export function decodeBatch(bytes: Buffer): LinkItem[] {
  const reader = new Reader(bytes);
  const items: LinkItem[] = [];
  while (reader.offset < bytes.length) {
    const tag = reader.varint();
    if (tag === 0x0a) items.push(readItem(reader, reader.delimited(bytes.length)));
    else reader.skip(tag, bytes.length);
  }
  return items;
}
