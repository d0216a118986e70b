/** Child processes of private stores: start, wait until they answer, stop. Development only. */
import { randomInt } from 'node:crypto';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { systemClock } from '@signalbox/runtime/clock';

/** A store cannot be run here: `message` is one line for a person. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}

/** It is the data that a store does not start with, whatever programs it is started from. */
export class StoreDataError extends StoreError {}

export interface StoreProcess {
  readonly pid: number;
  isRunning(): boolean;
  /** Its exit code; null when a signal ended it or it never began. */
  readonly exited: Promise<number | null>;
  /** Sends `signal`, waits `graceMs`, then SIGKILL. Safe to call twice. */
  stop(signal: NodeJS.Signals, graceMs: number): Promise<void>;
}

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** File that receives the child's output. */
  readonly logFile: string;
  readonly libraryPath?: string | undefined;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  /** Variables besides those that every child has. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.setTimer(ms, resolve);
  });
}

/** Environment for a child: ours plus a library folder. */
export function childEnvironment(libraryPath: string | undefined): Record<string, string> {
  // Locale C keeps initdb independent of what the machine has installed.
  const own: Record<string, string> = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
  return libraryPath === undefined ? own : { ...own, LD_LIBRARY_PATH: libraryPath };
}

/** What a short program prints; undefined when it fails, or does not run here. */
export function answerOf(command: string, args: readonly string[], options: { readonly timeoutMs: number; readonly environment?: Readonly<Record<string, string>> }): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(command, args, { encoding: 'utf8', timeout: options.timeoutMs, env: options.environment ?? process.env }, (error, printed) => resolve(error === null ? printed : undefined));
  });
}

/** Starts `command` in its own process group, so that Ctrl-C reaches it only through us. Throws StoreError. */
export async function startChild(options: ChildOptions): Promise<StoreProcess> {
  const output = openSync(options.logFile, 'a', 0o600);
  const child = spawn(options.command, options.args, {
    stdio: ['ignore', output, output],
    detached: true,
    cwd: '/',
    env: { ...childEnvironment(options.libraryPath), ...options.environment },
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  });
  closeSync(output);
  let running = true;
  const exited = new Promise<number | null>((resolve) => {
    const end = (code: number | null): void => {
      running = false;
      resolve(code);
    };
    child.on('exit', end);
    child.on('error', () => end(null));
  });
  await new Promise<void>((resolve) => {
    child.once('spawn', () => resolve());
    child.once('error', () => resolve());
  });
  const pid = child.pid;
  if (pid === undefined) throw new StoreError(`${options.command} could not be started.`);
  child.unref();
  return {
    pid,
    isRunning: () => running,
    exited,
    stop: async (signal, graceMs) => {
      if (!running) return;
      child.ref();
      child.kill(signal);
      const timer = systemClock.setTimer(graceMs, () => child.kill('SIGKILL'));
      await exited;
      timer.cancel();
    },
  };
}

/** Asks `probe` every 15 ms until it answers true. False when the process ended first. Throws StoreError at the limit. */
export async function waitUntil(process: StoreProcess, probe: () => Promise<boolean>, limitMs: number): Promise<boolean> {
  const end = systemClock.monotonicMs() + limitMs;
  while (systemClock.monotonicMs() < end) {
    if (!process.isRunning()) return false;
    if (await probe()) return true;
    await pause(15);
  }
  throw new StoreError(`A private store did not answer within ${limitMs} ms.`);
}

/** A TCP port of loopback that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (address !== null && typeof address === 'object' ? resolve(address.port) : reject(new StoreError('No free port.'))));
    });
  });
}

/** Below what systems give to outgoing connections, so that a door that is shut for a moment is not taken meanwhile. */
const QUIET_FROM = 20_000;
const QUIET_TO = 32_000;
const QUIET_TRIES = 50;

/**
 * Takes the datagram port of this number for as long as this process runs: by it other processes see that the number is
 * given, also while its door is shut. Undefined when it is taken, or there are no datagrams here.
 */
function reserve(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    socket.once('error', () => {
      socket.close();
      resolve(undefined);
    });
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(socket.unref()));
  });
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** A free port for a door that must open again at the same number after its process died. No two living processes are given one number, and none twice. */
export async function quietPort(from = QUIET_FROM, to = QUIET_TO): Promise<number> {
  for (let i = 0; i < QUIET_TRIES; i += 1) {
    const port = randomInt(from, to);
    const reserved = await reserve(port);
    if (reserved === undefined) continue;
    if (await isFree(port)) return port;
    reserved.close();
  }
  return freePort();
}

/** True when what listens on loopback `port` says `expected` after `greeting` was sent. Waits 500 ms at most. */
export function answers(port: number, greeting: string, expected: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (result: boolean): void => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(500, () => end(false));
    socket.on('error', () => end(false));
    socket.on('connect', () => socket.write(greeting));
    socket.on('data', (data) => end(data.toString('latin1').startsWith(expected)));
  });
}

/** Path of an executable in PATH, /usr/sbin or `folders`; undefined when there is none. */
export function findExecutable(name: string, path: string, folders: readonly string[] = []): string | undefined {
  for (const folder of [...path.split(delimiter), '/usr/local/bin', '/usr/bin', '/usr/local/sbin', '/usr/sbin', ...folders]) {
    if (folder === '') continue;
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

/** Prefix that ends a child with us, even after SIGKILL; empty where the system cannot. */
export function dieWithParentPrefix(signal: 'TERM' | 'INT'): readonly string[] {
  const works = spawnSync('setpriv', ['--pdeathsig', signal, 'true'], { stdio: 'ignore', timeout: 3_000 }).status === 0;
  return works ? ['setpriv', '--pdeathsig', signal] : [];
}
