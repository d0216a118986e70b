/** The bus inside one process: for `npm start` and tests. Durable means until acknowledged, not over a restart. */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Bus, BusMessage, ConsumeOptions, Subscription, Verdict } from './bus.js';
import { deadLetterSubject, DELIVERIES_MAX, subjectMatches } from './subjects.js';

export interface MemoryBus extends Bus {
  /** Durable messages not yet acknowledged by every durable name that was ever consumed under (and those nobody consumed yet). */
  pending(): number;
  /** For tests: while disconnected `publish` rejects with `store_unavailable` and nothing is delivered. */
  setConnected(isConnected: boolean): void;
}

interface Stored {
  readonly subject: string;
  readonly payload: Uint8Array;
  deliveries: number;
}

interface Group {
  readonly subject: string;
  readonly queue: Stored[];
  /** Messages that wait for their next delivery, outside the queue. */
  comingAgain: number;
  /** Wakes the consumers of this name; each takes its own batch. */
  readonly waiters: Set<() => void>;
}

/** Pauses before a message comes again, in milliseconds, by delivery. */
const AGAIN_MS = [50, 200, 1_000, 5_000] as const;
/** Bound on messages kept for names that consume later or are slow; beyond it publish rejects. */
const KEPT_MAX = 200_000;
/** Bound on remembered message ids. */
const IDS_MAX = 50_000;

export function createMemoryBus({ clock }: { readonly clock: Clock }): MemoryBus {
  let connected = true;
  let closed = false;
  const listeners = new Set<{ readonly subject: string; readonly handler: (message: BusMessage) => void }>();
  const connectionListeners = new Set<(isConnected: boolean) => void>();
  const groups = new Map<string, Group>();
  /** Messages no group matches yet: a consumer that comes later still gets them. */
  const unclaimed: Stored[] = [];
  const ids = new Set<string>();
  const inWork = new Set<Promise<void>>();

  const deliverLive = (subject: string, payload: Uint8Array): void => {
    for (const listener of listeners) {
      if (!subjectMatches(listener.subject, subject)) continue;
      queueMicrotask(() => {
        if (listeners.has(listener)) listener.handler({ subject, payload, deliveries: 1 });
      });
    }
  };

  const wake = (group: Group): void => {
    for (const waiter of [...group.waiters]) waiter();
  };

  const store = (subject: string, payload: Uint8Array): void => {
    let claimed = false;
    for (const group of groups.values()) {
      if (!subjectMatches(group.subject, subject)) continue;
      claimed = true;
      group.queue.push({ subject, payload, deliveries: 0 });
      wake(group);
    }
    if (!claimed) unclaimed.push({ subject, payload, deliveries: 0 });
  };

  const pending = (): number => {
    let count = unclaimed.length;
    for (const group of groups.values()) count += group.queue.length + group.comingAgain;
    return count;
  };

  const groupOf = (options: ConsumeOptions): Group => {
    const known = groups.get(options.durable);
    if (known !== undefined) return known;
    const group: Group = { subject: options.subject, queue: [], comingAgain: 0, waiters: new Set() };
    groups.set(options.durable, group);
    for (let index = 0; index < unclaimed.length; ) {
      const message = unclaimed[index];
      if (message !== undefined && subjectMatches(group.subject, message.subject)) {
        group.queue.push(message);
        unclaimed.splice(index, 1);
      } else index += 1;
    }
    return group;
  };

  const settle = (group: Group, batch: readonly Stored[], verdicts: readonly Verdict[]): void => {
    const again: Stored[] = [];
    for (const [index, message] of batch.entries()) {
      const verdict = verdicts[index];
      if (verdict === 'done') continue;
      if (verdict === 'poison' || (verdict === undefined && message.deliveries >= DELIVERIES_MAX)) store(deadLetterSubject(message.subject), message.payload);
      else again.push(message);
    }
    if (again.length === 0) return;
    const deliveries = Math.min(...again.map((message) => message.deliveries));
    group.comingAgain += again.length;
    clock.setTimer(
      AGAIN_MS[Math.min(deliveries, AGAIN_MS.length) - 1] ?? 5_000,
      () => {
        group.comingAgain -= again.length;
        group.queue.unshift(...again);
        wake(group);
      },
      { unref: true },
    );
  };

  return {
    publish: (subject, payload, options) => {
      if (!connected || closed) return Promise.reject(new Fault('store_unavailable', 'The bus is not connected.'));
      if (pending() >= KEPT_MAX) return Promise.reject(new Fault('store_unavailable', 'The bus is full.'));
      const id = options?.messageId;
      if (id !== undefined) {
        if (ids.has(id)) return Promise.resolve();
        ids.add(id);
        if (ids.size > IDS_MAX) for (const oldest of ids) {
          ids.delete(oldest);
          break;
        }
      }
      const copy = Uint8Array.from(payload);
      store(subject, copy);
      deliverLive(subject, copy);
      return Promise.resolve();
    },
    announce: (subject, payload) => {
      if (connected && !closed) deliverLive(subject, Uint8Array.from(payload));
    },
    listen: (subject, handler) => {
      const listener = { subject, handler };
      listeners.add(listener);
      return Promise.resolve({
        stop: () => {
          listeners.delete(listener);
          return Promise.resolve();
        },
      });
    },
    consume: (options, handler) => {
      const group = groupOf(options);
      let stopped = false;
      /** Messages of the batch in work. */
      let inHand = 0;
      let busy: Promise<void> | undefined;
      let gathering: { cancel(): void } | undefined;
      let nextAtMs = clock.monotonicMs();

      const takeBatch = async (): Promise<void> => {
        const batch = group.queue.splice(0, options.batchMessagesMax);
        if (batch.length === 0) return;
        inHand = batch.length;
        for (const message of batch) message.deliveries += 1;
        let verdicts: readonly Verdict[] = [];
        try {
          verdicts = await handler(batch.map(({ subject, payload, deliveries }) => ({ subject, payload, deliveries })));
        } catch {
          // No verdicts: the batch comes again, a few times.
        }
        inHand = 0;
        settle(group, batch, verdicts);
      };
      const begin = (): void => {
        gathering = undefined;
        if (stopped || closed || !connected || busy !== undefined) return;
        nextAtMs = clock.monotonicMs() + options.batchWaitMs;
        const work = takeBatch().finally(() => {
          busy = undefined;
          inWork.delete(work);
          look();
        });
        busy = work;
        inWork.add(work);
      };
      const look = (): void => {
        if (stopped || closed || !connected || busy !== undefined || group.queue.length === 0) return;
        if (group.queue.length >= options.batchMessagesMax) {
          gathering?.cancel();
          begin();
        } else gathering ??= clock.setTimer(Math.max(0, nextAtMs - clock.monotonicMs()), begin);
      };
      group.waiters.add(look);
      look();
      const subscription: Subscription = {
        lag: () => Promise.resolve(group.queue.length + group.comingAgain + inHand),
        stop: async () => {
          stopped = true;
          group.waiters.delete(look);
          gathering?.cancel();
          await busy;
        },
      };
      return Promise.resolve(subscription);
    },
    isConnected: () => connected && !closed,
    onConnectionChange: (listener) => {
      connectionListeners.add(listener);
      return () => void connectionListeners.delete(listener);
    },
    close: async () => {
      closed = true;
      await Promise.all(inWork);
      listeners.clear();
    },
    pending,
    setConnected: (isConnected) => {
      if (isConnected === connected) return;
      connected = isConnected;
      for (const listener of connectionListeners) listener(isConnected);
      if (isConnected) for (const group of groups.values()) wake(group);
    },
  };
}
