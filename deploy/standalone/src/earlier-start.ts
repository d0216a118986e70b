/** Only one start at a time may write to a folder of logs; services left by a killed launcher may finish first. */
import type { Clock } from '@signalbox/kernel/clock';
import { claimFolder, releaseFolder } from '@signalbox/local-stores/owner';
import { makeFolder } from '@signalbox/runtime/folder';
import { walHolders } from '@signalbox/worker-kit/wal-recover';

const LOOK_EVERY_MS = 200;

export interface EarlierStartOptions {
  readonly walDir: string;
  readonly clock: Clock;
  /** Longest wait for services of an earlier start to finish. */
  readonly limitMs: number;
  /** Prints a line for a person, once, and only if there is something to wait for. */
  readonly tell: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Locks the logs for this process; returns a function that unlocks them. Throws a StoreError with the pid if a living process has the lock, a ConfigError if the folder is not writable. */
export function claimLogs(walDir: string): () => void {
  makeFolder(walDir, 'WAL_DIR', 0o700);
  claimFolder(walDir);
  return () => releaseFolder(walDir);
}

/** Services whose launcher was killed finish their streams and then exit. Resolves when none of them writes a log here any more; rejects with an Error for a person after `limitMs`. */
export async function waitForEarlierStart({ walDir, clock, limitMs, tell, signal }: EarlierStartOptions): Promise<void> {
  const end = clock.monotonicMs() + limitMs;
  for (let hasTold = false; ; hasTold = true) {
    const holders = walHolders(walDir);
    if (holders.length === 0) return;
    const seconds = Math.ceil(limitMs / 1_000);
    if (clock.monotonicMs() >= end) throw new Error(`services of an earlier start (process ${holders.join(', ')}) still write to ${walDir} after ${seconds} s: end them, or choose another DATA_DIR.`);
    if (!hasTold) tell(`signalbox: services of an earlier start (process ${holders.join(', ')}) still finish their streams; waiting for them, at most ${seconds} s`);
    await new Promise<void>((resolve) => clock.setTimer(LOOK_EVERY_MS, resolve));
    signal?.throwIfAborted();
  }
}
