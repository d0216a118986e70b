import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { fileURLToPath } from 'node:url';
import { loaderOptions } from '../loader-options.mjs';
import { messageCodec } from './load.js';

const PROTO_DIR = fileURLToPath(new URL('../../../proto', import.meta.url));
const AREAS = ['common', 'link', 'quota', 'routing', 'accounts', 'billing', 'worker', 'events', 'sandbox', 'plugins'];
const root = new protobuf.Root();
root.resolvePath = (_origin, target) => `${PROTO_DIR}/${target}`;
root.loadSync(AREAS.map((area) => `${area}/v1/${area}.proto`)).resolveAll();
const types = AREAS.flatMap((area) => root.lookup(`signalbox.${area}.v1`) ?? [])
  .flatMap((namespace) => (namespace instanceof protobuf.Namespace ? namespace.nestedArray : []))
  .filter((one) => one instanceof protobuf.Type);

const text = fc.oneof(fc.constant(''), fc.string({ unit: 'grapheme', maxLength: 120 }), fc.string({ maxLength: 400 }));
const int64 = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.bigInt({ min: -1_000n, max: 1_000n }), fc.constantFrom(2n ** 31n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n, 999_999_999_999_999n)).map(String);
const uint32 = fc.oneof(fc.constantFrom(0, 1, 127, 128, 16_383, 16_384, 0xffffffff), fc.nat());

function valueOf(field: protobuf.Field, depth: number): fc.Arbitrary<unknown> {
  const type = field.resolvedType;
  if (type instanceof protobuf.Enum) return fc.constantFrom(...Object.keys(type.values));
  if (type !== null) return messageOf(type, depth + 1);
  switch (field.type) {
    case 'string':
      return text;
    case 'bytes':
      return fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
    case 'int64':
      return int64;
    case 'uint32':
      return uint32;
    case 'bool':
      return fc.boolean();
    default:
      // Minus zero is zero to every reader of a contract, and is not written.
      return fc.double({ noNaN: true }).map((value) => value + 0);
  }
}

/** Any subset of the fields; of a oneof at most one member. */
function messageOf(type: protobuf.Type, depth = 0): fc.Arbitrary<Record<string, unknown>> {
  const fields = type.fieldsArray;
  const shapes = Object.fromEntries(fields.map((field) => [field.name, field.repeated ? fc.array(valueOf(field, depth), { maxLength: 4 }) : valueOf(field, depth)]));
  return fc.record(shapes, { requiredKeys: [] }).map((message) => {
    const kept: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(message)) {
      const group = type.fields[name]?.partOf;
      if (group !== null && group !== undefined && group.oneof.some((other) => Object.hasOwn(kept, other))) continue;
      kept[name] = value;
    }
    return kept;
  });
}

/** What protobufjs makes of it, without the markers of optional fields, which ours does not write. */
function withoutMarkers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarkers);
  if (value === null || typeof value !== 'object' || Buffer.isBuffer(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name, one]) => !name.startsWith('_') && one !== undefined).map(([name, one]) => [name, withoutMarkers(one)]));
}

describe('every message of proto/', () => {
  test.each(types.map((type) => [type.fullName.slice(1), type] as const))('%s reads and writes as protobufjs does', (name, type) => {
    const codec = messageCodec(name);
    fc.assert(
      fc.property(messageOf(type), (message) => {
        const theirs = Buffer.from(type.encode(type.fromObject(message)).finish());
        const expected = withoutMarkers(type.toObject(type.decode(theirs), loaderOptions));
        expect(withoutMarkers(codec.decode(theirs))).toEqual(expected);
        expect(withoutMarkers(type.toObject(type.decode(codec.encode(message)), loaderOptions))).toEqual(expected);
        expect(codec.copy(message)).toEqual(codec.decode(codec.encode(message)));
      }),
      { numRuns: 12 },
    );
  });

  test.each(types.map((type) => [type.fullName.slice(1), type] as const))('%s refuses or survives any cut and any bytes', (name, type) => {
    const codec = messageCodec(name);
    fc.assert(
      fc.property(messageOf(type), fc.nat(), fc.uint8Array({ maxLength: 60 }), (message, cut, noise) => {
        const whole = codec.encode(message);
        for (const bytes of [whole.subarray(0, cut % (whole.length + 1)), Buffer.from(noise)]) {
          try {
            codec.decode(bytes);
          } catch (error) {
            expect(error).toBeInstanceOf(RangeError);
          }
        }
      }),
      { numRuns: 6 },
    );
  });
});

describe('the writer', () => {
  test('gives views that later messages leave alone, over any number of slabs', () => {
    const codec = messageCodec<{ name: string; value: Buffer }, { name: string; value: Buffer }>('signalbox.worker.v1.Field');
    const written = Array.from({ length: 300 }, (_, i) => ({ name: `field ${i}`, value: Buffer.alloc((i * 977) % 70_000, i % 256) }));
    const encoded = written.map((message) => codec.encode(message));
    encoded.forEach((bytes, i) => {
      const { name, value } = codec.decode(bytes);
      expect(name).toBe(written[i]?.name);
      expect(value.equals(written[i]?.value ?? Buffer.alloc(0))).toBe(true);
    });
  });

  test('refuses an integer that does not fit, and goes on with the next message', () => {
    const codec = messageCodec<object, { reservedAtMs: string }>('signalbox.common.v1.PeriodSet');
    expect(() => codec.encode({ day: 'half a message', reservedAtMs: String(2n ** 63n) })).toThrow(RangeError);
    expect(() => codec.encode({ reservedAtMs: '1.5' })).toThrow(SyntaxError);
    expect(codec.decode(codec.encode({ reservedAtMs: '7' }))).toEqual({ day: '', week: '', month: '', plan: '', reservedAtMs: '7' });
  });

  test('refuses a 32-bit field that holds more, instead of cutting it down', () => {
    const codec = messageCodec<object, { outputText: number }>('signalbox.common.v1.TokenCounts');
    const [tag = 0] = codec.encode({ outputText: 1 });
    const of = (...varint: number[]): Buffer => Buffer.from([tag, ...varint]);
    expect(codec.decode(of(0xff, 0xff, 0xff, 0xff, 0x0f)).outputText).toBe(0xffffffff);
    expect(() => codec.decode(of(0x80, 0x80, 0x80, 0x80, 0x10))).toThrow(RangeError);
    expect(() => codec.decode(of(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10))).toThrow(RangeError);
  });

  test('passes over fields of a newer peer', () => {
    const codec = messageCodec<object, object>('signalbox.common.v1.FaultDetail');
    const bytes = Buffer.concat([codec.encode({ code: 'x' }), Buffer.from([0xa5, 0x06, 1, 2, 3, 4]), Buffer.from([0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8]), Buffer.from([0xa0, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01])]);
    expect(codec.decode(bytes)).toEqual({ code: 'x', message: '', retryAfterMs: 0 });
  });
});
