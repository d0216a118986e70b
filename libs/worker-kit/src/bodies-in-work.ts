/** Limits the memory of large request bodies, with the files fetched for them: many edges may send theirs to one worker. */
import { Fault } from '@signalbox/kernel/fault';
import { totalmem } from 'node:os';

/** Bodies and files up to this size are not counted: even many of them take little memory. */
const SMALL_BYTES = 65_536;
const ROOM_BYTES_MAX = 1_024 * 1_024 * 1_024;
/** Share of the memory that this process may use. A body exists as received and as sent on, and once or twice more while it is rewritten. */
const ROOM_SHARE = 1 / 6;

/** The room of one request. */
export interface Room {
  /** Reserves room for `bytes` more, which others decide on: files that were fetched for the request, or the answer of an account's own server. Throws Fault `overloaded` when there is no room beside the other bodies, or when the account has half of all room for such bytes; a request that is alone always has room. */
  grow(bytes: number): void;
  /** Frees all of it; to be called once. */
  leave(): void;
}

export interface BodiesInWork {
  /** Reserves room for a body of `bytes`. Throws Fault `overloaded` when there is no room beside the other bodies; a body that is alone always has room. */
  enter(bytes: number, accountId: string): Room;
  bytes(): number;
}

/** Total bytes of large bodies that this process may work on at once. */
export function bodiesBytesMax(memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)): number {
  return Math.min(ROOM_BYTES_MAX, Math.floor(memoryBytes * ROOM_SHARE));
}

export function createBodiesInWork(bytesMax: number): BodiesInWork {
  let total = 0;
  /** Bytes that the requests of each account have grown by. */
  const grown = new Map<string, number>(); // kept: of requests with files by URL or own addresses; ids and numbers.
  return {
    enter: (bytes, accountId) => {
      if (bytes > SMALL_BYTES && total > 0 && total + bytes > bytesMax) throw new Fault('overloaded', 'too many large bodies are in work');
      let own = bytes > SMALL_BYTES ? bytes : 0;
      let ownGrown = 0;
      total += own;
      return {
        grow: (more) => {
          if (more <= SMALL_BYTES) return;
          const ofAccount = (grown.get(accountId) ?? 0) + more;
          if (total > own && (total + more > bytesMax || ofAccount > bytesMax / 2)) throw new Fault('overloaded', 'too many large files or answers are in work');
          total += more;
          own += more;
          ownGrown += more;
          grown.set(accountId, ofAccount);
        },
        leave: () => {
          total -= own;
          if (ownGrown === 0) return;
          const left = (grown.get(accountId) ?? 0) - ownGrown;
          if (left > 0) grown.set(accountId, left);
          else grown.delete(accountId);
        },
      };
    },
    bytes: () => total,
  };
}
