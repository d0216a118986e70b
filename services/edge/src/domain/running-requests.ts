/** Requests under way, by the key that made them: a compromised key is stopped at once, not only refused from now on. */
import { LiveList } from '@signalbox/kernel/live-map';

export interface RunningRequests {
  /** `cut` breaks the request off as a client does that hangs up. The answer ends the entry; call it once. */
  enter(keyId: string, cut: () => void): () => void;
  /** Breaks off all that run with the key; answers how many. */
  cut(keyId: string): number;
}

export function createRunningRequests(): RunningRequests {
  const byKey = new Map<string, LiveList<() => void>>();
  return {
    enter: (keyId, cut) => {
      let running = byKey.get(keyId);
      if (running === undefined) byKey.set(keyId, (running = new LiveList()));
      const slot = running.add(cut);
      return () => {
        running.remove(slot);
        if (running.size === 0 && byKey.get(keyId) === running) byKey.delete(keyId);
      };
    },
    cut: (keyId) => {
      const running = byKey.get(keyId)?.all() ?? [];
      for (const cut of running) cut();
      return running.length;
    },
  };
}
