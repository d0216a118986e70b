// Installs the lock and builds, each only when a content stamp says that it is needed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureDashboard } from './build-dashboard.mjs';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const modules = join(root, 'node_modules');
const BUILT = ['libs', 'services', 'deploy', 'tests', 'bench', 'training'];

function sourceFiles(dir) {
  const found = [];
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (entry.name === 'node_modules' || entry.name === 'dist' || entry.name.startsWith('.')) continue;
    const path = join(dir, entry.name);
    if (entry.isDirectory()) found.push(...sourceFiles(path));
    else if (/\.(ts|mts|mjs)$|^(package|tsconfig)\.json$/.test(entry.name)) found.push(path);
  }
  return found;
}

function digest(files) {
  const hash = createHash('sha256').update(process.version);
  for (const file of files) hash.update(file.slice(root.length)).update('\0').update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}

const read = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '');

function run(command, args, quiet) {
  // A person's progress goes to stderr: stdout belongs to the command's own answer.
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, stdio: quiet ? 'pipe' : ['ignore', 2, 2], encoding: 'utf8' });
  if (status === 0) return;
  if (quiet) process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`);
  process.stderr.write(`${command} ${args.join(' ')} failed.\n`);
  process.exit(1);
}

/** In a process of its own: the bundler would leave 400 MB resident in what is started next, for as long as that runs. */
function bundle() {
  return spawnSync(process.execPath, [join(root, 'scripts/bundle.mjs')], { cwd: root, stdio: ['ignore', 2, 2] }).status === 0;
}

/** Leaves node_modules and every dist as the sources say. Answers whether the programs are bundled. */
export function ensureBuilt({ quiet = false } = {}) {
  const installStamp = join(modules, '.signalbox-install');
  const buildStamp = join(modules, '.signalbox-build');
  const bundleStamp = join(modules, '.signalbox-bundle');
  const lock = digest([join(root, 'package-lock.json')]);
  if (read(installStamp) !== lock) {
    if (!quiet) process.stderr.write('signalbox: installing dependencies\n');
    run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], quiet);
    writeFileSync(installStamp, lock);
  }
  const sources = digest([join(root, 'tsconfig.base.json'), join(root, 'tsconfig.json'), ...BUILT.flatMap((dir) => sourceFiles(join(root, dir)))]);
  if (read(buildStamp) !== sources || !existsSync(join(root, 'deploy/standalone/dist/main.js'))) {
    if (!quiet) process.stderr.write('signalbox: building\n');
    run(process.execPath, [join(modules, 'typescript/bin/tsc'), '-b'], quiet);
    writeFileSync(buildStamp, sources);
  }
  const bundled = `${lock}${sources}`;
  const isBundled = (read(bundleStamp) === bundled && existsSync(join(root, 'deploy/standalone/dist/program.js'))) || bundle();
  if (isBundled) writeFileSync(bundleStamp, bundled);
  ensureDashboard({ quiet });
  return isBundled;
}
