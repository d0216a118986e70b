/** Bounds the memory of large bodies: they lie outside the heap, where nothing else limits their sum (FAILURES: heap, per-tenant share). */

/** Bodies up to this size are not counted: even many of them are little. */
const SMALL_BYTES = 65_536;
/** One account leaves this share of the room to the others. */
const LEFT_TO_OTHERS = 2;

export interface BodyPlace {
  /** Bytes of the body have come; false = they may not be kept. */
  take(bytes: number): boolean;
  /** The request is over. */
  leave(): void;
}

export interface BodyRoom {
  enter(accountId: string): BodyPlace;
}

/** `bytesMax` for all requests in work together, from their first byte until they are answered. */
export function createBodyRoom(bytesMax: number): BodyRoom {
  /** Bytes by account, of those alone that have any. */
  const byAccount = new Map<string, number>(); // kept: ids and numbers alone.
  let total = 0;
  const count = (accountId: string, by: number): void => {
    const now = (byAccount.get(accountId) ?? 0) + by;
    total += by;
    if (now === 0) byAccount.delete(accountId);
    else byAccount.set(accountId, now);
  };
  return {
    enter: (accountId) => {
      let bytes = 0;
      let counted = 0;
      return {
        take: (more) => {
          bytes += more;
          if (bytes <= SMALL_BYTES) return true;
          const added = bytes - counted;
          if (total + added > bytesMax || (byAccount.get(accountId) ?? 0) + added > bytesMax / LEFT_TO_OTHERS) return false;
          count(accountId, added);
          counted = bytes;
          return true;
        },
        leave: () => {
          if (counted > 0) count(accountId, -counted);
          counted = 0;
        },
      };
    },
  };
}
