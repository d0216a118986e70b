/** Driver errors: which are the store being away, and which are answers. */
import { Fault } from '@signalbox/kernel/fault';
import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import type pg from 'pg';

/** Classes of SQLSTATE that speak of the store's state, not of the statement: connection, prepared statements that a pooler does not keep, rollback of a serialization or deadlock loser, resources, a lock that is not had in time, intervention, system. */
const STORE_CLASSES = new Set(['08', '26', '40', '53', '55', '57', '58', 'XX']);
/** The database is read-only: a replica after a failover. */
const READ_ONLY = '25006';
/** SQLSTATE of a right that the user of the database lacks. */
export const NO_RIGHT = '42501';
/** Those of other classes. An idle transaction of ours was ended; the user, the database, a right, a schema or a table is missing, as while a backup is restored; a pooler gave us another's prepared statements. */
const STORE_STATES = new Set([READ_ONLY, '25P03', '28P01', '28000', '3D000', NO_RIGHT, '3F000', '42P01', '42P05']);

/** Those that somebody meets who starts a service for the first time, or changes its database under it. */
const REASONS: Readonly<Record<string, string>> = {
  '28P01': 'wrong user or password, ', '28000': 'this user may not connect, ', '3D000': 'no such database, ', [READ_ONLY]: 'it is read-only, ', '53100': 'its disk is full, ', '53300': 'too many connections, ',
  '08P01': 'as a pooler does that does not know our start parameters, ', [NO_RIGHT]: 'this user lacks a right, ', '42P01': 'a table is missing, ', '55P03': 'a lock was not free in time, ',
};

/** The driver's words, which have no code. */
const WITHOUT_TLS = 'The server does not support SSL connections';

/** Why there was no answer: the code of the socket or of TLS, such as ` (ECONNREFUSED)` or ` (CERT_HAS_EXPIRED)`; empty when there is none. */
function silenceOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  if (typeof code === 'string' && /^[A-Z][A-Z_]{2,40}$/.test(code)) return ` (${code})`;
  return error instanceof Error && error.message === WITHOUT_TLS ? ' (it offers no TLS, which sslmode or PGSSLMODE asks for)' : '';
}

/** SQLSTATE of a statement's error, such as `23505`; undefined when it is none. Each has a digit, which `EPIPE` of a socket has not. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** A Fault when the store is away or refused for reasons of its own; undefined for constraint violations and bugs. */
export function toStoreFault(error: unknown): Fault | undefined {
  if (error instanceof Fault) return error;
  const state = sqlStateOf(error);
  if (state === undefined) {
    // No SQLSTATE: the socket, the pool or the driver's own timer. The message may name the host, so it stays in the cause.
    return new Fault('store_unavailable', `The database at DATABASE_URL did not answer${silenceOf(error)}.`, { cause: error });
  }
  if (STORE_CLASSES.has(state.slice(0, 2)) || STORE_STATES.has(state)) {
    return new Fault('store_unavailable', `The database at DATABASE_URL refused (${REASONS[state] ?? ''}${state}).`, { cause: error });
  }
  return undefined;
}

/** The pool as kysely wants it, with driver errors turned into faults at the one place all queries pass. */
export function faultingPool(pool: pg.Pool): PostgresPool {
  return {
    connect: async () => {
      try {
        return faultingClient(await pool.connect());
      } catch (error) {
        throw toStoreFault(error) ?? error;
      }
    },
    end: () => pool.end(),
  };
}

const IGNORE = (): void => undefined;

function faultingClient(client: pg.PoolClient): PostgresPoolClient {
  let isBroken = false;
  // A checked-out connection that breaks emits too; the query in work rejects as well.
  client.on('error', IGNORE);
  function query<R>(statement: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  function query<R>(statement: string | PostgresCursor<R>, parameters: readonly unknown[] = []): Promise<PostgresQueryResult<R>> | PostgresCursor<R> {
    if (typeof statement !== 'string') throw new Fault('internal_error', 'Cursors are not in use.');
    return client.query(statement, [...parameters]).then(
      (result) => result as unknown as PostgresQueryResult<R>,
      (error: unknown) => {
        const fault = toStoreFault(error);
        if (fault !== undefined) isBroken = true;
        throw fault ?? error;
      },
    );
  }
  return {
    query,
    release: () => {
      client.off('error', IGNORE);
      // After a timeout the connection may still be busy with the old statement: never reuse it.
      client.release(isBroken);
    },
  };
}
