/** What private Redis and NATS servers have in common: a port of loopback, a folder, and an end with this process. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Log } from '@signalbox/runtime/log';
import { dieWithParentPrefix, freePort, quietPort, startChild, StoreError, waitUntil, type StoreProcess } from './child.js';
import { keepRunning } from './keep-running.js';

export interface LocalServer {
  readonly url: string;
  readonly port: number;
  /** Safe to call twice. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** As a person calls it. */
  readonly name: string;
  readonly scheme: string;
  readonly executable: string;
  readonly libraryPath?: string | undefined;
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** Kept between starts; undefined: a temporary folder, removed at stop. */
  readonly folder: string | undefined;
  /** Of the file in that folder that receives what the server says. */
  readonly logName: string;
  /** 0 or undefined: any free one. */
  readonly port?: number | undefined;
  readonly argumentsOf: (port: number, folder: string) => readonly string[];
  readonly isAnswering: (port: number) => Promise<boolean>;
  /** When given, a server that a crash or a kill ended is begun again at its port, and told of here; else it stays away. */
  readonly keep?: Log | undefined;
}

const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 5_000;
const STARTS_MAX = 3;

/** Throws StoreError. */
export async function startServer(options: ServerOptions): Promise<LocalServer> {
  const { name, scheme, keep } = options;
  const folder = options.folder === undefined ? mkdtempSync(join(tmpdir(), `signalbox-${scheme}-`)) : resolve(options.folder);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const logFile = join(folder, options.logName);
  const { child, port } = await launch(options, folder, logFile, options.port ?? 0);
  const kept = keep === undefined ? child : keepRunning({ name, first: child, begin: async () => (await launch(options, folder, logFile, port)).child, log: keep.child({ log_file: logFile }) });
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    port,
    stop: async () => {
      await kept.stop('SIGTERM', STOP_LIMIT_MS);
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function launch(options: ServerOptions, folder: string, logFile: string, wanted: number): Promise<{ readonly child: StoreProcess; readonly port: number }> {
  // A free port may be taken between our look and the server's bind: try again.
  for (let attempt = 1; attempt <= STARTS_MAX; attempt += 1) {
    const port = wanted === 0 ? await (options.keep === undefined ? freePort() : quietPort()) : wanted;
    const [command = '', ...args] = [...dieWithParentPrefix('TERM'), options.executable, ...options.argumentsOf(port, folder)];
    const child = await startChild({ command, args, logFile, libraryPath: options.libraryPath, environment: options.environment });
    try {
      if (await waitUntil(child, () => options.isAnswering(port), START_LIMIT_MS)) return { child, port };
    } catch (error) {
      await child.stop('SIGTERM', STOP_LIMIT_MS);
      throw error;
    }
  }
  throw new StoreError(`${options.name} ended while starting; see ${logFile}.`);
}
