/** Requests under way, by the key that made them: a compromised key is stopped at once, not only refused from now on. */

export interface RunningRequests {
  /** `cut` breaks the request off as a client does that hangs up. The answer ends the entry; call it once. */
  enter(keyId: string, cut: () => void): () => void;
  /** Breaks off all that run with the key; answers how many. */
  cut(keyId: string): number;
}

export function createRunningRequests(): RunningRequests {
  const byKey = new Map<string, Set<() => void>>();
  return {
    enter: (keyId, cut) => {
      const running = byKey.get(keyId) ?? new Set();
      byKey.set(keyId, running.add(cut));
      return () => {
        running.delete(cut);
        if (running.size === 0 && byKey.get(keyId) === running) byKey.delete(keyId);
      };
    },
    cut: (keyId) => {
      const running = [...(byKey.get(keyId) ?? [])];
      for (const cut of running) cut();
      return running.length;
    },
  };
}
