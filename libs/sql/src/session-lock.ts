/** A lock on a whole database, on a connection of its own: it is gone with that connection, however its process ended. */
import { createHash } from 'node:crypto';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { Secret } from '@signalbox/runtime/secret';
import './runtime-name.js';
import pg from 'pg';
import { toStoreFault } from './faults.js';

export interface SessionLockOptions {
  /** `postgres://…`, of Postgres itself: behind a pooler that shares sessions out the lock means nothing. */
  readonly url: Secret;
  readonly name: string;
  /** `shared` is refused by `alone` only, and the other way round. */
  readonly mode: 'alone' | 'shared';
  /** Who we are, for others who want the lock: printable ASCII, 63 characters at most. */
  readonly holder: string;
  readonly clock: Clock;
  /** How long another may take to let go of it, in milliseconds. */
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Once, when another has it and is waited for. */
  readonly onWait: (by: string) => void;
  /** Of a lock that was taken: its connection was lost, another took it meanwhile, it is ours again. */
  readonly onChange: (change: LockChange) => void;
}

export type LockChange = { readonly state: 'lost' } | { readonly state: 'regained' } | { readonly state: 'taken'; readonly by: string };

export interface SessionLock {
  /** Gives it back. Safe to call twice; never rejects. */
  release(): Promise<void>;
}

/** Another did not let go of it in time. */
export class LockHeldError extends Error {
  override readonly name = 'LockHeldError';

  constructor(readonly by: string) {
    super(`The lock is held by ${by}.`);
  }
}

/** Pause between tries at the start. */
const TRY_EVERY_MS = 50;
/** Postgres may need a moment to notice that a process was killed: nobody needs to be told of that. */
const UNTOLD_MS = 250;
/** Pause between tries for a lock that was lost. */
const AGAIN_MS = 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
const END_TIMEOUT_MS = 1_000;
/** Silence after which each side asks whether the other's host still lives. */
const KEEPALIVE_MS = 3_000;
/** The server gives a host up that has not answered for 3 s + 2 × 2 s: its lock does not stay for the hours that are the system's default. A session that waits for ever is no idle one. */
const SETTINGS = [`select set_config('tcp_keepalives_idle', '3', false), set_config('tcp_keepalives_interval', '2', false), set_config('tcp_keepalives_count', '2', false)`, `select set_config('idle_session_timeout', '0', false)`];
const TRY = { alone: 'select pg_try_advisory_lock($1::bigint) as locked', shared: 'select pg_try_advisory_lock_shared($1::bigint) as locked' } as const;
const HOLDER = `select activity.pid, activity.application_name as name from pg_locks held join pg_stat_activity activity on activity.pid = held.pid
  where held.locktype = 'advisory' and held.granted and held.objsubid = 1 and held.pid <> pg_backend_pid()
  and held.database = (select oid from pg_database where datname = current_database())
  and held.classid = (($1::bigint >> 32) & 4294967295)::oid and held.objid = ($1::bigint & 4294967295)::oid
  order by activity.backend_start limit 1`;

interface Session {
  readonly client: pg.Client;
  /** Resolves when its connection is over, for whatever reason. */
  readonly ended: Promise<void>;
}

interface Holder {
  readonly name: string;
  /** Number of its process of Postgres; undefined when it has just let go. */
  readonly backend: number | undefined;
}

const ignore = (): void => undefined;
const lockKey = (name: string): string => createHash('sha256').update(name).digest().readBigInt64BE(0).toString();

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(ms, resolve));
}

/** Throws where the driver cannot read the URL. */
const newClient = ({ url, holder }: SessionLockOptions): pg.Client =>
  new pg.Client({ connectionString: url.unwrap(), application_name: holder, connectionTimeoutMillis: CONNECT_TIMEOUT_MS, query_timeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelayMillis: KEEPALIVE_MS });

