/** A private Postgres on loopback with its own password, for development and tests. */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { join, resolve } from 'node:path';
import { randomBytes } from '@signalbox/runtime/random';
import { silentLog, type Log } from '@signalbox/runtime/log';
import { childEnvironment, dieWithParentPrefix, pause, quietPort, startChild, StoreDataError, StoreError, waitUntil, type StoreProcess } from './child.js';
import { keepRunning } from './keep-running.js';
import { claimFolder, isAlive, releaseFolder } from './owner.js';
import { embeddedPostgres, localPostgres, type PostgresBinaries } from './postgres-binaries.js';
import { findIdentity, type Identity } from './unprivileged.js';

export interface StartPostgresOptions {
  /** Folder that is this instance's alone; made when missing, kept between starts. */
  readonly dataDir: string;
  readonly log?: Log;
  /** `safe` (default) survives power loss; `fast` gives that up and ends with this process: for tests only. */
  readonly durability?: 'safe' | 'fast';
  /** Nice levels that its sessions stand below this process, ≥ 0; default 0. */
  readonly niceness?: number;
  /** Binaries to use; default: the embedded package's, else the machine's. */
  readonly binaries?: PostgresBinaries;
  /** Folders to search for binaries, as PATH has them. */
  readonly path?: string;
  /** Called when there is nothing to do but to wait for the server, or first for the end of one before it. */
  readonly onWait?: (() => void) | undefined;
}

export interface LocalPostgres {
  /** `postgres://user:password@127.0.0.1:port/postgres?sslmode=disable`; holds the password: do not log it. */
  readonly url: string;
  readonly origin: PostgresBinaries['origin'];
  /** Closes connections and stops the server. Safe to call twice. */
  stop(): Promise<void>;
}

const USER = 'signalbox';
const START_LIMIT_MS = 30_000;
const NICENESS_MAX = 19;
/** What a server says where one before it was killed, and its process or a session of it is not gone yet; and how long that is waited for. */
const IS_LEAVING = /lock file "postmaster\.pid" already exists|pre-existing shared memory block/;
const LEAVING_MS_MAX = 10_000;
const LEAVING_STEP_MS = 100;
/** initdb names its own folder to a shell, within double quotes. */
const LOST_IN_A_SHELL = /["$`\\]/;
/** Characters of its log that are looked through for why it ended. */
const LOG_TAIL_MAX = 4_000;

function command(identity: Identity, binaries: PostgresBinaries, name: string, args: readonly string[], tail: readonly string[] = []): { command: string; args: string[] } {
  const [first = '', ...rest] = [...identity.prefix, ...tail, join(binaries.folder, name), ...args];
  return { command: first, args: rest };
}

/** Lines of postmaster.pid: pid, folder, start time, port, socket folder, address, shared memory, status. */
function readPidFile(cluster: string): { pid: number; port: number; isReady: boolean } | undefined {
  try {
    const lines = readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n');
    return { pid: Number(lines[0]), port: Number(lines[3]), isReady: lines[7]?.trim() === 'ready' };
  } catch {
    return undefined;
  }
}

/** True when `pid` is a Postgres of this very folder (where the system cannot tell: any live process of that number is not ours to stop). */
function isPostgresOf(pid: number, cluster: string): boolean {
  try {
    return isAlive(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(cluster);
  } catch {
    const answer = spawnSync('ps', ['-p', String(pid), '-o', 'args='], { encoding: 'utf8', timeout: 3_000 });
    return answer.status === 0 && answer.stdout.includes(cluster);
  }
}

/** Ends a Postgres that outlived its owner. SIGINT rolls open transactions back; what was committed is kept. */
async function stopOrphan(cluster: string, log: Log, onWait?: () => void): Promise<void> {
  const orphan = readPidFile(cluster);
  if (orphan === undefined || !Number.isInteger(orphan.pid) || orphan.pid <= 1 || !isPostgresOf(orphan.pid, cluster)) return;
  log.info('Stopping the Postgres that an earlier run left behind.', { pid: orphan.pid });
  for (const [signal, rounds] of [['SIGINT', 500], ['SIGQUIT', 250]] as const) {
    try {
      process.kill(orphan.pid, signal);
    } catch {
      return;
    }
    for (let round = 0; round < rounds; round += 1) {
      if (!isAlive(orphan.pid)) return;
      onWait?.();
      await pause(20);
    }
  }
  throw new StoreError(`A Postgres from an earlier run (process ${orphan.pid}) does not stop.`);
}

function run(program: string, args: readonly string[], libraryPath: string | undefined, identity: Identity): Promise<{ code: number | null; output: string }> {
  return new Promise((done, fail) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: '/',
      env: childEnvironment(libraryPath),
      ...(identity.uid === undefined ? {} : { uid: identity.uid }),
      ...(identity.gid === undefined ? {} : { gid: identity.gid }),
    });
    let output = '';
    const gather = (data: Buffer): void => {
      output = (output + data.toString('utf8')).slice(-4_000);
    };
    child.stdout.on('data', gather);
    child.stderr.on('data', gather);
    child.on('error', fail);
    child.on('close', (code) => done({ code, output }));
  });
}

