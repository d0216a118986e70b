/** One start at a time writes to a folder of logs; what a killed launcher left there may finish first. */
import type { Clock } from '@signalbox/kernel/clock';
import { claimFolder, releaseFolder } from '@signalbox/local-stores/owner';
import { makeFolder } from '@signalbox/runtime/folder';
import { walHolders } from '@signalbox/worker-kit/wal-recover';

const LOOK_EVERY_MS = 200;

export interface EarlierStartOptions {
  readonly walDir: string;
  readonly clock: Clock;
  /** How long services of an earlier start may take to finish. */
  readonly limitMs: number;
  /** One line for a person, said once, and only when there is somebody to wait for. */
  readonly tell: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Takes the logs for this process; answers what gives them back. Throws StoreError, naming its number, when a living process has them, ConfigError where they cannot be written. */
export function claimLogs(walDir: string): () => void {
  makeFolder(walDir, 'WAL_DIR', 0o700);
  claimFolder(walDir);
  return () => releaseFolder(walDir);
}

/** Services whose launcher was killed end their streams, then themselves: resolves when none of them writes a log here any more. Throws an Error for a person at the limit. */
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
