/** Starts and watches one service process; restarts it within a second with the same command, environment and ports. */
import { systemClock } from '@signalbox/runtime/clock';
import { fork, type ChildProcess } from 'node:child_process';
import { v8FlagsOf } from './v8-flags.js';

export interface ProcessState {
  readonly role: string;
  readonly replica: number;
  readonly pid: number;
  readonly ports: Readonly<Record<string, number>>;
}

export interface KeeperOptions {
  readonly role: string;
  readonly replica: number;
  /** Compiled main module of the service. */
  readonly main: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Called when the process runs again with a new pid; it answers as soon as it has started. */
  readonly onRestarted: () => void;
  /** Prints a line for the operator when a serving process has died, since a killed process logs nothing itself. */
  readonly tell: (line: string) => void;
}

export interface ProcessKeeper {
  /** Resolves when the service answers; rejects if it exits before. */
  start(): Promise<void>;
  /** SIGTERM, then SIGKILL after `graceMs`. */
  stop(graceMs: number): Promise<void>;
  /** SIGKILL, without a restart. */
  kill(): void;
  state(): ProcessState;
}

const RESTART_AFTER_MS = 100;
const RESTART_AFTER_MS_MAX = 900;

interface ReadyMessage {
  readonly ready: true;
  readonly ports: Readonly<Record<string, number>>;
}

const isReadyMessage = (message: unknown): message is ReadyMessage => typeof message === 'object' && message !== null && 'ready' in message && message.ready === true && 'ports' in message;

export function keepProcess({ role, replica, main, environment, onRestarted, tell }: KeeperOptions): ProcessKeeper {
  let child: ChildProcess | undefined;
  let ports: Readonly<Record<string, number>> = {};
  let isStopping = false;
  let restartAfterMs = RESTART_AFTER_MS;

  let wasReadyOnce = false;

  const launch = (): Promise<void> =>
    new Promise((resolve, reject) => {
      let isReady = false;
      const launched = fork(main, [], { env: { ...environment }, stdio: ['ignore', 2, 2, 'ipc'], execArgv: [...v8FlagsOf(role)] });
      child = launched;
      launched.on('message', (message) => {
        if (!isReadyMessage(message) || isReady) return;
        isReady = true;
        wasReadyOnce = true;
        ports = message.ports;
        restartAfterMs = RESTART_AFTER_MS;
        resolve();
      });
      launched.on('error', reject);
      launched.on('exit', (code, signal) => {
        if (!isReady) reject(new Error(`${role} ended before it was ready (${signal ?? code ?? 'unknown'}).`));
        else if (!isStopping) tell(`signalbox: ${role} ${String(replica)} (pid ${String(launched.pid)}) ${signal === null ? `ended with ${String(code)}` : `was ended by ${signal}`} and is started again`);
        if (wasReadyOnce) again();
      });
    });

  const again = (): void => {
    if (isStopping) return;
    systemClock.setTimer(restartAfterMs, () => {
      if (isStopping) return;
      restartAfterMs = Math.min(RESTART_AFTER_MS_MAX, restartAfterMs * 2);
      launch().catch(() => undefined);
      onRestarted();
    });
  };

  return {
    start: launch,
    stop: (graceMs) =>
      new Promise((resolve) => {
        isStopping = true;
        const running = child;
        if (running === undefined || running.exitCode !== null || running.signalCode !== null) {
          resolve();
          return;
        }
        const kill = systemClock.setTimer(graceMs, () => running.kill('SIGKILL'));
        running.once('exit', () => {
          kill.cancel();
          resolve();
        });
        running.kill('SIGTERM');
      }),
    kill: () => {
      isStopping = true;
      child?.kill('SIGKILL');
    },
    state: () => ({ role, replica, pid: child?.pid ?? 0, ports }),
  };
}
