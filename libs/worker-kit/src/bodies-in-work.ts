/** Room for large bodies: they lie outside of the heap, and many edges may send theirs to one worker. */
import { Fault } from '@signalbox/kernel/fault';
import { totalmem } from 'node:os';

/** Bodies up to this size are not counted: a whole crowd of them is little. */
const SMALL_BYTES = 65_536;
const ROOM_BYTES_MAX = 1_024 * 1_024 * 1_024;
/** Of the memory that this process may have: a body is there as it came, as it is sent on, and while it is rewritten once or twice between. */
const ROOM_SHARE = 1 / 6;

export interface BodiesInWork {
  /** Throws Fault `overloaded` where there is no room for a body of `bytes` beside those in work; alone it always has some. Answers what gives the room back, to be called once. */
  enter(bytes: number): () => void;
  bytes(): number;
}

const NOTHING = (): void => undefined;

/** Bytes that bodies in work may come to in this process. */
export function bodiesBytesMax(memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)): number {
  return Math.min(ROOM_BYTES_MAX, Math.floor(memoryBytes * ROOM_SHARE));
}

export function createBodiesInWork(bytesMax: number): BodiesInWork {
  let total = 0;
  return {
    enter: (bytes) => {
      if (bytes <= SMALL_BYTES) return NOTHING;
      if (total > 0 && total + bytes > bytesMax) throw new Fault('overloaded', 'too many large bodies are in work');
      total += bytes;
      return () => {
        total -= bytes;
      };
    },
    bytes: () => total,
  };
}