async function connect(options: SessionLockOptions): Promise<Session> {
  let client: pg.Client;
  try {
    client = newClient(options);
  } catch (error) {
    throw toStoreFault(error) ?? error;
  }
  // Its end says so as well.
  client.on('error', ignore);
  const session: Session = { client, ended: new Promise((resolve) => void client.once('end', resolve)) };
  try {
    await client.connect();
    // Where the system knows no such settings, its own hold.
    await Promise.all(SETTINGS.map((setting) => client.query(setting).catch(ignore)));
    return session;
  } catch (error) {
    client.connection.stream.destroy();
    throw toStoreFault(error) ?? error;
  }
}

/** The server answers a goodbye at once; one that does not is left. */
async function close({ client, ended }: Session, clock: Clock): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<void>((resolve) => {
    timer = clock.setTimer(END_TIMEOUT_MS, resolve, { unref: true });
  });
  client.end().catch(ignore);
  await Promise.race([ended, late]);
  timer?.cancel();
  client.connection.stream.destroy();
}

async function isTaken({ client }: Session, { mode, name }: SessionLockOptions): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(TRY[mode], [lockKey(name)]);
  return rows[0]?.locked === true;
}

async function holderOf({ client }: Session, { name }: SessionLockOptions): Promise<Holder> {
  const { rows } = await client.query<{ pid: number; name: string }>(HOLDER, [lockKey(name)]);
  const [row] = rows;
  // Its own word: whoever may connect may say anything.
  const told = (row?.name ?? '').replace(/[^\x20-\x7e]/g, '?');
  return { name: told === '' ? 'another process' : told, backend: row?.pid };
}

const backendOf = ({ client }: Session): number => (client as unknown as { readonly processID: number }).processID;

/** Takes the lock, waiting for another within the limit. Rejects with LockHeldError, a Fault `store_unavailable`, or the signal's reason. */
export async function takeSessionLock(options: SessionLockOptions): Promise<SessionLock> {
  const { clock, limitMs, signal, onWait } = options;
  const session = await connect(options);
  const startedMs = clock.monotonicMs();
  try {
    for (let hasTold = false; !(await isTaken(session, options)); ) {
      signal?.throwIfAborted();
      const { name, backend } = await holderOf(session, options);
      const waitedMs = clock.monotonicMs() - startedMs;
      if (waitedMs >= limitMs) throw new LockHeldError(name);
      if (!hasTold && waitedMs >= UNTOLD_MS && backend !== undefined) {
        hasTold = true;
        onWait(name);
      }
      await pause(clock, TRY_EVERY_MS);
    }
    return keep(session, options);
  } catch (error) {
    await close(session, clock);
    throw error instanceof LockHeldError || signal?.aborted === true ? error : (toStoreFault(error) ?? error);
  }
}

function keep(first: Session, options: SessionLockOptions): SessionLock {
  const { clock, onChange } = options;
  let held: Session | undefined = first;
  let isReleased = false;
  /** Of the connection that was lost: the server may not have noticed yet. */
  let lastBackend = backendOf(first);
  let wake: () => void = ignore;

  /** True once it is ours again. */
  const tryOnce = async (tell: (by: string) => void): Promise<boolean> => {
    const session = await connect(options);
    try {
      if (!isReleased && (await isTaken(session, options))) {
        watch(session);
        return true;
      }
      const { name, backend } = await holderOf(session, options);
      if (backend !== undefined && backend !== lastBackend) tell(name);
    } catch (error) {
      await close(session, clock);
      throw error;
    }
    await close(session, clock);
    return false;
  };

  const again = async (): Promise<void> => {
    let told: string | undefined;
    const tell = (by: string): void => {
      if (by !== told) onChange({ state: 'taken', by });
      told = by;
    };
    onChange({ state: 'lost' });
    while (!isReleased) {
      // A database that is away is asked again.
      if (await tryOnce(tell).catch(() => false)) {
        onChange({ state: 'regained' });
        return;
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
        clock.setTimer(AGAIN_MS, resolve, { unref: true });
      });
    }
  };

  const watch = (session: Session): void => {
    held = session;
    lastBackend = backendOf(session);
    void session.ended.then(() => {
      if (isReleased || held !== session) return;
      held = undefined;
      void again();
    });
  };

  watch(first);
  return {
    release: async () => {
      isReleased = true;
      wake();
      if (held !== undefined) await close(held, clock);
      held = undefined;
    },
  };
}
