/** Syncs a directory, so that the names of its files survive a power failure (fsync(2)). */
import { close, closeSync, fsync, fsyncSync, open, openSync } from 'node:fs';

/** Errors of file systems on which a directory cannot be synced: they keep names by themselves, or nothing can be done. */
const NOT_OFFERED: ReadonlySet<string | undefined> = new Set(['EINVAL', 'EISDIR', 'ENOSYS', 'ENOTSUP', 'EPERM']);

/** Throws the system's error. */
export function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } catch (error) {
    if (!NOT_OFFERED.has((error as NodeJS.ErrnoException).code)) throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** Like `syncDirectory`, in the background. */
export function syncDirectoryLater(directory: string, done: (error: Error | null) => void): void {
  open(directory, 'r', (error, descriptor) => {
    if (error !== null) return done(error);
    fsync(descriptor, (failure) => close(descriptor, () => done(NOT_OFFERED.has(failure?.code) ? null : failure)));
  });
}
