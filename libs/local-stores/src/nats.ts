/** A private NATS server on a free port of loopback, for development and tests. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { answers, dieWithParentPrefix, findExecutable, freePort, startChild, StoreError, waitUntil } from './child.js';
import type { LocalServer } from './redis.js';

export interface StartNatsOptions {
  /** Kept between starts when given; otherwise a temporary folder, removed at stop. */
  readonly storeDir?: string;
  /** On by default. */
  readonly jetstream?: boolean;
  /** Port of loopback; 0 or absent: any free one. A fixed one lets a test bring a server back at the same address. */
  readonly port?: number;
  /** Read before the flags: users and what they may do. `url` holds none of them. */
  readonly configFile?: string;
  /** Variables that `configFile` names. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Path of nats-server; searched for when absent. */
  readonly executable?: string;
  readonly libraryPath?: string;
  /** Folders to search, as PATH has them. */
  readonly path?: string;
}

/** Starts nats-server (2.9 will do); it ends with this process. Throws StoreError. */
export async function startNats(options: StartNatsOptions = {}): Promise<LocalServer> {
  const executable = options.executable ?? findExecutable('nats-server', options.path ?? '');
  if (executable === undefined) throw new StoreError('No nats-server found: install it, or set NATS_URL.');
  const folder = options.storeDir === undefined ? mkdtempSync(join(tmpdir(), 'signalbox-nats-')) : resolve(options.storeDir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const cleanUp = (): void => {
    if (options.storeDir === undefined) rmSync(folder, { recursive: true, force: true });
  };
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    const port = options.port === undefined || options.port === 0 ? await freePort() : options.port;
    const flags = [...(options.configFile === undefined ? [] : ['-c', options.configFile]), '-a', '127.0.0.1', '-p', String(port), ...(options.jetstream === false ? [] : ['-js', '-sd', folder])];
    const [command = '', ...args] = [...dieWithParentPrefix('TERM'), executable, ...flags];
    const child = await startChild({ command, args, logFile: join(folder, 'nats.log'), libraryPath: options.libraryPath, environment: options.environment });
    const stop = async (): Promise<void> => {
      await child.stop('SIGTERM', 5_000);
      cleanUp();
    };
    try {
      if (await waitUntil(child, () => answers(port, '', 'INFO '), 10_000)) return { url: `nats://127.0.0.1:${port}`, port, stop };
    } catch (error) {
      await stop();
      throw error;
    }
  }
  throw new StoreError(`nats-server ended while starting; see ${join(folder, 'nats.log')}.`);
}
