// Runs a build tool in its own process group. Ctrl-C must end the whole group before this process: otherwise npm would go on
// installing for minutes into the folder that the next start uses.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Resolves with the exit code (null = ended by a signal, or could not be started) and, with `quiet`, its output; without, the
 * output goes to stderr, or to the descriptor `to`. A signal meanwhile kills the tool and its children, and ends this process with
 * 128 plus the signal's number, as in shells. Half-written output has no stamp, so the next run repeats the work.
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
        // The group has just ended.
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
