/** How many requests are let in at once, and how many of them one account may have (FAILURES: one tenant cannot starve others; ADR 73). */
import { Shares } from '@signalbox/kernel/shares';

/** Below it nothing is shed (contract, section 1). */
const NEVER_SHED_MAX = 1_000;
/** Of requests that are not whole one account has no more than are free: half of them, where others are there. They cost whoever sends them nothing. */
const ARRIVING_TIMES_FREE_MAX = 1;
/** Whose key is looked up. */
const NOBODY_YET = '';

export interface RequestPlaces {
  /** True while nothing more is let in, whosever it is. */
  isFull(): boolean;
  /** Requests that are not whole. */
  arriving(): number;
  /** For a request whose body is on its way, or whose key is looked up; nobody knows its account then. Answers what gives the place back, which is safe to call twice; undefined = there is none. */
  arrive(accountId?: string): (() => void) | undefined;
  /** For one that came whole; false = there is none. */
  begin(accountId: string): boolean;
  /** Gives back what `begin` took. */
  end(accountId: string): void;
}

/** `placesMax` for requests in work, and as many for those that are not whole. */
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
      // Nearly all come whole at once: an account that does is one whose next body may be on its way.
      arriving.meet(accountId);
      if (!hasRoom(working, accountId)) return false;
      working.take(accountId);
      return true;
    },
    end: (accountId) => working.leave(accountId),
  };
}
