/** How Linux shares a core among the processes of the split. */
import { spawnSync } from 'node:child_process';

/**
 * Puts a process (its pid), and with it all that it starts from now on, under SCHED_BATCH: who wakes waits for its turn instead of
 * pushing out who runs (sched(7)). Services on one core then take what has come in one go, and their code is not fetched anew
 * for each message (ADR 48). Shares stay fair and any policy may be set again from outside. Does nothing without `chrt`.
 */
export function preferBatches(pid = process.pid): void {
  spawnSync('chrt', ['--batch', '--all-tasks', '--pid', '0', String(pid)], { stdio: 'ignore' });
}
