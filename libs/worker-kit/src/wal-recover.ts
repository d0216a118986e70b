/** Ships logs that no process holds to the ledger. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openJournal, type JournalOptions, type OpenJournal } from './wal.js';
import { holderOf, isDirectoryInUse, readIdentity } from './wal-directory.js';

/** Directories that have a writer's identity, at most two levels below the root. */
function writerDirectories(root: string): readonly string[] {
  if (!existsSync(root)) return [];
  const found: string[] = [];
  const walk = (directory: string, depth: number): void => {
    if (readIdentity(directory) !== undefined) found.push(directory);
    if (depth === 0) return;
    for (const name of readdirSync(directory)) {
      const path = join(directory, name);
      // A lock file may disappear meanwhile.
      if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) walk(path, depth - 1);
    }
  };
  walk(root, 2);
  return found;
}

/** Live processes, other than this one, that hold a log below the root. */
export function walHolders(walRoot: string): readonly number[] {
  return [...new Set(writerDirectories(walRoot).map(holderOf))].filter((pid) => pid !== undefined);
}

/**
 * Ships the logs that no process holds to the ledger, also those of providers that are no longer configured: opens each
 * directory below `walRoot`, books what was left open, and waits until the watermark reaches the newest sequence. Resolves
 * with the writers that were recovered; logs in use by a live process are skipped. Safe to call again.
 */
export async function recoverDirectories(walRoot: string, options: Omit<JournalOptions, 'directory' | 'provider'>): Promise<readonly string[]> {
  const recover = async (directory: string): Promise<string | undefined> => {
    if (isDirectoryInUse(directory)) return undefined;
    let journal: OpenJournal;
    try {
      journal = await openJournal({ ...options, directory, provider: 'unknown' });
    } catch (error) {
      options.log.warn('A write-ahead log could not be opened and was skipped.', { reason: error instanceof Error ? error.message : 'unknown' });
      return undefined;
    }
    let endWaitMs: number | undefined;
    try {
      await journal.recover();
      // The ledger has everything: no need to wait.
      endWaitMs = 0;
      return journal.state().writer;
    } finally {
      await journal.close(endWaitMs);
    }
  };
  const writers = await Promise.all(writerDirectories(walRoot).map(recover));
  return writers.filter((writer) => writer !== undefined);
}
