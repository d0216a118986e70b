/** Options of a write-ahead log, and what it offers beyond the journal's interface. */
import type { Bus } from '@signalbox/bus/bus';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import type { Journal } from './journal.js';
import type { DiskFailures } from './wal-commit.js';
import type { WalDisk } from './wal-disk.js';

export interface JournalOptions {
  /** Used by this worker alone: a second live process is refused. */
  readonly directory: string;
  /** Registered with billing together with the writer. */
  readonly provider: string;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Log;
  readonly bus: Bus;
  readonly quota: RpcClient;
  readonly billing: RpcClient;
  /** For simulations: instead of the files of `directory`. */
  readonly disk?: WalDisk;
  /** For simulations: instead of setImmediate, calls back when the present turn of the event loop is over. */
  readonly afterTurn?: (callback: () => void) => void;
}

export interface OpenJournal extends Journal {
  /** True once billing knows the writer; stays true when billing goes away later. */
  isRegistered(): boolean;
  /** Number of records written by this process. */
  recordsWritten(): number;
  /** Number of records that wait because the disk refused a write. */
  recordsRefused(): number;
  /** How often the disk refused a write, and how often it failed to make the log durable. */
  diskFailures(): DiskFailures;
  /** Number of records in the log above a sequence. */
  recordsAfter(seq: number): number;
  /** How long the oldest unbooked record has waited for the ledger, in milliseconds; 0 = none waits. */
  unbookedMs(): number;
  /**
   * For callers who know that no earlier edge is alive: concludes what an earlier process left open at once instead of after
   * 30 s. Resolves when the whole log is in the ledger. Waits for billing and the bus as long as it takes; rejects with a Fault
   * `cancelled` at `close`.
   */
  recover(): Promise<void>;
  /** Writes what is waiting, makes it durable and, if the bus is reachable, publishes it. */
  flush(): Promise<void>;
  /**
   * Writes what is waiting and unlocks the directory. With `endWaitMs` it also waits for the ledger, for that long and two calls
   * more, and then tells billing that this writer has ended; not if an attempt has no outcome yet. Safe to call twice.
   */
  close(endWaitMs?: number): Promise<void>;
}
