/**
 * A lock on a file, held by one process at a time. The kernel manages the lock: that works across containers, where pids mean
 * nothing, and the lock is released however a process ends, including by a reboot.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';

export type FileLock =
  | { readonly state: 'taken'; readonly release: () => void }
  /** `by` names the holder for a person, such as `process 12`, or `process 12 of host 3f2a`. */
  | { readonly state: 'held'; readonly by: string }
  /** The system, or the file system, does not support such locks. */
  | { readonly state: 'unknown' };

/** Number of the descriptor in the helper program. */
const DESCRIPTOR = 3;
const ASK_MS_MAX = 5_000;
/** Programs that lock an inherited descriptor, since Node has no call for that. Exit code 0 = locked, 1 = another process has the lock. */
const PROGRAMS: readonly (readonly [string, ...string[]])[] = [
  ['flock', '-n', String(DESCRIPTOR)],
  ['perl', '-MFcntl=:flock', '-e', `open(my $file, "+<&=", ${DESCRIPTOR}) or exit 2; exit(flock($file, LOCK_EX | LOCK_NB) ? 0 : $!{EWOULDBLOCK} ? 1 : 2)`],
];

/** The lock belongs to the open file description, which the program shares with us, so it stays ours when the program has ended. */
function askFor(descriptor: number): FileLock['state'] {
  for (const [program, ...args] of PROGRAMS) {
    const { status, error } = spawnSync(program, args, { stdio: ['ignore', 'ignore', 'ignore', descriptor], timeout: ASK_MS_MAX });
    if (error === undefined && status === 0) return 'taken';
    if (error === undefined && status === 1) return 'held';
  }
  return 'unknown';
}

function holderOf(path: string): string {
  const [pid = '', host = ''] = readFileSync(path, 'utf8').trim().split(' ');
  if (!/^\d+$/.test(pid)) return 'another process';
  return host === hostname() || host === '' ? `process ${pid}` : `process ${pid} of host ${host}`;
}

/**
 * Locks the file at `path`, creating it if it is missing. The file is never removed, since two processes could then hold
 * locks on different files of the same name. Throws the system's error if it cannot be opened.
 */
export function lockFile(path: string): FileLock {
  const descriptor = openSync(path, 'a+', 0o644);
  const state = askFor(descriptor);
  if (state !== 'taken') {
    closeSync(descriptor);
    return state === 'held' ? { state, by: holderOf(path) } : { state };
  }
  try {
    ftruncateSync(descriptor);
    writeSync(descriptor, `${process.pid} ${hostname()}\n`);
  } catch {
    // The disk is full: we have the lock all the same, but others cannot read our pid.
  }
  return { state, release: () => closeSync(descriptor) };
}
