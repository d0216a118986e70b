/** Starts a process on its core and ends it by its own pid. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface Child {
  readonly pid: number;
  /** The first line of stdout that matched. */
  readonly line: string;
  stop(): Promise<void>;
}

const STOP_GRACE_MS = 45_000;
const START_MAX_MS = 90_000;
const hasTaskset = spawnSync('taskset', ['--version']).status === 0;

/** Binds all threads of this process to a core; does nothing without taskset. */
export function moveTo(core: number): void {
  if (hasTaskset) spawnSync('taskset', ['-acp', String(core), String(process.pid)]);
}

/** Whether gateways and load have a core each. */
export function isPinned(): boolean {
  return hasTaskset;
}

const ended = (child: ChildProcess): Promise<void> => (child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : new Promise((resolve) => child.once('exit', () => resolve())));

/** Starts node with `args` on `core` and waits (≤ 90 s) for a line of stdout that `ready` accepts. Rejects with what stderr said last. */
export async function startChild(options: { readonly core: number; readonly args: readonly string[]; readonly cwd?: string; readonly environment?: Readonly<Record<string, string>>; readonly ready: RegExp }): Promise<Child> {
  const { core, args, cwd, environment = {}, ready } = options;
  const command = hasTaskset ? ['taskset', '-c', String(core), process.execPath] : [process.execPath];
  const [program = '', ...before] = command;
  const child = spawn(program, [...before, ...args], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let complaints = '';
  child.stderr.on('data', (part: Buffer) => {
    complaints = (complaints + part.toString()).slice(-4_000);
  });
  const stop = async (): Promise<void> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_GRACE_MS);
    child.kill('SIGTERM');
    await ended(child);
    clearTimeout(timer);
  };
  const line = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGTERM');
      reject(new Error(`No ready line within ${String(START_MAX_MS)} ms: ${complaints}`));
    }, START_MAX_MS);
    createInterface({ input: child.stdout }).on('line', (text) => {
      if (!ready.test(text)) return;
      clearTimeout(timer);
      resolve(text);
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`Ended with ${String(code)} before it was ready: ${complaints}`));
    });
  });
  return { pid: child.pid ?? 0, line, stop };
}
