// Checks the version of Node and installs dependencies: what every other script needs first.
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run.mjs';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Lines of npm's own log that are shown where it failed. */
const REASON_LINES = 12;

/** Ends the process if Node is too old, before anything is installed. */
export function needNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  process.stderr.write(`Signalbox needs Node 20.19 or newer; this is ${process.version}.\n`);
  process.exit(1);
}

export function digest(files, folder = root) {
  const hash = createHash('sha256').update(process.version);
  for (const file of files) hash.update(file.slice(folder.length)).update('\0').update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}

export const digestOfLock = (folder = root) => digest([join(folder, 'package-lock.json')], folder);
export const installStampOf = (folder = root) => join(folder, 'node_modules/.signalbox-install');

const timeOf = (file) => (existsSync(file) ? statSync(file).mtimeMs : -1);

/**
 * Decided by the stamp of the last installation. After `npm ci` by hand there is no stamp or an older one; then npm's copy of
 * the lock file, which it writes last, must be as new as the lock file. The compiler must exist, since `--omit=dev` skips it.
 */
export function isInstalled(folder = root) {
  const stampFile = installStampOf(folder);
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === digestOfLock(folder)) return true;
  const copied = timeOf(join(folder, 'node_modules/.package-lock.json'));
  return copied > timeOf(stampFile) && copied >= timeOf(join(folder, 'package-lock.json')) && existsSync(join(folder, 'node_modules/typescript/bin/tsc'));
}

/** Undefined on a full disk: npm is left to say why. */
function logsFolder() {
  try {
    return mkdtempSync(join(tmpdir(), 'signalbox-npm-'));
  } catch {
    return undefined;
  }
}

/** The error lines of npm's logs in this folder, else its last lines; empty if it wrote nothing. */
function reasonIn(logs) {
  const lines = readdirSync(logs).sort().flatMap((name) => readFileSync(join(logs, name), 'utf8').split('\n'));
  const errors = lines.flatMap((line) => /^\d+ error (.*\S)/.exec(line)?.[1] ?? []).filter((line) => !line.startsWith('A complete log'));
  return (errors.length > 0 ? errors.slice(0, REASON_LINES) : lines.filter((line) => line !== '').slice(-REASON_LINES)).join('\n');
}

/**
 * Runs `npm ci`. Answers undefined, or why it failed, in npm's own words: its output may be on another stream than ours,
 * and its log on a machine that is gone. The log stays where npm says that it is.
 */
export async function install({ folder = root, quiet = false, held, logs = logsFolder() } = {}) {
  // The tools that build and test are development dependencies, whatever NODE_ENV says.
  const { status, said } = await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error', '--include=dev', '--include=optional', ...(logs === undefined ? [] : [`--logs-dir=${logs}`])], { cwd: folder, quiet, held });
  if (status !== 0) return `npm ci failed (${status === null ? 'it could not be started, or a signal ended it' : `exit code ${status}`}).\n${(logs === undefined ? '' : reasonIn(logs)) || said}`.trimEnd();
  if (logs !== undefined) rmSync(logs, { recursive: true, force: true });
  return undefined;
}
