/** Places that accounts share fairly: the account with the fewest goes first. */

export interface FairLine {
  /** Resolves to true with a place; to false if the signal aborts first, or the account has too many waiting. */
  enter(accountId: string, signal: AbortSignal): Promise<boolean>;
  /** Returns a place obtained by `enter`. */
  leave(accountId: string): void;
}

export function createFairLine({ placesMax, waitingOfAccountMax }: { readonly placesMax: number; readonly waitingOfAccountMax: number }): FairLine {
  /** Number of places taken by account, without zeros. */
  const running = new Map<string, number>();
  let total = 0;
  /** In order of arrival. */
  const waiting = new Set<{ readonly accountId: string; readonly go: () => void }>();
  const count = (accountId: string, by: number): void => {
    const now = (running.get(accountId) ?? 0) + by;
    total += by;
    if (now === 0) running.delete(accountId);
    else running.set(accountId, now);
  };

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
  /** The place goes to the first waiting entry of the account with the fewest places, so that no account blocks the others. */
  const leave = (accountId: string): void => {
    count(accountId, -1);
    let next: { readonly accountId: string; readonly go: () => void } | undefined;
    for (const one of waiting) if (next === undefined || (running.get(one.accountId) ?? 0) < (running.get(next.accountId) ?? 0)) next = one;
    next?.go();
  };

  return { enter, leave };
}
