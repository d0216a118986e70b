/** Makes sure that only one set of counters uses a database: with two, an account could spend its caps twice. */
import type { Clock } from '@signalbox/kernel/clock';
import { ConfigError } from '@signalbox/runtime/config';
import type { Log } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { LockHeldError, takeSessionLock, type LockChange, type SessionLock } from '@signalbox/sql/session-lock';
import { hostname } from 'node:os';

const LOCK = 'signalbox.counters';
/** The connection of a host that is gone stays open for some seconds: see `takeSessionLock`. */
const LIMIT_MS = 10_000;
const HOST_LENGTH_MAX = 24;

export interface ClaimDatabaseOptions {
  /** May contain a password: do not log it. */
  readonly url: string;
  /** `memory`, and `own-redis` (started for this installation only): nobody else may use the database. `redis` (given by the operator): others that count in the same Redis may use it too. */
  readonly counters: 'memory' | 'own-redis' | 'redis';
  readonly clock: Clock;
  readonly log: Log;
  /** One line for a person. */
  readonly tell: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

const WHO = { memory: 'npm start', 'own-redis': 'npm run start:split', redis: 'npm run start:split' } as const;
/** Where an exclusive user of the database counts; about another user, only that it is exclusive is known. */
const WHERE = { memory: 'this one counts in its own memory', 'own-redis': 'this one counts in a Redis of its own', redis: 'it counts by itself' } as const;

/** Locks the database while its connection lasts, and again after a lost connection. Rejects with a ConfigError if another process has the lock, or a Fault if the database is unreachable. */
export async function claimDatabase({ url, counters, clock, log, tell, signal }: ClaimDatabaseOptions): Promise<SessionLock> {
  const apart = (by: string): string => `${by} runs on the database at DATABASE_URL too, and ${WHERE[counters]}, so that caps are counted apart`;
  const onChange = (change: LockChange): void => {
    if (change.state === 'lost') log.warn('The connection that holds the database for this process broke; it is opened again.');
    else if (change.state === 'regained') log.warn('The database is held for this process again.');
    else tell(`signalbox: ${apart(change.by)}: stop one of the two now`);
  };
  const holder = `${WHO[counters]} (process ${process.pid} of host ${hostname().replace(/[^\x21-\x7e]/g, '?').slice(0, HOST_LENGTH_MAX)})`;
  try {
    return await takeSessionLock({
      url: new Secret(url), name: LOCK, mode: counters === 'redis' ? 'shared' : 'alone', holder, clock, limitMs: LIMIT_MS, signal, onChange,
      onWait: (by) => tell(`signalbox: ${by} has the database at DATABASE_URL; waiting for its end, at most ${LIMIT_MS / 1_000} s`),
    });
  } catch (error) {
    if (!(error instanceof LockHeldError)) throw error;
    throw new ConfigError(`DATABASE_URL: ${apart(error.by)}: stop it, or give this one another database.`, { cause: error });
  }
}
