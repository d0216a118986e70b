/** A private Redis on a free port of loopback, for development and tests. */
import type { Log } from '@signalbox/runtime/log';
import { answers, findExecutable, StoreError } from './child.js';
import { startServer, type LocalServer } from './server.js';

export interface StartRedisOptions {
  /** Kept between starts when given; otherwise a temporary folder, removed at stop. */
  readonly dataDir?: string;
  /** Append-only file, written through every second; off by default: memory only. */
  readonly appendOnly?: boolean;
  /** Users and what they may do; nobody may come without a name. `url` holds none of them. */
  readonly aclFile?: string;
  /** When given, a server that a crash or a kill ended is begun again at its port, and told of here; else it stays away. */
  readonly keep?: Log;
  /** Path of redis-server; searched for when absent. */
  readonly executable?: string;
  readonly libraryPath?: string;
  /** Folders to search, as PATH has them. */
  readonly path?: string;
}

/** Starts redis-server; it ends with this process. Throws StoreError. */
export async function startRedis(options: StartRedisOptions = {}): Promise<LocalServer> {
  const executable = options.executable ?? findExecutable('redis-server', options.path ?? '');
  if (executable === undefined) throw new StoreError('No redis-server found: install it, or set REDIS_URL.');
  return startServer({
    name: 'Redis',
    scheme: 'redis',
    executable,
    libraryPath: options.libraryPath,
    folder: options.dataDir,
    logName: 'redis.log',
    argumentsOf: (port, folder) => ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', options.appendOnly === true ? 'yes' : 'no', '--daemonize', 'no', ...(options.aclFile === undefined ? [] : ['--aclfile', options.aclFile])],
    isAnswering: (port) => answers(port, 'PING\r\n', options.aclFile === undefined ? '+PONG' : '-NOAUTH'),
    keep: options.keep,
  });
}
