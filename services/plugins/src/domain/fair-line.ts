/** Places that accounts share: whoever has the fewest goes first. */

export interface FairLine {
  /** Resolves true with a place; false when the signal was first, or the account has too many in line. */
  enter(accountId: string, signal: AbortSignal): Promise<boolean>;
  /** Gives back a place that `enter` gave. */
  leave(accountId: string): void;
}

export function createFairLine({ placesMax, waitingOfAccountMax }: { readonly placesMax: number; readonly waitingOfAccountMax: number }): FairLine {
  /** Places taken by account, those alone that have any. */
  const running = new Map<string, number>();
  let total = 0;
  /** In the order of arrival. */
  const waiting = new Set<{ readonly accountId: string; readonly go: () => void }>();
  const count = (accountId: string, by: number): void => {
    const now = (running.get(accountId) ?? 0) + by;
    total += by;
    if (now === 0) running.delete(accountId);
    else running.set(accountId, now);
  };

  /** False when the signal was first, or the account has too many in line. */
  const enter = (accountId: string, signal: AbortSignal): Promise<boolean> => {
    if (signal.aborted) return Promise.resolve(false);
    if (total < placesMax) {
      count(accountId, 1);
      return Promise.resolve(true);
    }
    if ([...waiting].filter((one) => one.accountId === accountId).length >= waitingOfAccountMax) return Promise.resolve(false);
    return new Promise((resolve) => {
      const stop = (): void => {
        waiting.delete(place);
        resolve(false);
      };
      const place = {
        accountId,
        go: (): void => {
          waiting.delete(place);
          signal.removeEventListener('abort', stop);
          count(accountId, 1);
          resolve(true);
        },
      };
      waiting.add(place);
      signal.addEventListener('abort', stop, { once: true });
    });
  };
  /** The next is the first in line of the account with the fewest places: no account keeps the others out. */
  const leave = (accountId: string): void => {
    count(accountId, -1);
    let next: { readonly accountId: string; readonly go: () => void } | undefined;
    for (const one of waiting) if (next === undefined || (running.get(one.accountId) ?? 0) < (running.get(next.accountId) ?? 0)) next = one;
    next?.go();
  };

  return { enter, leave };
}
