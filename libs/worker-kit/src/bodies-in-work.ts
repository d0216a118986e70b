/** Limits the memory of large request bodies: they are outside the JavaScript heap, and many edges may send theirs to one worker. */
import { Fault } from '@signalbox/kernel/fault';
import { totalmem } from 'node:os';

/** Bodies up to this size are not counted: even many of them take little memory. */
const SMALL_BYTES = 65_536;
const ROOM_BYTES_MAX = 1_024 * 1_024 * 1_024;
/** Share of the memory that this process may use. A body exists as received and as sent on, and once or twice more while it is rewritten. */
const ROOM_SHARE = 1 / 6;

export interface BodiesInWork {
  /** Reserves room for a body of `bytes` and returns the function that frees it, to be called once. Throws Fault `overloaded` when there is no room beside the other bodies; a body that is alone always has room. */
  enter(bytes: number): () => void;
  bytes(): number;
}

const NOTHING = (): void => undefined;

/** Total bytes of large bodies that this process may work on at once. */
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
