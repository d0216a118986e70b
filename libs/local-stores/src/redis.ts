/** A private Redis on a free port of loopback, for development and tests. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { answers, dieWithParentPrefix, findExecutable, freePort, startChild, StoreError, waitUntil } from './child.js';

export interface StartRedisOptions {
  /** Kept between starts when given; otherwise a temporary folder, removed at stop. */
  readonly dataDir?: string;
  /** Append-only file, written through every second; off by default: memory only. */
  readonly appendOnly?: boolean;
  /** Users and what they may do; nobody may come without a name. `url` holds none of them. */
  readonly aclFile?: string;
  /** Path of redis-server; searched for when absent. */
  readonly executable?: string;
  readonly libraryPath?: string;
  /** Folders to search, as PATH has them. */
  readonly path?: string;
}

export interface LocalServer {
  readonly url: string;
  readonly port: number;
  /** Safe to call twice. */
  stop(): Promise<void>;
}

/** Starts redis-server; it ends with this process. Throws StoreError. */
export async function startRedis(options: StartRedisOptions = {}): Promise<LocalServer> {
  const executable = options.executable ?? findExecutable('redis-server', options.path ?? '');
  if (executable === undefined) throw new StoreError('No redis-server found: install it, or set REDIS_URL.');
  const folder = options.dataDir === undefined ? mkdtempSync(join(tmpdir(), 'signalbox-redis-')) : resolve(options.dataDir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const cleanUp = (): void => {
    if (options.dataDir === undefined) rmSync(folder, { recursive: true, force: true });
  };
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    const port = await freePort();
    const flags = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', options.appendOnly === true ? 'yes' : 'no', '--daemonize', 'no', ...(options.aclFile === undefined ? [] : ['--aclfile', options.aclFile])];
    const [command = '', ...args] = [...dieWithParentPrefix('TERM'), executable, ...flags];
    const child = await startChild({ command, args, logFile: join(folder, 'redis.log'), libraryPath: options.libraryPath });
    const stop = async (): Promise<void> => {
      await child.stop('SIGTERM', 5_000);
      cleanUp();
    };
    try {
      if (await waitUntil(child, () => answers(port, 'PING\r\n', options.aclFile === undefined ? '+PONG' : '-NOAUTH'), 10_000)) return { url: `redis://127.0.0.1:${port}`, port, stop };
    } catch (error) {
      await stop();
      throw error;
    }
  }
  throw new StoreError(`redis-server ended while starting; see ${join(folder, 'redis.log')}.`);
}
