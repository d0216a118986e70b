import { afterEach, describe, expect, it } from '@jest/globals';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { preferBatches } from './scheduling.js';

const SCHED_BATCH = 3;
const hasChrt = spawnSync('chrt', ['--version']).status === 0;

/** Scheduling policy of each thread: field 41 of stat in proc(5); the name in brackets may contain spaces. */
function policiesOf(pid: number): number[] {
  return readdirSync(`/proc/${String(pid)}/task`).map((task) => Number(readFileSync(`/proc/${String(pid)}/task/${task}/stat`, 'utf8').replace(/^.*\) /, '').split(' ')[38]));
}

let child: ChildProcess | undefined;
afterEach(() => {
  child?.kill('SIGKILL');
});

describe('preferBatches', () => {
  (hasChrt ? it : it.skip)('has every thread of the process, and what it starts then, scheduled in batches', async () => {
    // Prints its own pid, and on input starts a second process and prints its pid.
    const script = "process.stdout.write('up\\n'); process.stdin.once('data', () => process.stdout.write(`${require('node:child_process').spawn('sleep', ['30']).pid}\\n`))";
    child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
    const { pid, stdin, stdout } = child;
    if (pid === undefined || stdin === null || stdout === null) throw new Error('The child did not start.');
    await once(stdout, 'data');
    expect(policiesOf(pid)).not.toContain(SCHED_BATCH);

    preferBatches(pid);

    expect(new Set(policiesOf(pid))).toEqual(new Set([SCHED_BATCH]));
    const told = once(stdout, 'data');
    stdin.write('go');
    const started = Number(String((await told)[0]));
    try {
      expect(policiesOf(started)).toEqual([SCHED_BATCH]);
    } finally {
      process.kill(started, 'SIGKILL');
    }
  });
});
