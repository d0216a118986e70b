/** Which process owns a data folder, so that a crash leaves nothing in the way and a second start harms nobody. */
import { lockFile, type FileLock } from '@signalbox/runtime/file-lock';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { StoreError } from './child.js';

const FILE = 'owner.json';
const LOCK = 'owner.lock';

/** The kernel's locks of this process, by folder. */
const claimed = new Map<string, FileLock>();

/** A mark of the process's birth, so that a reused pid is not taken for it; empty where the system does not tell. */
function birthOf(pid: number): string {
  try {
    // Field 22 of stat, counted after the command in parentheses, which may hold blanks.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

/** True while a process of this number exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
  try {
    return !/^.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : 'unknown');

const refusal = (folder: string, holder: string): StoreError => new StoreError(`The data folder ${folder} is in use by ${holder}: stop it, or choose another DATA_DIR.`);

interface Note {
  readonly pid: number;
  /** Empty where the system does not tell. */
  readonly birth: string;
  /** The process had the kernel's lock, too: whoever gets that knows it to be gone. */
  readonly isLocked?: boolean;
}

/** The number of a living process that the note names, other than ours. `isOurs`: the kernel gave us its lock. */
function notedOwner(path: string, isOurs: boolean): number | undefined {
  try {
    const { pid, birth, isLocked } = JSON.parse(readFileSync(path, 'utf8')) as Note;
    return pid !== process.pid && !(isOurs && isLocked === true) && isAlive(pid) && birthOf(pid) === birth ? pid : undefined;
  } catch {
    // No owner yet, a half-written note of one that died, or another user's, who is told by the lock.
    return undefined;
  }
}

function lockOf(folder: string): FileLock {
  try {
    return lockFile(join(folder, LOCK));
  } catch (error) {
    throw new StoreError(`The data folder ${folder} cannot be written (${codeOf(error)}).`, { cause: error });
  }
}

/** Takes `folder` for this process, which may do so again. Throws StoreError, naming who has it, when another process owns it, in another container too. */
export function claimFolder(folder: string): void {
  const path = join(folder, FILE);
  const key = resolve(folder);
  const before = claimed.get(key);
  const lock = before === undefined ? lockOf(folder) : before;
  if (lock.state === 'held') throw refusal(folder, lock.by);
  const owner = notedOwner(path, lock.state === 'taken');
  if (owner !== undefined) {
    if (lock !== before && lock.state === 'taken') lock.release();
    throw refusal(folder, `process ${owner}`);
  }
  claimed.set(key, lock);
  const note: Note = { pid: process.pid, birth: birthOf(process.pid), isLocked: lock.state === 'taken' };
  try {
    // Beside its place and renamed: another user's cannot be written over, but replaced.
    writeFileSync(`${path}.new`, JSON.stringify(note), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  } catch (error) {
    releaseFolder(folder);
    throw new StoreError(`The data folder ${folder} cannot be written (${codeOf(error)}).`, { cause: error });
  }
}

/** Safe to call twice. */
export function releaseFolder(folder: string): void {
  rmSync(join(folder, FILE), { force: true });
  const lock = claimed.get(resolve(folder));
  if (lock?.state === 'taken') lock.release();
  claimed.delete(resolve(folder));
}
