/** Runs each program in its own process: without environment, without files except the interpreter's, and without network if the system supports that. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { ProgramProcess, ProgramProcesses } from '../domain/ports.js';
import type { ProgramEnd, ProgramLimits } from '../domain/program.js';

/** Generous, since a process may start slowly on a busy machine. */
const START_MS = 15_000;
/** After its time limit, a program's runner has this long to report it; then the process is killed. */
const GRACE_MS = 500;
/** Largest growth of a program's output in the JSON answer, by escapes. */
const ANSWER_BYTES_PER_BYTE = 7;
const ANSWER_BYTES_EXTRA = 65_536;
const STARTED = 'started\n';
/** Packages that the interpreter's package loads, whether used or not. */
const INTERPRETER_PARTS = ['quickjs-emscripten-core', '@jitl/quickjs-ffi-types', ...['release-sync', 'release-asyncify', 'debug-sync', 'debug-asyncify'].map((variant) => `@jitl/quickjs-wasmfile-${variant}`)];

export interface ProcessesOptions {
  readonly clock: Clock;
  /** The runner's main.js; absent = the one built with this file. */
  readonly runnerPath?: string;
  /** Paths that the runner may read; absent = itself and the interpreter. */
  readonly readable?: readonly string[];
}

const ownRunner = (): string => fileURLToPath(new URL('../runner/main.js', import.meta.url));

/** Folders from which the interpreter is loaded. */
function readableBy(runnerPath: string): readonly string[] {
  const require = createRequire(runnerPath);
  const umbrella = require.resolve('quickjs-emscripten');
  const own = createRequire(umbrella);
  const packages = [umbrella, ...INTERPRETER_PARTS.map((name) => own.resolve(name))];
  const rootOf = (file: string): string => file.slice(0, file.lastIndexOf('/dist/'));
  const service = dirname(dirname(dirname(runnerPath)));
  return [join(service, 'dist', '*'), join(service, 'package.json'), ...packages.map((file) => join(rootOf(file), '*'))];
}

/** Flags of Node's permission model, which forbids files, processes, threads and add-ons; their name depends on Node's version. */
function fence(readable: readonly string[]): readonly string[] {
  const flag = process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission';
  return [flag, ...readable.map((path) => `--allow-fs-read=${path}`)];
}

/** Command that starts a process in an empty network namespace, if the system permits it. */
function netFence(): readonly string[] {
  for (const flags of [['--user', '--net'], ['--net']]) {
    const tried = spawnSync('unshare', [...flags, 'true'], { stdio: 'ignore', timeout: 2_000, env: {} });
    if (tried.status === 0) return ['unshare', ...flags, '--'];
  }
  return [];
}

class NodeProcess implements ProgramProcess {
  private readonly child: ChildProcess | undefined;
  private received = '';
  private receivedBytes = 0;
  private answerBytesMax = ANSWER_BYTES_EXTRA;
  private isKilled = false;
  private isLate = false;
  private hasStarted = false;
  private limits: ProgramLimits | undefined;
  private timer: Timer | undefined;
  private settle: ((end: ProgramEnd) => void) | undefined;
  private end: ProgramEnd | undefined;

  constructor(command: readonly string[], private readonly clock: Clock) {
    const [file = '', ...args] = command;
    let child: ChildProcess;
    try {
      child = spawn(file, args, { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'], detached: false });
    } catch {
      // Most failures arrive as events, but a lack of memory for the process is thrown.
      this.over();
      return;
    }
    this.child = child;
    child.on('error', () => this.over());
    child.on('close', () => this.over());
    // A process that has ended reads nothing; its `close` event reports that.
    child.stdin?.on('error', () => undefined);
    child.stdout?.on('data', (part: Buffer) => this.read(part));
    child.unref();
  }

  get isOver(): boolean {
    return this.end !== undefined;
  }

  run(code: string, limits: ProgramLimits): Promise<ProgramEnd> {
    this.limits = limits;
    this.answerBytesMax = limits.outputBytes * ANSWER_BYTES_PER_BYTE + ANSWER_BYTES_EXTRA;
    return new Promise((resolve) => {
      if (this.end !== undefined) {
        resolve(this.end);
        return;
      }
      this.settle = resolve;
      this.child?.ref();
      this.timer = this.clock.setTimer(START_MS, () => this.kill());
      this.child?.stdin?.end(JSON.stringify({ code, limits }));
    });
  }

  kill(): void {
    this.isKilled = true;
    this.child?.kill('SIGKILL');
  }

  private read(part: Buffer): void {
    this.receivedBytes += part.length;
    if (this.receivedBytes > this.answerBytesMax) {
      this.kill();
      return;
    }
    this.received += part.toString('latin1');
    if (this.hasStarted || !this.received.startsWith(STARTED)) return;
    this.hasStarted = true;
    this.timer?.cancel();
    const { timeoutMs = 0 } = this.limits ?? {};
    this.timer = this.clock.setTimer(timeoutMs + GRACE_MS, () => {
      this.isLate = true;
      this.kill();
    });
  }

  private over(): void {
    if (this.end !== undefined) return;
    this.timer?.cancel();
    this.end = this.readEnd();
    this.settle?.(this.end);
  }

  private readEnd(): ProgramEnd {
    const { timeoutMs = 0 } = this.limits ?? {};
    if (this.isLate) return { status: 'TIMED_OUT', output: '', result: '', error: `The program was stopped: it ran for longer than ${timeoutMs} ms.` };
    const text = Buffer.from(this.received.slice(STARTED.length), 'latin1').toString('utf8');
    if (this.hasStarted && !this.isKilled && text !== '') {
      try {
        return JSON.parse(text) as ProgramEnd;
      } catch {
        // Truncated: the process died while writing.
      }
    }
    return { status: 'CRASHED', output: '', result: '', error: 'The program was stopped: its process ended without an answer, probably for want of memory.' };
  }
}

export function createProcesses({ clock, runnerPath = ownRunner(), readable = readableBy(runnerPath) }: ProcessesOptions): ProgramProcesses {
  const net = netFence();
  const command = [...net, process.execPath, ...fence(readable), '--no-warnings', '--max-old-space-size=96', '--disallow-code-generation-from-strings', runnerPath];
  return { isNetworkFenced: net.length > 0, start: () => new NodeProcess(command, clock) };
}
