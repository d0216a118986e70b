/** Retries messages that were kept because no version could read them: the first version that can, books and resolves them. */
import type { BusMessage, Verdict } from '@signalbox/bus/bus';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Log } from '@signalbox/runtime/log';
import { DELIVERIES_MAX, isReadable } from './consumer.js';
import type { BooksStore } from './domain/books.js';

/** Most messages in a round. The next round continues after them, and starts over once all have been looked at. */
const ROUND_MAX = 256;
const NOTE = 'read by a later version';

export interface RereadOptions {
  readonly books: Pick<BooksStore, 'nextUnread' | 'resolveDeadEvent'>;
  /** The handler of batches. */
  readonly consume: (messages: readonly BusMessage[]) => Promise<readonly Verdict[]>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Returns a function that does one round and never rejects. Any number of replicas may run it at once, since booking is safe to repeat. */
export function createReread({ books, consume, clock, log }: RereadOptions): () => Promise<void> {
  let after = 0n;

  async function round(): Promise<void> {
    for (let looked = 0; looked < ROUND_MAX; looked += 1) {
      const kept = await books.nextUnread(after);
      if (kept === undefined) {
        after = 0n;
        return;
      }
      // Treated like a last delivery: facts that cannot be booked are kept as separate dead events.
      const message = { subject: kept.subject, payload: kept.payload, deliveries: DELIVERIES_MAX };
      if (isReadable(message)) {
        const [verdict] = await consume([message]);
        // The ledger is away.
        if (verdict !== 'done' && verdict !== 'poison') return;
        await books.resolveDeadEvent(kept.id, NOTE, clock.nowMs());
        log.info('A message that an earlier version could not read was booked.', { id: String(kept.id) });
      }
      after = kept.id;
    }
  }

  return async () => {
    try {
      await round();
    } catch (error) {
      if (error instanceof Fault) log.warn('Kept messages could not be retried; the next round will.', { code: error.code });
      else log.error('Kept messages could not be retried.', {}, error);
    }
  };
}
