/** Requests that only the holds of other running requests keep from being admitted: they are tried again when a hold ends. */
import type { Clock, Timer } from '@signalbox/kernel/clock';

/** Asks quota for one request again. True = it need not wait any longer. Never rejects. */
export type AskAgain = () => Promise<boolean>;

export interface WaitingRoom {
  /** `ask` is called when there may be room. Returns the function that removes the request. */
  enter(accountId: string, ask: AskAgain): () => void;
  /** A live hold of the account has ended. */
  freed(accountId: string): void;
}

/** Waiting requests are also tried at this interval: a notice of a freed hold can be lost, and leases end without one. */
const LOOK_MS = 250;

interface Waiting {
  readonly asks: Set<AskAgain>;
  isAsking: boolean;
  /** A hold ended while requests were being tried. */
  isFreed: boolean;
  timer: Timer;
}

/** Requests are tried one after the other, oldest first: the room usually serves only a few, so trying all at once would be wasted work. */
export function createWaitingRoom(clock: Clock): WaitingRoom {
  const accounts = new Map<string, Waiting>(); // kept: of accounts at a wall alone.

  const round = async (accountId: string, waiting: Waiting): Promise<void> => {
    if (waiting.isAsking) {
      waiting.isFreed = true;
      return;
    }
    waiting.isAsking = true;
    do {
      waiting.isFreed = false;
      for (const ask of [...waiting.asks]) if (waiting.asks.has(ask) && (await ask())) leave(accountId, waiting, ask);
    } while (waiting.isFreed && waiting.asks.size > 0);
    waiting.isAsking = false;
  };
  const leave = (accountId: string, waiting: Waiting, ask: AskAgain): void => {
    waiting.asks.delete(ask);
    if (waiting.asks.size > 0 || accounts.get(accountId) !== waiting) return;
    waiting.timer.cancel();
    accounts.delete(accountId);
  };
  const look = (accountId: string, waiting: Waiting): void => {
    waiting.timer = clock.setTimer(LOOK_MS, () => {
      look(accountId, waiting);
      void round(accountId, waiting);
    });
  };

  return {
    enter: (accountId, ask) => {
      let waiting = accounts.get(accountId);
      if (waiting === undefined) {
        waiting = { asks: new Set(), isAsking: false, isFreed: false, timer: { cancel: () => undefined } };
        accounts.set(accountId, waiting);
        look(accountId, waiting);
      }
      waiting.asks.add(ask);
      const entered = waiting;
      return () => leave(accountId, entered, ask);
    },
    freed: (accountId) => {
      const waiting = accounts.get(accountId);
      if (waiting !== undefined) void round(accountId, waiting);
    },
  };
}
