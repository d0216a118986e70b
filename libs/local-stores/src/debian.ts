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

/** The package and what it needs that is not installed here. */
function missingPackages(name: string): readonly string[] {
  const flags = ['--recurse', '--no-recommends', '--no-suggests', '--no-conflicts', '--no-breaks', '--no-replaces', '--no-enhances'];
  const all = (lines('apt-cache', ['depends', ...flags, name]) ?? []).filter((line) => /^[a-z0-9]/.test(line)).map((line) => line.replace(/:.*$/, ''));
  // Packages of one family link to each other's files by relative paths: all of them are unpacked together.
  const family = name.split('-')[0] ?? name;
  return [...new Set([name, ...all])].filter((candidate) => candidate.startsWith(family) || !lines('dpkg-query', ['-W', '-f=${db:Status-Status}', candidate])?.includes('installed'));
}

function libraryFolders(root: string): string {
  const folders = [join(root, 'usr/lib'), join(root, 'lib')].filter(existsSync);
  const nested = folders.flatMap((folder) => readdirSync(folder).filter((entry) => entry.includes('-linux-')).map((entry) => join(folder, entry)));
  return [...nested, ...folders].join(':');
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
    for (const wanted of missingPackages(name)) {
      // Virtual packages cannot be downloaded; if a real one is missing the binary will not run, which the caller sees.
      const downloaded = lines('apt-get', ['download', '-qq', wanted], draft);
      if (downloaded === undefined && wanted === name) return undefined;
    }
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
