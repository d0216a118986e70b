/** Identity and lock of a log's directory: one permanent writer id, one live process at a time. */
import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, renameSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { createIdSource } from '@signalbox/kernel/ids';
import { lockFile, type FileLock } from '@signalbox/runtime/file-lock';
import { makeFolder } from '@signalbox/runtime/folder';
import { syncDirectory } from './directory-sync.js';

const IDENTITY = 'writer.json';
const LOCK = 'lock';
/** File that marks a log whose last process did not shut down in order, as long as no later one has written and closed it. */
const TORN = 'torn';
/** File for a kernel lock. The other lock file names a process id, which means nothing for processes in other containers. */
const KERNEL_LOCK = 'lock.kernel';
/** Content of a lock whose holder also had the kernel lock: whoever gets the kernel lock knows that the holder is gone. */
const HAD_KERNEL_LOCK = 'kernel';

export interface WriterIdentity {
  readonly writer: string;
  readonly provider: string;
}

export function readIdentity(directory: string): WriterIdentity | undefined {
  const path = join(directory, IDENTITY);
  if (!existsSync(path)) return undefined;
  const { writer, provider } = identityIn(readFileSync(path, 'utf8')) ?? {};
  if (typeof writer !== 'string' || typeof provider !== 'string') throw new Fault('store_unavailable', `${path} does not name a writer: restore it from a backup. The log in this directory is money and belongs to that writer.`);
  return { writer, provider };
}

function identityIn(text: string): Partial<WriterIdentity> | undefined {
  try {
    return (JSON.parse(text) ?? undefined) as Partial<WriterIdentity> | undefined;
  } catch {
    return undefined;
  }
}

/** The directory's writer; created at first use, and durable before this returns. Throws a ConfigError if the directory is not one that can be written. */
export function ensureIdentity(directory: string, provider: string, clock: Clock, randomBytes: RandomBytes): WriterIdentity {
  makeFolder(directory, 'WAL_DIR', 0o700);
  const known = readIdentity(directory);
  if (known !== undefined) return known;
  const identity: WriterIdentity = { writer: createIdSource(clock, randomBytes)('writer'), provider };
  const temporary = join(directory, `${IDENTITY}.new`);
  const descriptor = openSync(temporary, 'w', 0o600);
  writeSync(descriptor, JSON.stringify(identity));
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(temporary, join(directory, IDENTITY));
  syncDirectory(directory);
  return identity;
}

const heldHere = new Set<string>(); // kept: by folder.

/** Code of a system error, such as `EACCES`. */
export const codeOf = (error: unknown): unknown => (typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined);

/** True if the process runs and is the one that took the lock. A process id that was reused has another start time. */
function isHolderAlive(holder: string): boolean {
  const [id = '', startedAt = ''] = holder.split(' ');
  const pid = Number(id);
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
  const { state, startTime } = statOf(pid);
  // A zombie keeps its process id until its parent reaps it; it writes no more.
  if (state === 'Z' || state === 'X') return false;
  return startTime === '' || startedAt === '' || startTime === startedAt;
}

/** State letter and start time (clock ticks since boot) of a process; empty where the system does not tell. */
function statOf(pid: number): { readonly state: string; readonly startTime: string } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startTime: fields[19] ?? '' };
  } catch {
    return { state: '', startTime: '' };
  }
}

/** The living process, other than this one, that holds the directory. */
export function holderOf(directory: string): number | undefined {
  let holder: string;
  try {
    holder = readFileSync(join(directory, LOCK), 'utf8');
  } catch {
    return undefined;
  }
  return isHolderAlive(holder) ? Number(holder.split(' ')[0]) : undefined;
}

/** True while a living process, this one included, holds the directory. */
export function isDirectoryInUse(directory: string): boolean {
  return heldHere.has(directory) || holderOf(directory) !== undefined;
}

/** True if everything that was written is on disk: no process died while it held the lock, or a later one has written and closed the log. */
export const isWhole = (directory: string): boolean => !existsSync(join(directory, LOCK)) && !existsSync(join(directory, TORN));

/** Sets or removes the mark. It is set before the lock of a dead process may be taken over, and removed while the lock is held. A needless mark only makes the log skip sequence numbers. */
export function setTorn(directory: string, isTorn: boolean): void {
  const path = join(directory, TORN);
  if (isTorn) writeFileSync(path, '', { mode: 0o600 });
  else if (existsSync(path)) unlinkSync(path);
}

/**
 * Locks the directory for this process and returns the function that unlocks it. The lock of a dead process is taken over.
 * Throws a Fault `store_unavailable`, with a text for people, if a live process holds it.
 */
export function lockDirectory(directory: string): () => void {
  const path = join(directory, LOCK);
  const refuse = (holder: string): Fault => new Fault('store_unavailable', `The write-ahead log in ${directory} is in use by ${holder}. Wait until it has ended, or give each worker its own WAL_DIR.`);
  if (heldHere.has(directory)) throw refuse(`process ${process.pid}`);
  const kernelLock = lockFile(join(directory, KERNEL_LOCK));
  if (kernelLock.state === 'held') throw refuse(kernelLock.by);
  try {
    noteHolder(path, refuse, kernelLock.state === 'taken');
    // Makes the lock, and an earlier mark, durable: after a power failure they tell that later records may be lost.
    syncDirectory(directory);
  } catch (error) {
    release(kernelLock);
    throw error;
  }
  heldHere.add(directory);
  return () => {
    if (!heldHere.delete(directory)) return;
    if (existsSync(path)) unlinkSync(path);
    release(kernelLock);
  };
}

function release(lock: FileLock): void {
  if (lock.state === 'taken') lock.release();
}

/** Creates the file that tells other processes on this machine who holds the directory. Throws the result of `refuse` if a live one does. `isOurs`: we have the kernel lock. */
function noteHolder(path: string, refuse: (holder: string) => Fault, isOurs: boolean): void {
  const mine = `${path}.${process.pid}`;
  writeFileSync(mine, `${process.pid} ${statOf(process.pid).startTime}${isOurs ? ` ${HAD_KERNEL_LOCK}` : ''}`, { mode: 0o600 });
  try {
    for (let attempt = 0; ; attempt += 1) {
      try {
        linkSync(mine, path);
        break;
      } catch (error) {
        if (codeOf(error) !== 'EEXIST' || attempt === 3) throw error;
        const holder = existsSync(path) ? readFileSync(path, 'utf8') : '';
        const isGone = isOurs && holder.endsWith(HAD_KERNEL_LOCK);
        if (!isGone && isHolderAlive(holder)) throw refuse(`process ${holder.split(' ')[0] ?? ''}`);
        if (existsSync(path)) unlinkSync(path);
      }
    }
  } finally {
    unlinkSync(mine);
  }
}
