/** Requests under way, by the key that made them: a compromised key is stopped at once, not only refused from now on; at the end of a drain all are. */
import { LiveList, LiveMap } from '@signalbox/kernel/live-map';

/** Keys that were cut lately; the oldest give way. */
const CUT_KEPT_MAX = 1_000;

/** `cut`: breaks it off as a client does that hangs up. `stop`: ends it with a word to its client. */
export type EndRequest = (how: 'cut' | 'stop') => void;

export interface RunningRequests {
  /** `end` is told to cut at once where its key was cut before: it may have been looked up just before. The answer ends the entry; call it once. */
  enter(keyId: string, end: EndRequest): () => void;
  /** Breaks off all that run with the key; answers how many. */
  cut(keyId: string): number;
  /** Stops all. */
  stop(): void;
  /** True while one runs with the key. */
  has(keyId: string): boolean;
  /** True while there is none. */
  isEmpty(): boolean;
}

export function createRunningRequests(): RunningRequests {
  const byKey = new LiveMap<string, LiveList<EndRequest>>();
  const cutKeys = new Set<string>(); // kept: keys that were compromised.
  return {
    enter: (keyId, end) => {
      if (cutKeys.size > 0 && cutKeys.has(keyId)) end('cut');
      let running = byKey.get(keyId);
      if (running === undefined) byKey.set(keyId, (running = new LiveList()));
      const slot = running.add(end);
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
      for (const end of running) end('cut');
      return running.length;
    },
    stop: () => {
      for (const running of [...byKey.values()]) for (const end of running.all()) end('stop');
    },
    has: (keyId) => byKey.has(keyId),
    isEmpty: () => byKey.size === 0,
  };
}
