/** A private NATS server on a free port of loopback, for development and tests. */
import type { Log } from '@signalbox/runtime/log';
import { answers, findExecutable, StoreError } from './child.js';
import { startServer, type LocalServer } from './server.js';

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
  /** When given, a server that a crash or a kill ended is begun again at its port, and told of here; else it stays away. */
  readonly keep?: Log;
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
  return startServer({
    name: 'NATS',
    scheme: 'nats',
    executable,
    libraryPath: options.libraryPath,
    environment: options.environment,
    folder: options.storeDir,
    logName: 'nats.log',
    port: options.port,
    argumentsOf: (port, folder) => [...(options.configFile === undefined ? [] : ['-c', options.configFile]), '-a', '127.0.0.1', '-p', String(port), ...(options.jetstream === false ? [] : ['-js', '-sd', folder])],
    isAnswering: (port) => answers(port, '', 'INFO '),
    keep: options.keep,
  });
}
