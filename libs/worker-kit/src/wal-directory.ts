/** Identity of a log's directory: one writer id for ever, one living process at a time. */
import { closeSync, existsSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, renameSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { createIdSource } from '@signalbox/kernel/ids';
import { lockFile, type FileLock } from '@signalbox/runtime/file-lock';
import { syncDirectory } from './directory-sync.js';

const IDENTITY = 'writer.json';
const LOCK = 'lock';
/** Beside the lock: whoever had the log last did not end in an orderly way, and nothing was written since. */
const TORN = 'torn';
/** Beside the lock, which tells by number: of processes in other containers only the kernel knows. */
const KERNEL_LOCK = 'lock.kernel';
/** In a lock: whoever gets the kernel's one knows its writer to be gone. */
const HAD_KERNEL_LOCK = 'kernel';

export interface WriterIdentity {
  readonly writer: string;
  readonly provider: string;
}

export function readIdentity(directory: string): WriterIdentity | undefined {
  const path = join(directory, IDENTITY);
  if (!existsSync(path)) return undefined;
  const { writer, provider } = identityIn(readFileSync(path, 'utf8')) ?? {};
  if (typeof writer !== 'string' || typeof provider !== 'string') throw new Fault('store_unavailable', `${path} does not name a writer: bring it back from a backup. The log beside it is money, and is its writer's alone.`);
  return { writer, provider };
}

function identityIn(text: string): Partial<WriterIdentity> | undefined {
  try {
    return (JSON.parse(text) ?? undefined) as Partial<WriterIdentity> | undefined;
  } catch {
    return undefined;
  }
}

/** The directory's writer, made at first use and durable before this returns. */
export function ensureIdentity(directory: string, provider: string, clock: Clock, randomBytes: RandomBytes): WriterIdentity {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
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

/** Of a system's error, such as `EACCES`. */
export const codeOf = (error: unknown): unknown => (typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined);

/** True when the process runs and is the one that took the lock: a number that the system gave away again has another start time. */
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
  // A killed process keeps its number until its parent asks for its end; it writes no more.
  if (state === 'Z' || state === 'X') return false;
  return startTime === '' || startedAt === '' || startTime === startedAt;
}

/** State letter and start time (clock ticks since boot) of a process, where the system tells them; else empty. */
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

/** All that was ever written there is on the disk: no process died with its lock, or what came after it was written and closed. */
export const isWhole = (directory: string): boolean => !existsSync(join(directory, LOCK)) && !existsSync(join(directory, TORN));

/** Set before the lock is taken, which may be that of who died; taken back while it is held. A mark too many only leaves numbers out. */
export function setTorn(directory: string, isTorn: boolean): void {
  const path = join(directory, TORN);
  if (isTorn) writeFileSync(path, '', { mode: 0o600 });
  else if (existsSync(path)) unlinkSync(path);
}

/**
 * Takes the directory for this process; answers the function that gives it back. The lock of a process that died does
 * not stand in the way. Throws a Fault `store_unavailable` that a person can read when a living process holds it.
 */
export function lockDirectory(directory: string): () => void {
  const path = join(directory, LOCK);
  const refuse = (holder: string): Fault => new Fault('store_unavailable', `The write-ahead log in ${directory} is in use by ${holder}. Wait until it has ended, or give each worker its own WAL_DIR.`);
  if (heldHere.has(directory)) throw refuse(`process ${process.pid}`);
  const kernelLock = lockFile(join(directory, KERNEL_LOCK));
  if (kernelLock.state === 'held') throw refuse(kernelLock.by);
  try {
    noteHolder(path, refuse, kernelLock.state === 'taken');
    // With a mark of before: should the power fail, both tell that what follows may be lost.
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

/** Makes the file that tells other processes of this machine who holds the directory; throws what `refuse` answers when a living one does. `isOurs`: the kernel gave us its lock. */
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
