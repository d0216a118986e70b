/** Kysely over pg: bounded pool, exact integers, faults instead of driver errors. */
import './runtime-name.js';
import { Fault } from '@signalbox/kernel/fault';
import type { Log } from '@signalbox/runtime/log';
import type { Secret } from '@signalbox/runtime/secret';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { faultingPool, toStoreFault } from './faults.js';
import { transactPrepared, type Conclude, type RunPrepared } from './prepared.js';

export interface OpenDatabaseOptions {
  /** `postgres://…`. */
  readonly url: Secret;
  /** Connections at most. */
  readonly poolMax: number;
  readonly log: Log;
  /** Each statement is cancelled by the server after this long; the client gives up 1 s later. */
  readonly statementTimeoutMs: number;
  /** Searched first for unqualified names: the service's own schema. Lower-case letters, digits and `_`. */
  readonly schema?: string;
  /** Statements of one connection are sent without waiting for each other: those of a transaction that do not need each other's answers share a round trip. */
  readonly pipelined?: boolean;
}

export interface Database<Schema> {
  /** Queries reject with a Fault `store_unavailable` when the store is away, slow or refuses for its own reasons; with the driver's error for a broken constraint or a bug. */
  readonly db: Kysely<Schema>;
  /** One transaction of prepared statements: commits what `work` did, or keeps nothing of it. Rejects as `db` does, or with what `work` threw. */
  transactPrepared<Result>(work: (run: RunPrepared, conclude: Conclude) => Promise<Result>): Promise<Result>;
  /** Resolves when the store answers. Rejects with Fault `store_unavailable`. */
  ping(): Promise<void>;
  /** Safe to call twice. A query that comes later rejects with Fault `store_unavailable`. */
  close(): Promise<void>;
}

/** Wait for a connection to open, or for one of the pool to become free. */
const CONNECT_TIMEOUT_MS = 5_000;
/** How long a connection that nobody uses stays open: longer than the pauses of an idle gateway, which tells billing something every 15 s, since opening one costs both sides 10 to 20 ms; shorter than what stands between forgets one. */
const IDLE_MS = 60_000;
/** Spare time of the client over the server's own cut, so that the server's answer usually wins. */
const CLIENT_SPARE_MS = 1_000;

/** int8 as bigint, in this pool only: pg's parsers are global to the process otherwise. numeric stays text. */
function exactTypes(): pg.CustomTypesConfig {
  const own = new pg.TypeOverrides();
  own.setTypeParser(pg.types.builtins.INT8, (text) => BigInt(text));
  return own;
}

/** The driver takes `options` of the address instead of those that it is given: ours go behind them, where the last one of a name counts. */
const joinOptions = (address: string, options: string): string => address.replace(/(?<=[?&]options=)[^&#]*/g, (theirs) => `${theirs}%20${encodeURIComponent(options)}`);

/** Opens a pool; connects on first use and again for ever. Does not wait for the store. */
export function openDatabase<Schema>({ url, poolMax, log, statementTimeoutMs, schema, pipelined = false }: OpenDatabaseOptions): Database<Schema> {
  if (schema !== undefined && !/^[a-z][a-z0-9_]{0,40}$/.test(schema)) throw new Fault('internal_error', 'A schema name breaks its pattern.');
  const options = schema === undefined ? undefined : `-c search_path=${schema}`;
  const pool = new pg.Pool({
    connectionString: options === undefined ? url.unwrap() : joinOptions(url.unwrap(), options),
    max: poolMax,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_MS,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + CLIENT_SPARE_MS,
    // A transaction whose owner went away holds its locks no longer than this.
    idle_in_transaction_session_timeout: statementTimeoutMs * 2,
    keepAlive: true,
    pipeline: pipelined,
    types: exactTypes(),
    ...(options === undefined ? {} : { options }),
  });
  let closed: Promise<void> | undefined;
  // An idle connection that breaks would end the process without a listener. One that is being closed may meet a server that stops too.
  pool.on('error', () => {
    if (closed === undefined) log.warn('An idle database connection broke.');
  });
  // One that has just been opened is nobody's for a moment: a server that ends it in the same breath would end the process.
  pool.on('connect', (client) => void client.on('error', () => undefined));
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: faultingPool(pool) }) });
  return {
    db,
    transactPrepared: (work) => transactPrepared(pool, pipelined, work),
    ping: async () => {
      try {
        await sql`select 1`.execute(db);
      } catch (error) {
        throw toStoreFault(error) ?? error;
      }
    },
    close: () => {
      // Not kysely's own end, after which a query of what still runs would look like a bug.
      closed ??= pool.end();
      return closed;
    },
  };
}
