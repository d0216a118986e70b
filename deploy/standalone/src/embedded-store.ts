/** The database of the all-in-one process: the given one, else a private Postgres in the data folder. */
import { startPostgres } from '@signalbox/local-stores/postgres';
import { logLevelOf } from '@signalbox/runtime/config';
import { createLog } from '@signalbox/runtime/log';
import { resolve } from 'node:path';

/** Lower priority: booking happens in batches and may wait for code that answers requests, without preempting it. On a fully used core Postgres still gets a seventh, twice what it needs. */
const NICENESS = 8;

export interface EmbeddedStore {
  /** May contain a password: do not log it. */
  readonly databaseUrl: string;
  stop(): Promise<void>;
}

/** Call early: Postgres starts in its own process while this one still loads the services. `onWait` is called when there is nothing to do but to wait for it. */
export async function openEmbeddedStore(environment: Readonly<Record<string, string | undefined>>, onWait: () => void): Promise<EmbeddedStore> {
  const given = environment['DATABASE_URL'] ?? '';
  if (given !== '') return { databaseUrl: given, stop: () => Promise.resolve() };
  const log = createLog({ service: 'postgres', level: logLevelOf(environment, 'warn') });
  const postgres = await startPostgres({ dataDir: `${resolve(environment['DATA_DIR'] || '.data')}/postgres`, log, niceness: NICENESS, onWait });
  return { databaseUrl: postgres.url, stop: () => postgres.stop() };
}
