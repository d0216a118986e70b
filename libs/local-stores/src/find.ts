/** Finds or starts the three stores, in the order: given URLs, containers, local binaries, downloaded packages, embedded Postgres. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog, type Log } from '@signalbox/runtime/log';
import { findExecutable, StoreDataError, StoreError } from './child.js';
import { dockerAnswers, startContainer } from './containers.js';
import { unpackDebianPackage } from './debian.js';
import { startNats } from './nats.js';
import { claimFolder, releaseFolder } from './owner.js';
import { embeddedPostgres, localPostgres, unpackedPostgres, type PostgresBinaries } from './postgres-binaries.js';
import { startPostgres } from './postgres.js';
import { startRedis } from './redis.js';

export type StoreName = 'postgres' | 'redis' | 'nats';
const STORE_NAMES: readonly StoreName[] = ['postgres', 'redis', 'nats'];

export interface FoundStore {
  /** May hold a password: do not log it. */
  readonly url: string;
  readonly origin: 'given' | 'container' | 'local' | 'downloaded' | 'embedded';
}

export interface FindStoresOptions {
  /** Stores that exist already; absent or empty: found or started here. */
  readonly databaseUrl?: string | undefined;
  readonly redisUrl?: string | undefined;
  readonly natsUrl?: string | undefined;
  /** Folders to search for programs; default: PATH of this process. */
  readonly path?: string;
  /** Stores wanted; default all. */
  readonly wanted?: readonly StoreName[];
  /** Keeps data here between starts, safely, and servers running that a crash or a kill ended; absent: in a temporary folder, fast, and removed at stop. */
  readonly dataDir?: string;
  /** Cache of unpacked packages; default `~/.cache/signalbox/stores`. */
  readonly cacheDir?: string;
  readonly log?: Log;
}

export interface FoundStores {
  readonly stores: Readonly<Partial<Record<StoreName, FoundStore>>>;
  /** Each throws StoreError, with a line for a person, when the store is missing. */
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly natsUrl: string;
  readonly missing: readonly StoreName[];
  /** One line for a person, without secrets: `postgres (local), redis (given); missing: nats`. */
  readonly summary: string;
  /** Stops what was started here. Safe to call twice. */
  stop(): Promise<void>;
}

const VARIABLES: Readonly<Record<StoreName, string>> = { postgres: 'DATABASE_URL', redis: 'REDIS_URL', nats: 'NATS_URL' };

interface Started extends FoundStore {
  stop?(): Promise<void>;
}

interface Place {
  readonly path: string;
  readonly cacheDir: string;
  readonly folder: string;
  readonly isKept: boolean;
  readonly log: Log;
}

async function startPostgresFrom(binaries: PostgresBinaries | undefined, place: Place): Promise<Started | undefined> {
  if (binaries === undefined) return undefined;
  const store = await startPostgres({ dataDir: join(place.folder, 'postgres'), binaries, durability: place.isKept ? 'safe' : 'fast', log: place.log });
  return { url: store.url, origin: store.origin, stop: () => store.stop() };
}

async function startServer(store: 'redis' | 'nats', executable: string | undefined, libraryPath: string | undefined, place: Place): Promise<Started | undefined> {
  if (executable === undefined) return undefined;
  const folder = join(place.folder, store);
  const own = { executable, ...(libraryPath === undefined ? {} : { libraryPath }), ...(place.isKept ? { keep: place.log } : {}) };
  const server = store === 'redis' ? await startRedis({ ...own, dataDir: folder, appendOnly: place.isKept }) : await startNats({ ...own, storeDir: folder });
  return { url: server.url, origin: libraryPath === undefined ? 'local' : 'downloaded', stop: () => server.stop() };
}

/** The ways to get a store started, in order of preference. */
function waysOf(store: StoreName, place: Place): readonly (() => Promise<Started | undefined>)[] {
  if (store === 'postgres') {
    return [
      async () => startPostgresFrom(await localPostgres(place.path), place),
      // Before a download: it is installed with us.
      async () => startPostgresFrom(await embeddedPostgres(), place),
      async () => {
        const unpacked = unpackDebianPackage('postgresql', place.cacheDir, place.path);
        return startPostgresFrom(unpacked === undefined ? undefined : await unpackedPostgres(unpacked.root, unpacked.libraryPath), place);
      },
    ];
  }
  const program = `${store}-server`;
  return [
    () => startServer(store, findExecutable(program, place.path), undefined, place),
    () => {
      const unpacked = unpackDebianPackage(program, place.cacheDir, place.path);
      const found = unpacked === undefined ? undefined : findExecutable(program, join(unpacked.root, 'usr/bin'), [join(unpacked.root, 'usr/sbin')]);
      const isOurs = unpacked !== undefined && found?.startsWith(unpacked.root) === true;
      return startServer(store, isOurs ? found : undefined, unpacked?.libraryPath, place);
    },
  ];
}

