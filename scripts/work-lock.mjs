// One process at a time installs and builds in this folder: two would delete each other's files.
import { spawn } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Stays for ever: who removed it could hand it out twice. Not in node_modules, which an installation removes. */
const path = join(dirname(fileURLToPath(import.meta.url)), '..', '.stamp-lock');
/** Number of the descriptor in the program that asks. */
const DESCRIPTOR = 3;
const perl = (flags) => ['perl', '-MFcntl=:flock', '-e', `open(my $file, "+<&=", ${DESCRIPTOR}) or exit 2; exit(flock($file, ${flags}) ? 0 : $!{EWOULDBLOCK} ? 1 : 2)`];
/** What asks the kernel for the lock, as libs/runtime/src/file-lock.ts does: at once, or until it is given. */
const AT_ONCE = [['flock', '-n', `${DESCRIPTOR}`], perl('LOCK_EX | LOCK_NB')];
const IN_TURN = [['flock', `${DESCRIPTOR}`], perl('LOCK_EX')];

/** Whether the lock was given: undefined where this system, or this file's, has none. */
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
 * Runs `work` while nobody else does in this folder; who has to wait says so in a line on stderr. `work` is given the
 * lock's descriptor for the tools that it starts: the lock is the kernel's and belongs to whoever still has it, so that
 * a tool which outlives its killed start is waited for too. Undefined: this system has no such locks, or the folder is
 * not to be written, and the work is done without.
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
      // A full disk: the others are told of no number.
    }
    return await work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
