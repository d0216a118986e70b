/** Requests under way, by the key that made them: a compromised key is stopped at once, not only refused from now on. */
import { LiveList } from '@signalbox/kernel/live-map';

/** Keys that were cut lately; the oldest give way. */
const CUT_KEPT_MAX = 1_000;

export interface RunningRequests {
  /** `cut` breaks the request off as a client does that hangs up, at once where its key was cut before: it may have been looked up just before. The answer ends the entry; call it once. */
  enter(keyId: string, cut: () => void): () => void;
  /** Breaks off all that run with the key; answers how many. */
  cut(keyId: string): number;
  /** True while there is none. */
  isEmpty(): boolean;
}

export function createRunningRequests(): RunningRequests {
  const byKey = new Map<string, LiveList<() => void>>();
  const cutKeys = new Set<string>();
  return {
    enter: (keyId, cut) => {
      if (cutKeys.size > 0 && cutKeys.has(keyId)) cut();
      let running = byKey.get(keyId);
      if (running === undefined) byKey.set(keyId, (running = new LiveList()));
      const slot = running.add(cut);
      return () => {
        running.remove(slot);
        if (running.size === 0 && byKey.get(keyId) === running) byKey.delete(keyId);
      };
    },
    cut: (keyId) => {
      cutKeys.add(keyId);
      if (cutKeys.size > CUT_KEPT_MAX)
        for (const oldest of cutKeys) {
          cutKeys.delete(oldest);
          break;
        }
      const running = byKey.get(keyId)?.all() ?? [];
      for (const cut of running) cut();
      return running.length;
    },
    isEmpty: () => byKey.size === 0,
  };
}
