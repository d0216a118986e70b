// Installs dependencies and builds, each only if a content stamp shows that it is needed, and one process at a time.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureDashboard, isDashboardBuilt } from './build-dashboard.mjs';
import { digest, digestOfLock, install, installStampOf, isInstalled, needNode, root } from './dependencies.mjs';
import { run } from './run.mjs';
import { alone } from './work-lock.mjs';

export { root };

const modules = join(root, 'node_modules');
const BUILT = ['libs', 'services', 'deploy', 'tests', 'bench', 'sim', 'training'];

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

const read = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '');

async function runOrEnd(command, args, quiet, held) {
  // Progress goes to stderr, since stdout is for the command's own output.
  const { status, said } = await run(command, args, { cwd: root, quiet, held });
  if (status === 0) return;
  process.stderr.write(`${said}${command} ${args.join(' ')} failed.\n`);
  process.exit(1);
}

/** In a separate process: otherwise the bundler's 400 MB would stay resident in the program started next. */
async function bundle(programs, held) {
  return (await run(process.execPath, [join(root, 'scripts/bundle.mjs'), '--held', ...programs], { cwd: root, held })).status === 0;
}

/** A stamp marks completed work. With a full disk, a missing stamp is better than an error that hides the real one. */
function stamp(file, content) {
  try {
    writeFileSync(file, content);
  } catch (error) {
    process.stderr.write(`signalbox: ${file} cannot be written (${error.code ?? 'unknown'}): the next start repeats this step.\n`);
  }
}

const installStamp = installStampOf();
const buildStamp = join(modules, '.signalbox-build');
/** Programs are named as in scripts/bundle.mjs. */
const bundleStamp = (program) => join(modules, `.signalbox-bundle-${program}`);

const digestOfSources = () => digest([join(root, 'tsconfig.base.json'), join(root, 'tsconfig.json'), ...BUILT.flatMap((dir) => sourceFiles(join(root, dir)))]);

const isCompiled = (sources) => read(buildStamp) === sources && existsSync(join(root, 'deploy/standalone/dist/main.js'));
/** The file that is written last. */
const LAST_PROGRAM = { standalone: 'deploy/standalone/dist/program.js', services: 'services/worker-sim/dist/program.js' };
const isBundled = (program, bundled) => read(bundleStamp(program)) === bundled && existsSync(join(root, LAST_PROGRAM[program]));

/** Call before a build without `ensureBuilt`: removes stamps of other sources, which would count as valid again if those sources came back. */
export function forgetOtherBuild() {
  if (read(buildStamp) === digestOfSources()) return;
  for (const file of [buildStamp, ...Object.keys(LAST_PROGRAM).map(bundleStamp)]) rmSync(file, { force: true });
}

async function installAndBuild(programs, quiet, held) {
  const lock = digestOfLock();
  if (read(installStamp) !== lock) {
    if (!isInstalled()) {
      if (!quiet) process.stderr.write('signalbox: installing dependencies\n');
      const reason = await install({ quiet, held });
      if (reason !== undefined) {
        process.stderr.write(`${reason}\n`);
        process.exit(1);
      }
    }
    stamp(installStamp, lock);
  }
  const sources = digestOfSources();
  if (!isCompiled(sources)) {
    if (!quiet) process.stderr.write('signalbox: building\n');
    await runOrEnd(process.execPath, [join(modules, 'typescript/bin/tsc'), '-b'], quiet, held);
    stamp(buildStamp, sources);
  }
  const bundled = `${lock}${sources}`;
  const missing = programs.filter((program) => !isBundled(program, bundled));
  const hasBundles = missing.length === 0 || (await bundle(missing, held));
  if (hasBundles) for (const program of missing) stamp(bundleStamp(program), bundled);
  await ensureDashboard({ quiet, held });
  return hasBundles;
}

/** Brings node_modules and every dist up to date with the sources, after waiting for others. Returns whether the `programs` (`standalone`, `services`) are bundled. */
export async function ensureBuilt({ programs = ['standalone'], quiet = false } = {}) {
  needNode();
  const [lock, sources] = [digestOfLock(), digestOfSources()];
  // If everything is up to date, take no lock and write nothing.
  if (read(installStamp) === lock && isCompiled(sources) && programs.every((program) => isBundled(program, `${lock}${sources}`)) && isDashboardBuilt()) return true;
  return alone((held) => installAndBuild(programs, quiet, held));
}
