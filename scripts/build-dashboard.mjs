// Builds the dashboard if a content stamp shows that it is needed. Run alone: `npm run build:dashboard`.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run.mjs';
import { alone } from './work-lock.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const folder = join(root, 'services/dashboard');
const site = join(folder, 'dist/site');
const stampFile = join(folder, 'dist/.stamp');

function files(dir) {
  return readdirSync(dir, { withFileTypes: true })
    .filter(({ name }) => name !== 'dist' && name !== 'node_modules')
    .flatMap((entry) => (entry.isDirectory() ? files(join(dir, entry.name)) : [join(dir, entry.name)]));
}

function stamp() {
  const hash = createHash('sha256');
  for (const file of [join(root, 'package-lock.json'), ...files(folder).sort()]) hash.update(file.slice(root.length)).update('\0').update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}

const isBuilt = (wanted) => existsSync(join(site, 'index.html')) && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === wanted;

export const isDashboardBuilt = () => isBuilt(stamp());

/** Returns whether the dashboard is built. The gateway works without it, so nothing is thrown. */
export async function ensureDashboard({ quiet = false, held } = {}) {
  const wanted = stamp();
  if (isBuilt(wanted)) return true;
  if (!quiet) process.stderr.write('signalbox: building the dashboard\n');
  const { status, said } = await run(process.execPath, [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--logLevel', 'warn'], { cwd: folder, quiet: true, held });
  if (status === 0) {
    writeFileSync(stampFile, wanted);
    return true;
  }
  process.stderr.write(`${said}signalbox: the dashboard could not be built; the gateway works without it.\n`);
  return false;
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !(await alone((held) => ensureDashboard({ held })))) process.exit(1);
