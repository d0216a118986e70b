/** What a write-ahead log is opened with, and what it offers beside being a journal. */
import type { Bus } from '@signalbox/bus/bus';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import type { Journal } from './journal.js';
import type { WalDisk } from './wal-disk.js';

export interface JournalOptions {
  /** Of this worker alone: a second living process is refused. */
  readonly directory: string;
  /** Recorded with the writer at billing. */
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
  /** By this process. */
  recordsWritten(): number;
  /** Records that wait for a disk that refuses them. */
  recordsRefused(): number;
  /** Records that stand in the log above a sequence. */
  recordsAfter(seq: number): number;
  /** How long the oldest record that is to be booked has waited for the ledger, in milliseconds; 0 = none does. */
  unbookedMs(): number;
  /**
   * For callers who know that no edge of before is left: concludes at once what an earlier process left open, instead of
   * after 30 s. Resolves when all that is in the log is in the ledger; waits for billing and the bus as long as it takes,
   * rejects with a Fault `cancelled` at `close`.
   */
  recover(): Promise<void>;
  /** Writes what is waiting, makes it durable and hands it to the bus if that is there. */
  flush(): Promise<void>;
  /**
   * Writes what is waiting and gives the directory back. With `endWaitMs` the ledger is waited for, so long and two calls more, to
   * tell billing that this writer has ended; not where an attempt is without its outcome. Safe to call twice.
   */
  close(endWaitMs?: number): Promise<void>;
}