/** Never rejects for a store that cannot be had: it is in `missing`. Rejects with StoreError when a living process has its stores in `dataDir`. */
export async function findStores(options: FindStoresOptions = {}): Promise<FoundStores> {
  const { wanted = STORE_NAMES, log = silentLog } = options;
  const folder = options.dataDir ?? mkdtempSync(join(tmpdir(), 'signalbox-stores-'));
  // Postgres may run as another user, who must get to its folder below.
  if (options.dataDir === undefined) chmodSync(folder, 0o711);
  const place: Place = {
    path: options.path ?? process.env['PATH'] ?? '',
    cacheDir: options.cacheDir ?? join(homedir(), '.cache', 'signalbox/stores'),
    folder,
    isKept: options.dataDir !== undefined,
    log,
  };
  const givenUrls: Readonly<Record<StoreName, string | undefined>> = { postgres: options.databaseUrl, redis: options.redisUrl, nats: options.natsUrl };
  const isStarting = wanted.some((store) => (givenUrls[store] ?? '') === '');
  // Two servers that write the same files ruin them, and Redis and NATS let a second one in.
  const isClaimed = place.isKept && isStarting;
  if (isClaimed) {
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    claimFolder(folder);
  }
  const hasDocker = !place.isKept && isStarting && dockerAnswers();

  /** Why the way that is preferred failed, by store: those after it may have failed for less. */
  const reasons = new Map<StoreName, string>();
  const find = async (store: StoreName): Promise<Started | undefined> => {
    const given = givenUrls[store];
    if (given !== undefined && given !== '') return { url: given, origin: 'given' };
    const container = hasDocker ? await startContainer(store) : undefined;
    if (container !== undefined) return { url: container.url, origin: 'container', stop: () => container.stop() };
    for (const way of waysOf(store, place)) {
      try {
        const started = await way();
        if (started !== undefined) return started;
      } catch (error) {
        const reason = error instanceof Error ? error.message : 'unknown';
        if (!reasons.has(store)) reasons.set(store, reason);
        log.warn('A way to start a store failed.', { store, reason });
        // Nothing is downloaded for data that no program can read.
        if (error instanceof StoreDataError) return undefined;
      }
    }
    return undefined;
  };

  const found = await Promise.all(wanted.map(async (store) => [store, await find(store)] as const));
  const present = found.flatMap(([store, started]) => (started === undefined ? [] : [[store, started] as const]));
  const missing = found.filter(([, started]) => started === undefined).map(([store]) => store);
  const urlOf = (store: StoreName): string => {
    const url = present.find(([name]) => name === store)?.[1].url;
    const reason = reasons.get(store);
    if (url === undefined) throw new StoreError(reason === undefined ? `No ${store} could be found or started: set ${VARIABLES[store]}.` : `The ${store} of ${folder} could not be started, and ${VARIABLES[store]} is not set. ${reason}`);
    return url;
  };
  let stopped: Promise<void> | undefined;
  return {
    get databaseUrl() {
      return urlOf('postgres');
    },
    get redisUrl() {
      return urlOf('redis');
    },
    get natsUrl() {
      return urlOf('nats');
    },
    stores: Object.fromEntries(present.map(([store, { url, origin }]) => [store, { url, origin }])),
    missing,
    summary: [...present.map(([store, { origin }]) => `${store} (${origin})`)].join(', ') + (missing.length === 0 ? '' : `${present.length === 0 ? '' : '; '}missing: ${missing.join(', ')}`),
    stop: () => {
      stopped ??= (async () => {
        await Promise.allSettled(present.map(([, started]) => started.stop?.()));
        if (isClaimed) releaseFolder(folder);
        if (!place.isKept) rmSync(folder, { recursive: true, force: true });
      })();
      return stopped;
    },
  };
}
