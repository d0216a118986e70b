// Installs the lock and builds, only when needed: a stamp of the lock's content and TypeScript's own build info decide.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

export const root = fileURLToPath(new URL('..', import.meta.url));
// The same stamp as ensure-built.mjs, so that a start after a test installs nothing again.
const stampFile = join(root, 'node_modules/.signalbox-install');
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';

function lockStamp() {
  return createHash('sha256').update(process.version).update('/package-lock.json').update('\0').update(readFileSync(join(root, 'package-lock.json'))).update('\0').digest('hex');
}

function isInstalled() {
  if (!existsSync(join(root, 'node_modules'))) return false;
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === lockStamp()) return true;
  // Installed by hand: npm's own copy of the lock is as new as the lock.
  const copy = join(root, 'node_modules/.package-lock.json');
  return existsSync(copy) && statSync(copy).mtimeMs >= statSync(join(root, 'package-lock.json')).mtimeMs;
}

/** Runs `npm ci` when node_modules is missing or belongs to another lock. All output goes to stderr. Throws when it fails. */
export function ensureInstalled() {
  if (!isInstalled()) {
    process.stderr.write('Installing dependencies (npm ci) …\n');
    // The tools that build and test are development dependencies, whatever NODE_ENV says.
    const { status } = spawnSync(npm, ['ci', '--no-audit', '--no-fund', '--include=dev', '--include=optional'], { cwd: root, stdio: ['ignore', 2, 2] });
    if (status !== 0) throw new Error('npm ci failed.');
  }
  writeFileSync(stampFile, lockStamp());
}

/** Runs `tsc -b`, which itself skips what is up to date. Answers whether it succeeded; output goes to stderr. */
export function build(projects = []) {
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', ...projects], { cwd: root, stdio: ['ignore', 2, 2] });
  return status === 0;
}