function giveTo(identity: Identity, folder: string): void {
  if (identity.uid !== undefined) spawnSync('chown', ['-R', `${identity.uid}:${identity.gid ?? identity.uid}`, folder]);
}

/** What a program of Postgres complained of, else its last words; a full disk is told in the middle of what it says. */
function reasonOf(output: string): string {
  const lines = output.trim().split('\n');
  const complaints = lines.filter((line) => /\b(?:PANIC|FATAL|ERROR|error):/.test(line));
  return (complaints.length > 0 ? complaints.slice(0, 2) : lines.slice(-2)).join(' ');
}

async function createCluster(folder: string, cluster: string, password: string, binaries: PostgresBinaries, identity: Identity, isFast: boolean): Promise<void> {
  if (LOST_IN_A_SHELL.test(binaries.folder)) throw new StoreError(`Postgres makes no database from ${binaries.folder}: a path with ", $, \` or \\ is too much for it. Move this folder to another path, or set DATABASE_URL.`);
  // Made beside its final place and renamed, so that a crash in the middle leaves nothing half-made.
  const draft = `${cluster}.draft`;
  const passwordFile = join(folder, 'password.draft');
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  giveTo(identity, folder);
  const flags = ['-D', draft, '-U', USER, '--pwfile', passwordFile, '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', ...(isFast ? ['--no-sync'] : [])];
  const initdb = command(identity, binaries, 'initdb', flags);
  const { code, output } = await run(initdb.command, initdb.args, binaries.libraryPath, identity);
  rmSync(passwordFile, { force: true });
  if (code !== 0) throw new StoreError(`initdb failed: ${reasonOf(output)}`);
  renameSync(draft, cluster);
}

