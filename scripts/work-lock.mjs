// Lock so that only one process at a time installs and builds in this folder: two would delete each other's files.
import { spawn } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Never removed, since two processes could then lock different files of the same name. Not in node_modules, which an installation deletes. */
const path = join(dirname(fileURLToPath(import.meta.url)), '..', '.stamp-lock');
/** Number of the descriptor in the helper program. */
const DESCRIPTOR = 3;
const perl = (flags) => ['perl', '-MFcntl=:flock', '-e', `open(my $file, "+<&=", ${DESCRIPTOR}) or exit 2; exit(flock($file, ${flags}) ? 0 : $!{EWOULDBLOCK} ? 1 : 2)`];
/** Programs that take the kernel's lock, as in libs/runtime/src/file-lock.ts: without waiting; below, waiting. */
const AT_ONCE = [['flock', '-n', `${DESCRIPTOR}`], perl('LOCK_EX | LOCK_NB')];
const IN_TURN = [['flock', `${DESCRIPTOR}`], perl('LOCK_EX')];

/** Returns whether the lock was taken; undefined if the system, or the file system, has no such locks. */
async function ask(programs, descriptor) {
  for (const [program, ...args] of programs) {
    const status = await new Promise((resolve) => {
      const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'ignore', descriptor] });
      child.once('error', () => resolve(null));
      child.once('close', resolve);
    });
    if (status === 0 || status === 1) return status === 0;
  }
  return undefined;
}

/**
 * Runs `work` while no other process works in this folder; prints a line to stderr if it has to wait. `work` gets the lock's
 * descriptor, to pass it to the tools that it starts: the kernel's lock lasts until the last holder closes it, so a tool
 * that outlives its killed parent is waited for too. The descriptor is undefined if the system has no such locks, or the
 * folder is not writable: the work is then done without a lock.
 */
export async function alone(work) {
  let descriptor;
  try {
    descriptor = openSync(path, 'a+', 0o644);
  } catch {
    return work(undefined);
  }
  try {
    if ((await ask(AT_ONCE, descriptor)) === false) {
      const holder = readFileSync(path, 'utf8').trim();
      process.stderr.write(`signalbox: waiting for another start${/^\d+$/.test(holder) ? ` (process ${holder})` : ''}, which installs or builds in this folder\n`);
      await ask(IN_TURN, descriptor);
    }
    try {
      ftruncateSync(descriptor);
      writeSync(descriptor, `${process.pid}\n`);
    } catch {
      // The disk is full: others will not see our pid.
    }
    return await work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
