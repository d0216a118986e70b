/** How Linux shares a core among the processes of the split. */
import { spawnSync } from 'node:child_process';

/**
 * Sets SCHED_BATCH for a process and all its future children: a process that wakes up waits for its turn instead of preempting
 * the running one (sched(7)). Services on one core then handle messages in batches, and their code stays in the CPU caches
 * (ADR 48). CPU shares stay fair, and any policy may be set again from outside. Does nothing without `chrt`.
 */
export function preferBatches(pid = process.pid): void {
  spawnSync('chrt', ['--batch', '--all-tasks', '--pid', '0', String(pid)], { stdio: 'ignore' });
}