/** A database that is there has the password that it was made with, and takes no other. Throws StoreDataError when that is not kept any more. */
function loadPassword(folder: string, hasCluster: boolean): string {
  const path = join(folder, 'password');
  const kept = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  if (kept !== '') return kept;
  if (hasCluster) throw new StoreDataError(`The password of the database in ${folder} is not in ${path} any more: bring that file back from a backup.`);
  const password = Buffer.from(randomBytes(24)).toString('base64url');
  writeFileSync(`${path}.new`, password, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return password;
}

/** Which Postgres made the database; undefined where there is none yet. Throws StoreDataError where something is there that cannot be read as one: it is not made anew. */
function versionOf(cluster: string): number | undefined {
  let why = 'PG_VERSION names none';
  try {
    if (!existsSync(cluster) || readdirSync(cluster).length === 0) return undefined;
    const version = Number(readFileSync(join(cluster, 'PG_VERSION'), 'utf8').trim());
    if (Number.isInteger(version) && version > 0) return version;
  } catch (error) {
    why = error instanceof Error ? error.message : 'unknown';
  }
  throw new StoreDataError(`What is in ${cluster} cannot be read as a database (${why}): give it back to the user that this runs as, or bring all of it back from a backup.`);
}

async function chooseBinaries(options: StartPostgresOptions, needed: number | undefined): Promise<PostgresBinaries> {
  const candidates = options.binaries === undefined ? [embeddedPostgres, () => localPostgres(options.path ?? '')] : [() => options.binaries];
  for (const candidate of candidates) {
    const binaries = await candidate();
    if (binaries !== undefined && (needed === undefined || needed === binaries.major)) return binaries;
  }
  throw new StoreError(
    needed === undefined
      ? 'No Postgres runs here: install anew (rm -rf node_modules, then npm start), or set DATABASE_URL to a database that exists.'
      : `The data folder was made by Postgres ${needed}, which does not run here: install anew (rm -rf node_modules, then npm start), set DATABASE_URL, or choose another DATA_DIR.`,
  );
}

/**
 * Starts Postgres in `dataDir` on a free port of loopback, which it opens again after a crash. A Postgres left behind by a crash is stopped first
 * (committed data is kept). Throws StoreError with one line for a person, also when a live process owns the folder.
 */
export async function startPostgres(options: StartPostgresOptions): Promise<LocalPostgres> {
  const log = options.log ?? silentLog;
  const folder = resolve(options.dataDir);
  const cluster = join(folder, 'cluster');
  const isFast = options.durability === 'fast';
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  claimFolder(folder);
  try {
    await stopOrphan(cluster, log, options.onWait);
    const version = versionOf(cluster);
    const [identity, binaries] = await Promise.all([findIdentity(), chooseBinaries(options, version)]);
    const password = loadPassword(folder, version !== undefined);
    if (version === undefined) await createCluster(folder, cluster, password, binaries, identity, isFast);
    giveTo(identity, folder);
    chmodSync(cluster, 0o700);
    rmSync(logFileOf(folder), { force: true });
    const begin = async (port?: number): Promise<{ child: StoreProcess; port: number }> => {
      const begun = await launch(folder, cluster, binaries, identity, isFast, port, options.onWait);
      yieldBy(begun.child.pid, options.niceness ?? 0);
      return begun;
    };
    const { child, port } = await begin();
    const kept = keepRunning({ name: 'Postgres', first: child, begin: async () => (await begin(port)).child, log: log.child({ log_file: logFileOf(folder) }) });
    return {
      // It has no TLS: a PGSSLMODE that is meant for another database must not ask it for some.
      url: `postgres://${USER}:${password}@127.0.0.1:${port}/postgres?sslmode=disable`,
      origin: binaries.origin,
      stop: async () => {
        await kept.stop('SIGINT', 10_000);
        releaseFolder(folder);
      },
    };
  } catch (error) {
    releaseFolder(folder);
    throw error;
  }
}

/** Of the server's sessions to come; those that it has begun already keep theirs. */
function yieldBy(pid: number, niceness: number): void {
  if (niceness === 0) return;
  try {
    setPriority(pid, Math.min(NICENESS_MAX, getPriority() + niceness));
  } catch {
    // Not ours to lower: it runs as it is.
  }
}

const logFileOf = (folder: string): string => join(folder, 'postgres.log');

/**
 * Its two writers look once a second for what five looks a second found, so that an idle machine is woken less. Neither
 * makes anything durable: a commit writes its own log through before it is answered.
 */
const CALM_WRITERS = ['bgwriter_delay=1s', 'bgwriter_lru_maxpages=500', 'wal_writer_delay=1s'];

async function launch(folder: string, cluster: string, binaries: PostgresBinaries, identity: Identity, isFast: boolean, samePort?: number, onWait?: () => void): Promise<{ child: StoreProcess; port: number }> {
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=100', 'shared_buffers=32MB', ...CALM_WRITERS, ...(isFast ? ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'] : [])];
  const logFile = logFileOf(folder);
  const said = (): string => readFileSync(logFile, 'utf8');
  let leavingMs = 0;
  // A free port may be taken between our look and the server's bind: try again.
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    const before = existsSync(logFile) ? said().length : 0;
    const port = samePort ?? (await quietPort());
    const args = ['-D', cluster, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
    const server = command(identity, binaries, 'postgres', args, isFast ? dieWithParentPrefix('INT') : []);
    const child = await startChild({ ...server, logFile, libraryPath: binaries.libraryPath, uid: identity.uid, gid: identity.gid });
    onWait?.();
    const isReady = (): Promise<boolean> => {
      const state = readPidFile(cluster);
      return Promise.resolve(state !== undefined && state.pid === child.pid && state.isReady);
    };
    try {
      if (await waitUntil(child, isReady, START_LIMIT_MS)) return { child, port };
    } catch (error) {
      await child.stop('SIGQUIT', 5_000);
      throw error;
    }
    if (leavingMs < LEAVING_MS_MAX && IS_LEAVING.test(said().slice(before))) {
      await pause(LEAVING_STEP_MS);
      leavingMs += LEAVING_STEP_MS;
      attempt -= 1;
    }
  }
  throw new StoreError(`Postgres ended while starting: ${reasonOf(said().slice(-LOG_TAIL_MAX))} (${logFile}).`);
}
