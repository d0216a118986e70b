/**
 * A file that one process at a time has. The kernel keeps the lock: it knows of processes in other containers, whose
 * numbers mean nothing here, and it gives the lock back however a process ends, a reboot included.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';

export type FileLock =
  | { readonly state: 'taken'; readonly release: () => void }
  /** `by` names the holder for a person, such as `process 12`, or `process 12 of host 3f2a`. */
  | { readonly state: 'held'; readonly by: string }
  /** This system, or this file's, has no such locks. */
  | { readonly state: 'unknown' };

/** Number of the descriptor in the program that asks. */
const DESCRIPTOR = 3;
const ASK_MS_MAX = 5_000;
/** What asks for a lock on a descriptor that it was handed: Node has no call for it. Exit 0: it is ours, 1: another has it. */
const PROGRAMS: readonly (readonly [string, ...string[]])[] = [
  ['flock', '-n', String(DESCRIPTOR)],
  ['perl', '-MFcntl=:flock', '-e', `open(my $file, "+<&=", ${DESCRIPTOR}) or exit 2; exit(flock($file, LOCK_EX | LOCK_NB) ? 0 : $!{EWOULDBLOCK} ? 1 : 2)`],
];

/** The lock belongs to the open file, which the program shares with us: it is ours still when the program has ended. */
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
 * Takes the file at `path`, which is made where it is missing and stays for ever: who removed it could hand it out twice.
 * Throws what the system says where it cannot be opened.
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
    // A full disk: it is ours all the same, and another process is told of no number.
  }
  return { state, release: () => closeSync(descriptor) };
}
