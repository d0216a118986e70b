/** A disk that outlives its processes. A kill may strike before, within or after a write. */
import type { SegmentFile, SegmentWriter, WalDisk, WriterIdentity } from '@signalbox/worker-kit/proof';
import { FRAME, readFrames } from '@signalbox/worker-kit/proof';
import type { Life } from './life.js';

interface Segment {
  bytes: Buffer;
  isCold: boolean;
}

export type KillAt = 'before' | 'torn' | 'after';

/** Thrown into a process that has been killed; its reaction has no effect. */
class Killed extends Error {}

export class SimDisk {
  readonly segments = new Map<number, Segment>();
  isFull = false;
  /** Number of writes until the process is killed. */
  killAtWrite: { left: number; readonly where: KillAt } | undefined;
  private identity: WriterIdentity | undefined;

  constructor(
    private readonly name: string,
    private readonly onKill: () => void,
  ) {}

  /** The disk as one process sees it. */
  openFor(life: Life): WalDisk {
    return {
      identity: (provider) => (this.identity ??= { writer: `wrt_${this.name}`, provider }),
      // Whole only if empty, since no process here ends in an orderly way.
      isWhole: () => this.segments.size === 0,
      setTorn: () => undefined,
      lock: () => () => undefined,
      list: () => [...this.segments].map(([number, { isCold }]): SegmentFile => ({ number, path: String(number), isCold })).sort((a, b) => a.number - b.number),
      read: ({ number }, onFrame) => readFrames(this.segments.get(number)?.bytes ?? Buffer.alloc(0), onFrame),
      firstSeq: ({ number }) => {
        let first: number | undefined;
        readFrames(this.segments.get(number)?.bytes.subarray(0, 256) ?? Buffer.alloc(0), ({ kind, seq }) => {
          if (kind === FRAME.head) first ??= seq;
        });
        return first;
      },
      create: (number, head) => this.create(life, number, head),
      cool: (number) => {
        const segment = this.segments.get(number);
        if (segment !== undefined && !life.isDead) segment.isCold = true;
      },
      // Runs are too short for pruning.
      prune: () => undefined,
      // The disk is full of other files.
      makeRoom: () => false,
    };
  }

  private create(life: Life, number: number, head: Buffer): SegmentWriter {
    if (this.segments.has(number)) throw new Error('EEXIST');
    if (this.isFull) throw new Error('ENOSPC');
    const segment: Segment = { bytes: Buffer.from(head), isCold: false };
    this.segments.set(number, segment);
    return {
      number,
      get bytes() {
        return segment.bytes.length;
      },
      append: (frames) => this.append(life, segment, frames),
      sync: (done) => done(),
      close: () => undefined,
    };
  }

  private append(life: Life, segment: Segment, frames: Buffer): void {
    if (life.isDead) throw new Killed();
    if (this.isFull) throw new Error('ENOSPC');
    const plan = this.killAtWrite;
    if (plan !== undefined) plan.left -= 1;
    const where = plan !== undefined && plan.left <= 0 ? plan.where : undefined;
    if (where !== undefined) this.killAtWrite = undefined;
    if (where !== 'before') segment.bytes = Buffer.concat([segment.bytes, where === 'torn' ? frames.subarray(0, Math.max(1, frames.length - 9)) : frames]);
    if (where === undefined) return;
    this.onKill();
    throw new Killed();
  }
}
