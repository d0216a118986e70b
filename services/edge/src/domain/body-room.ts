/** Bounds the memory of large bodies, in all and for each account (ADR 65, 108). They lie outside the heap, where nothing else limits their sum. */

/** Bodies up to this size are not counted: even many of them need little memory. */
const SMALL_BYTES = 65_536;
/** One account may take at most 1/2 of the room. */
const LEFT_TO_OTHERS = 2;

export interface BodyPlace {
  /** Counts further bytes of the request; false = there is no room to keep them, and they are not counted. */
  take(bytes: number): boolean;
  /** True if bytes are counted here, which those of small bodies are not. */
  isCounted(): boolean;
  /** To be called when the request is over. */
  leave(): void;
}

export interface BodyRoom {
  enter(accountId: string): BodyPlace;
}

/** `bytesMax`: for all requests in work together, from their first byte until they are answered. */
export function createBodyRoom(bytesMax: number): BodyRoom {
  /** Bytes by account; no entry = 0. */
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
          const added = bytes + more <= SMALL_BYTES ? 0 : bytes + more - counted;
          if (added > 0 && (total + added > bytesMax || (byAccount.get(accountId) ?? 0) + added > bytesMax / LEFT_TO_OTHERS)) return false;
          bytes += more;
          if (added > 0) count(accountId, added);
          counted += added;
          return true;
        },
        isCounted: () => counted > 0,
        leave: () => {
          if (counted > 0) count(accountId, -counted);
          counted = 0;
        },
      };
    },
  };
}
