import { describe, expect, test } from '@jest/globals';
import { messageCodec } from '@signalbox/contracts/load';
import fc from 'fast-check';
import { decodeBatch, encodeBatch } from './link-codec.js';
import { LinkItem } from './link-item.js';

interface WireItem {
  readonly call: number;
  readonly kind: string;
  readonly method: string;
  readonly deadlineMs: number;
  readonly requestId: string;
  readonly traceparent: string;
  readonly payload: Buffer;
  readonly more: boolean;
  readonly creditBytes: number;
  readonly fault: { readonly code: string; readonly message: string; readonly retryAfterMs: number } | null;
}

const reference = messageCodec<{ items: readonly WireItem[] }, { items: readonly WireItem[] }>('signalbox.link.v1.Batch');
const KINDS = ['ITEM_KIND_UNSPECIFIED', 'OPEN', 'MESSAGE', 'END', 'FAULT', 'CANCEL', 'CREDIT', 'GOAWAY'];

const uint32 = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffffffff }));
const text = fc.string({ unit: 'binary', maxLength: 80 }).filter((value) => Buffer.from(value).toString() === value);
const bytes = fc.uint8Array({ maxLength: 300 }).map((value) => Buffer.from(value));

const anyItem = fc
  .record({
    call: uint32,
    kind: fc.integer({ min: 0, max: 7 }),
    method: text,
    deadlineMs: uint32,
    requestId: text,
    traceparent: text,
    payload: bytes,
    more: fc.boolean(),
    creditBytes: uint32,
    fault: fc.option(fc.record({ code: text, message: text, retryAfterMs: uint32 }), { nil: undefined }),
  })
  .map((fields) => Object.assign(new LinkItem(0, 0), fields));

function toWire(item: LinkItem): WireItem {
  const { call, method, deadlineMs, requestId, traceparent, payload, more, creditBytes } = item;
  return { call, kind: KINDS[item.kind] ?? '', method, deadlineMs, requestId, traceparent, payload: Buffer.from(payload), more, creditBytes, fault: item.fault === undefined ? null : { ...item.fault } };
}

describe('the Batch codec', () => {
  test('writes what protobuf reads', () => {
    fc.assert(
      fc.property(fc.array(anyItem, { maxLength: 8 }), (items) => {
        const read = reference.decode(encodeBatch(items)).items ?? [];
        expect(read.map((item) => ({ ...item, payload: Buffer.from(item.payload) }))).toEqual(items.map(toWire));
      }),
    );
  });

  test('reads what protobuf writes', () => {
    fc.assert(
      fc.property(fc.array(anyItem, { maxLength: 8 }), (items) => {
        expect(decodeBatch(reference.encode({ items: items.map(toWire) })).map(toWire)).toEqual(items.map(toWire));
      }),
    );
  });

  test('passes over unknown fields of every wire type', () => {
    const known = encodeBatch([Object.assign(new LinkItem(7, 2), { payload: Buffer.from('x') })]);
    const inner = Buffer.concat([Buffer.from([0xf8, 0x01, 0x96, 0x01, 0xf9, 0x01, 1, 2, 3, 4, 5, 6, 7, 8, 0xfa, 0x01, 2, 9, 9, 0xfd, 0x01, 1, 2, 3, 4]), known.subarray(2)]);
    const batch = Buffer.concat([Buffer.from([0x12, 1, 0, 0x0a, inner.length]), inner]);
    expect(decodeBatch(batch).map(toWire)).toEqual([toWire(Object.assign(new LinkItem(7, 2), { payload: Buffer.from('x') }))]);
  });

  test('refuses any bytes that are no batch with a Fault and nothing else', () => {
    fc.assert(
      fc.property(bytes, (garbage) => {
        try {
          decodeBatch(garbage);
        } catch (error) {
          expect(error).toMatchObject({ name: 'Fault', code: 'bad_message' });
        }
      }),
    );
  });
});
