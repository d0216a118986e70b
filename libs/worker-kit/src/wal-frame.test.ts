import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { FRAME, FrameBuffer, readFrames, type Frame } from './wal-frame.js';

const LAST_SEQ = 2 ** 48 - 1;
const record = fc.record({ kind: fc.constantFrom(...Object.values(FRAME)), seq: fc.integer({ min: 0, max: LAST_SEQ }), payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) });
type Recorded = Pick<Frame, 'seq' | 'payload'> & { readonly kind: (typeof FRAME)[keyof typeof FRAME] };

function written(records: readonly Recorded[]): Buffer {
  const frames = new FrameBuffer();
  for (const { kind, seq, payload } of records) frames.add(kind, seq, payload);
  return Buffer.from(frames.bytes());
}

function read(bytes: Buffer): { frames: Frame[]; damaged: number } {
  const frames: Frame[] = [];
  return { damaged: readFrames(bytes, (frame) => frames.push(frame)), frames };
}

test('frames are read as they were written, also if the buffer had to grow', () => {
  fc.assert(fc.property(fc.array(record, { maxLength: 20 }), (records) => expect(read(written(records))).toEqual({ frames: records, damaged: 0 })));
  const large = [{ kind: FRAME.end, seq: 1, payload: Buffer.alloc(200_000, 7) }, { kind: FRAME.check, seq: 0, payload: Buffer.alloc(0) }];
  expect(read(written(large))).toEqual({ frames: large, damaged: 0 });
});

test('a tail that is torn off anywhere loses only its own frame, and counts as damage unless the whole frame is gone', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 5 }), record, fc.nat(), (records, last, nat) => {
      const bytes = written([...records, last]);
      const whole = written(records).length;
      const cut = whole + (nat % (bytes.length - whole));
      expect(read(bytes.subarray(0, cut))).toEqual({ frames: records, damaged: cut === whole ? 0 : 1 });
    }),
  );
});

test('a frame with a wrong byte anywhere is skipped, and all others are read', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 4 }), record, fc.array(record, { maxLength: 4 }), fc.nat(), fc.integer({ min: 1, max: 255 }), (before, hit, after, nat, flip) => {
      const bytes = written([...before, hit, ...after]);
      const from = written(before).length;
      const at = from + (nat % written([hit]).length);
      bytes[at] = (bytes[at] ?? 0) ^ flip;
      expect(read(bytes)).toEqual({ frames: [...before, ...after], damaged: 1 });
    }),
  );
});
