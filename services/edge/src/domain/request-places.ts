/** How many requests may be in work at once, and how many of them one account may have (ADR 73). */
import { Shares } from '@signalbox/kernel/shares';

/** Edge promises to serve so many requests at once: below it none is refused for lack of a place. */
const NEVER_SHED_MAX = 1_000;
/** Of the places for requests with incomplete bodies one account may take at most as many as stay free, so half of them. Such requests cost their sender nothing. */
const ARRIVING_TIMES_FREE_MAX = 1;
/** Stands for the account while the key is being looked up. */
const NOBODY_YET = '';

export interface RequestPlaces {
  /** True while no request of any account is accepted. */
  isFull(): boolean;
  /** Requests with incomplete bodies, or whose key is being looked up. */
  arriving(): number;
  /** Takes a place for a request whose body is incomplete, or whose key is being looked up (the account is then unknown). Returns the function that gives it back, which may be called twice; undefined = no place. */
  arrive(accountId?: string): (() => void) | undefined;
  /** Takes a place for a complete request; false = no place. */
  begin(accountId: string): boolean;
  /** Gives back what `begin` took. */
  end(accountId: string): void;
}

/** `placesMax`: for requests in work, and as many again for incomplete ones. */
export function createRequestPlaces(placesMax: number, neverShedMax = NEVER_SHED_MAX): RequestPlaces {
  const working = new Shares(placesMax);
  const arriving = new Shares(placesMax, ARRIVING_TIMES_FREE_MAX);
  const hasRoom = (shares: Shares, accountId: string): boolean => shares.hasRoom(accountId) || (shares.size < placesMax && working.size + arriving.size < neverShedMax);
  return {
    isFull: () => working.size >= placesMax,
    arriving: () => arriving.size,
    arrive: (accountId) => {
      if (accountId === undefined ? arriving.size >= placesMax : !hasRoom(arriving, accountId)) return undefined;
      const caller = accountId ?? NOBODY_YET;
      arriving.take(caller);
      let isOver = false;
      return () => {
        if (!isOver) arriving.leave(caller);
        isOver = true;
      };
    },
    begin: (accountId) => {
      // Most bodies arrive complete. The account is noted as one that may have incomplete ones, too.
      arriving.meet(accountId);
      if (!hasRoom(working, accountId)) return false;
      working.take(accountId);
      return true;
    },
    end: (accountId) => working.leave(accountId),
  };
}
