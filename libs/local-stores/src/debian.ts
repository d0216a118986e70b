/** On Debian-like systems: a store's packages downloaded and unpacked into a cache folder, not installed. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findExecutable } from './child.js';

export interface Unpacked {
  readonly root: string;
  readonly libraryPath: string;
}

const DOWNLOAD_LIMIT_MS = 180_000;

function lines(command: string, args: readonly string[], cwd?: string): readonly string[] | undefined {
  const answer = spawnSync(command, args, { encoding: 'utf8', timeout: DOWNLOAD_LIMIT_MS, ...(cwd === undefined ? {} : { cwd }) });
  return answer.status === 0 ? answer.stdout.split('\n').filter((line) => line !== '') : undefined;
}

const depends = (name: string): readonly string[] => {
  const flags = ['--recurse', '--no-recommends', '--no-suggests', '--no-conflicts', '--no-breaks', '--no-replaces', '--no-enhances'];
  return (lines('apt-cache', ['depends', ...flags, name]) ?? []).filter((line) => /^[a-z0-9]/.test(line)).map((line) => line.replace(/:.*$/, ''));
};

/** What an installation would bring: of packages that can stand for each other one. Undefined when none can be worked out. */
function wouldInstall(name: string): readonly string[] | undefined {
  const names = (lines('apt-get', ['-s', 'install', '--no-install-recommends', name]) ?? []).flatMap((line) => /^Inst ([^ ]+) /.exec(line)?.[1] ?? []);
  return names.length === 0 ? undefined : names;
}

/** The package and what it needs that is not installed here. */
function missingPackages(name: string): readonly string[] {
  // Packages of one family link to each other's files by relative paths: all of them are unpacked together.
  const family = name.split('-')[0] ?? name;
  const all = depends(name);
  const brought = wouldInstall(name) ?? all.filter((candidate) => !lines('dpkg-query', ['-W', '-f=${db:Status-Status}', candidate])?.includes('installed'));
  return [...new Set([name, ...all.filter((candidate) => candidate.startsWith(family)), ...brought])];
}

const isLibrary = (file: string): boolean => /^lib.*\.so(?:\.|$)/.test(file);

function libraryFolders(root: string): string {
  const folders = [join(root, 'usr/lib'), join(root, 'lib')].filter(existsSync);
  const nested = folders.flatMap((folder) => readdirSync(folder).filter((entry) => entry.includes('-linux-')).map((entry) => join(folder, entry)));
  // Some keep libraries of their own in a folder below, which they know by the path of an installation.
  const own = nested.flatMap((folder) => readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name))).filter((folder) => readdirSync(folder).some(isLibrary));
  return [...nested, ...folders, ...own].join(':');
}

/** False when the package itself is not to be had. */
function download(name: string, folder: string): boolean {
  const wanted = missingPackages(name);
  if (lines('apt-get', ['download', '-qq', ...wanted], folder) !== undefined) return true;
  // One by one: virtual packages cannot be downloaded; if a real one is missing the binary will not run, which the caller sees.
  return wanted.every((one) => lines('apt-get', ['download', '-qq', one], folder) !== undefined || one !== name);
}

/** Unpacks package `name` below `cacheFolder`, once. Undefined when the system is not Debian-like or offline. */
export function unpackDebianPackage(name: string, cacheFolder: string, path: string): Unpacked | undefined {
  const root = join(cacheFolder, name);
  if (existsSync(root)) return { root, libraryPath: libraryFolders(root) };
  if (['apt-get', 'apt-cache', 'dpkg', 'dpkg-query'].some((tool) => findExecutable(tool, path) === undefined)) return undefined;
  if (lines('apt-cache', ['show', name]) === undefined) {
    // Slim images come without package lists; only root may fetch them.
    if (process.getuid?.() !== 0 || lines('apt-get', ['update', '-qq']) === undefined) return undefined;
  }
  const draft = `${root}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  try {
    if (!download(name, draft)) return undefined;
    for (const archive of readdirSync(draft).filter((file) => file.endsWith('.deb'))) {
      if (lines('dpkg', ['-x', archive, '.'], draft) === undefined) return undefined;
      rmSync(join(draft, archive));
    }
    renameSync(draft, root);
    return { root, libraryPath: libraryFolders(root) };
  } catch {
    // Another process may have unpacked it meanwhile.
    return existsSync(root) ? { root, libraryPath: libraryFolders(root) } : undefined;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
