/** Requests under way, by key: those of a compromised key are ended at once, and all at the end of a drain. */
import { LiveList, LiveMap } from '@signalbox/kernel/live-map';

/** Most compromised keys that are remembered; the oldest are dropped. */
const CUT_KEPT_MAX = 1_000;

/** `cut`: ends the request as if the client had hung up. `stop`: ends it with an error to the client. */
export type EndRequest = (how: 'cut' | 'stop') => void;

export interface RunningRequests {
  /** Adds a request. `end` is called at once if its key was cut before (the key may have been looked up just earlier). The returned function removes the request; call it once. */
  enter(keyId: string, end: EndRequest): () => void;
  /** Cuts all requests of the key, each once, since a compromise is told by the bus and by accounts; returns how many. */
  cut(keyId: string): number;
  /** Stops all requests. */
  stop(): void;
  /** True while a request of the key runs. */
  has(keyId: string): boolean;
  /** True while no request runs. */
  isEmpty(): boolean;
}

export function createRunningRequests(): RunningRequests {
  const byKey = new LiveMap<string, LiveList<EndRequest>>();
  const cutKeys = new Set<string>(); // kept: keys that were compromised.
  /** Told already; they stay among the running until they have ended. */
  const told = new WeakSet<EndRequest>();
  const cutOff = (end: EndRequest): void => {
    told.add(end);
    end('cut');
  };
  return {
    enter: (keyId, end) => {
      if (cutKeys.size > 0 && cutKeys.has(keyId)) cutOff(end);
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
      const running = (byKey.get(keyId)?.all() ?? []).filter((end) => !told.has(end));
      for (const end of running) cutOff(end);
      return running.length;
    },
    stop: () => {
      for (const running of [...byKey.values()]) for (const end of running.all()) end('stop');
    },
    has: (keyId) => byKey.has(keyId),
    isEmpty: () => byKey.size === 0,
  };
}
