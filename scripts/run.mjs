// Runs a tool of the build in a process group of its own. Ctrl-C must end all of it before it ends us: npm, left alone,
// goes on installing for minutes into the folder that the next start installs into.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Resolves with the exit code (null: a signal ended it, or it could not be started) and, where `quiet`, what it said;
 * else that goes to stderr, or to the descriptor `to`. A signal meanwhile kills the tool with all that it started, and ends this process with
 * 128 and the signal's number, as a shell tells it. What a tool leaves half-written has no stamp, and is made anew.
 * `held` is a descriptor that the tool keeps open until it ends: that of `work-lock.mjs`.
 */
export function run(command, args, { cwd, quiet = false, to = 2, held }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, stdio: [...(quiet ? ['ignore', 'pipe', 'pipe'] : ['ignore', to, to]), ...(held === undefined ? [] : [held])], detached: true });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part) => (said += part));
    let signalled;
    const stop = (signal) => {
      signalled ??= signal;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has just ended.
      }
    };
    for (const signal of SIGNALS) process.on(signal, stop);
    const end = (status) => {
      for (const signal of SIGNALS) process.off(signal, stop);
      if (signalled !== undefined) process.exit(128 + constants.signals[signalled]);
      resolve({ status, said });
    };
    child.once('error', () => end(null));
    child.once('close', end);
  });
}
