/** Stores the catalogs that were in force, so that old decisions can be replayed. Several processes may share the files, since a file's name identifies its content. */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { OperatorTerms } from './build.js';
import type { CatalogRows } from './schema.js';

/** Most catalogs kept, of a few hundred kilobytes each. */
const KEPT_MAX = 30;
const FILE = /^cat_[0-9a-f]{16}\.json\.gz$/;
/** Largest size of one file, unpacked. */
const BYTES_MAX = 64 * 1_024 * 1_024;

export interface CatalogArchive {
  /** Writes in the background. If the disk fails, only later replays are lost. */
  keep(id: string, rows: CatalogRows, terms: OperatorTerms): void;
  /** Undefined if it was not stored or cannot be read. */
  find(id: string): Promise<{ readonly rows: CatalogRows; readonly terms: OperatorTerms } | undefined>;
}

interface Stored {
  readonly rows: CatalogRows;
  readonly terms: { readonly managedProviders: string[]; readonly byokProviders: string[]; readonly zdrAgreements: string[]; readonly offeredModels: [string, string[]][]; readonly today: string };
}

/** `onFailure` is called with the system's error code if a catalog could not be stored. */
export function createCatalogArchive(directory: string, onFailure: (code: string) => void): CatalogArchive {
  const pathOf = (id: string): string => join(directory, `${id}.json.gz`);

  async function write(id: string, rows: CatalogRows, terms: OperatorTerms): Promise<void> {
    const path = pathOf(id);
    if (await stat(path).then(() => true, () => false)) return;
    const stored: Stored = {
      rows,
      terms: { managedProviders: [...terms.managedProviders], byokProviders: [...terms.byokProviders], zdrAgreements: [...terms.zdrAgreements], offeredModels: [...terms.offeredModels].map(([provider, held]) => [provider, [...held]]), today: terms.today },
    };
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const partial = `${path}.${String(process.pid)}.part`;
    await writeFile(partial, await promisify(gzip)(JSON.stringify(stored)), { mode: 0o600 });
    await rename(partial, path);
    const files = (await readdir(directory)).filter((name) => FILE.test(name));
    const dated = await Promise.all(files.map(async (name) => ({ name, atMs: (await stat(join(directory, name))).mtimeMs })));
    dated.sort((left, right) => right.atMs - left.atMs);
    await Promise.all(dated.slice(KEPT_MAX).map(({ name }) => rm(join(directory, name), { force: true })));
  }

  return {
    keep: (id, rows, terms) => {
      write(id, rows, terms).catch((error: unknown) => onFailure(error instanceof Error && 'code' in error ? String(error.code) : 'unknown'));
    },
    find: async (id) => {
      if (!FILE.test(`${id}.json.gz`)) return undefined;
      try {
        const { rows, terms } = JSON.parse((await promisify(gunzip)(await readFile(pathOf(id)), { maxOutputLength: BYTES_MAX })).toString('utf8')) as Stored;
        const known: OperatorTerms = { managedProviders: new Set(terms.managedProviders), byokProviders: new Set(terms.byokProviders), zdrAgreements: new Set(terms.zdrAgreements), offeredModels: new Map(terms.offeredModels.map(([provider, held]) => [provider, new Set(held)])), today: terms.today };
        return { rows, terms: known };
      } catch {
        return undefined;
      }
    },
  };
}
