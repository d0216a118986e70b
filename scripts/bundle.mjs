// Bundles each program: dist/program.js next to its dist/main.js runs the bundle in dist/bundle, a few CommonJS files with
// V8's compiled code. The program then starts faster and uses less memory (ADR 28). `node scripts/bundle.mjs` bundles all
// programs, with `standalone` or `services` only those; with `--held` the parent process already has the folder's lock.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheOf, loadBundle } from './run-bundle.mjs';
import { alone } from './work-lock.mjs';

const here = fileURLToPath(import.meta.url);
const root = join(dirname(here), '..');
const STANDALONE = 'deploy/standalone';
/** The flags of `npm start`. Space for new objects: Node 20's default; that of Node 24 takes some 90 MB more (ADR 99). */
const STANDALONE_FLAGS = ['--v8-pool-size=1', '--no-memory-reducer', '--max-semi-space-size=16'];
/** Of an answer of the simulator, which takes a few milliseconds. */
const ANSWER_MS_MAX = 30_000;
const TO_ROOT = '__TO_ROOT__';
const PROTO_LOADER = '\0proto-loader';
const WARM = '\0warm';

const mainOf = (folder) => join(root, folder, 'dist/main.js');
const programOf = (folder) => join(root, folder, 'dist/program.js');
const bundleOf = (folder) => join(root, folder, 'dist/bundle');

/** Keeps `import.meta.url` of modules that read files next to themselves, wherever their code ends up. */
const keepPlaces = (folder) => ({
  name: 'keep-places',
  transform: (code, id) => (!id.startsWith('\0') && code.includes('import.meta.url') ? { code: code.replaceAll('import.meta.url', `new URL(${JSON.stringify(`${TO_ROOT}${relative(root, id)}`)}, import.meta.url).href`), map: null } : null),
  renderChunk: (code) => (code.includes(TO_ROOT) ? { code: code.replaceAll(TO_ROOT, `${relative(bundleOf(folder), root)}/`), map: null } : null),
});

/** Escapes characters beyond Latin-1: V8 stores a source text with a single one of them in twice the memory. In strings and patterns the escape means the same. A backslash before the character is replaced with it. */
const ascii = {
  name: 'ascii',
  generateBundle: (_options, bundle) => {
    const escaped = (match) => (match.charCodeAt(match.length - 1) < 128 ? match : `\\u${match.charCodeAt(match.length - 1).toString(16).padStart(4, '0')}`);
    for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') chunk.code = chunk.code.replace(/\\[^]|[^\0-\x7f]/g, escaped);
  },
};

/** Drops proto-loader, which grpc-js uses only for its Channelz service, unused here: its parser is a twentieth of the code that a service loads. */
const withoutProtoLoader = {
  name: 'without-proto-loader',
  resolveId: (source) => (source === '@grpc/proto-loader' ? PROTO_LOADER : null),
  load: (id) => (id === PROTO_LOADER ? { code: "export const loadSync = () => { throw new Error('Channelz is not in this program.'); };", moduleType: 'js' } : null),
};

/** CommonJS has no top-level await: wraps everything after the imports of the main module in an async function. */
const wrapMain = (main) => ({
  name: 'wrap-main',
  transform: (code, id) => {
    if (id !== main) return null;
    const lines = code.split('\n');
    const imports = lines.findLastIndex((line) => line.startsWith('import ')) + 1;
    return { code: [...lines.slice(0, imports), 'void (async () => {', ...lines.slice(imports).filter((line) => !line.startsWith('//#')), '})();'].join('\n'), map: null };
  },
});

/** Loads the modules of an all-in-one after setting the flags that it sets for itself at run time, and returns what `practise` needs of them. */
function warmStandalone() {
  const [process, ...modules] = ['libs/runtime/dist/process.js', `${STANDALONE}/dist/run.js`, `${STANDALONE}/dist/compose.js`, 'libs/local-stores/dist/postgres.js'].map((file) => JSON.stringify(join(root, file)));
  return `import { tuneProcess } from ${process};\nexport async function warm() {\n  tuneProcess();\n  return Object.assign({}, ${modules.map((file) => `await import(${file})`).join(', ')});\n}\n`;
}

/** Imports what the main module of a service imports. Paths are absolute, since this module has no place on disk. */
function warmService(main) {
  const names = [...readFileSync(main, 'utf8').matchAll(/^import .* from '([^']+)';/gm)].map(([, name]) => name).filter((name) => !name.startsWith('node:'));
  return names.map((name, at) => `export * as part${at} from ${JSON.stringify(name.startsWith('.') ? join(dirname(main), name) : name)};\n`).join('');
}

/** A second entry that loads the same code as the program without starting it. */
const warm = (folder) => ({
  name: 'warm',
  resolveId: (source, importer) => (source === WARM ? WARM : importer === WARM && !source.startsWith('/') ? { id: fileURLToPath(import.meta.resolve(source)) } : null),
  load: (id) => (id === WARM ? { code: folder === STANDALONE ? warmStandalone() : warmService(mainOf(folder)), moduleType: 'js' } : null),
});

// Functions and classes keep their names for stack traces and profiles. Other names are shortened, since V8 keeps the source text of functions that it may still compile.
const minify = { mangle: { toplevel: false, keepNames: true }, compress: false, codegen: { removeWhitespace: true } };

// What a slow machine is told of how long our own plugins took is of no use to whoever starts the program.
const QUIET = { bundlerTimings: false };

async function bundleProgram(rolldown, folder) {
  rmSync(bundleOf(folder), { recursive: true, force: true });
  const bundle = await rolldown({ input: { main: mainOf(folder), warm: WARM }, platform: 'node', plugins: [withoutProtoLoader, warm(folder), wrapMain(mainOf(folder)), keepPlaces(folder), ascii], logLevel: 'warn', checks: QUIET });
  // Strict, as ES modules are: otherwise writing to a frozen object would fail silently.
  await bundle.write({ dir: bundleOf(folder), format: 'cjs', strict: true, dynamicImportInCjs: false, minify, entryFileNames: '[name].cjs', chunkFileNames: '[name]-[hash].cjs' });
  await bundle.close();
}

/** Stores V8's compiled code next to the files, in a process with the program's flags: V8 accepts compiled code only under the same flags. */
async function compile(folder, flagsOf) {
  const child = spawn(process.execPath, [...(folder === STANDALONE ? STANDALONE_FLAGS : flagsOf(folder.slice(folder.lastIndexOf('/') + 1))), here, '--compile', bundleOf(folder)], { stdio: ['ignore', 'ignore', 2] });
  const [status] = await once(child, 'close');
  if (status !== 0) process.stderr.write(`signalbox: the compiled code of ${folder} could not be stored; it is compiled at each start instead.\n`);
  const loader = relative(dirname(programOf(folder)), join(root, 'scripts/run-bundle.mjs'));
  // Written last: it shows that the bundle is complete.
  writeFileSync(programOf(folder), `import { fileURLToPath } from 'node:url';\nimport { loadBundle } from '${loader}';\nloadBundle(fileURLToPath(new URL('bundle/main.cjs', import.meta.url)));\n`);
}

/** A new folder for the practice, below the system's: Postgres may run as a user who may not enter ours. Removes what a killed build of this source folder left there, since only one builds at a time. */
export function practiceFolder() {
  const prefix = `signalbox-practice-${createHash('sha256').update(root).digest('hex').slice(0, 12)}-`;
  for (const name of readdirSync(tmpdir())) if (name.startsWith(prefix)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  const folder = mkdtempSync(join(tmpdir(), prefix));
  chmodSync(folder, 0o711);
  return folder;
}

/** Starts the all-in-one twice in a folder of its own, since a second start reads what the first one wrote, and asks it for an answer and a stream. */
async function practise({ startPostgres, startStandalone }) {
  const folder = practiceFolder();
  let postgres;
  try {
    postgres = await startPostgres({ dataDir: join(folder, 'postgres'), durability: 'fast' });
    const environment = { DATA_DIR: folder, PORT: '0', ADMIN_PORT: '0', SIMULATOR: 'on', OLLAMA: 'off', LOG_LEVEL: 'error' };
    let key;
    for (let start = 1; start <= 2; start += 1) {
      const gateway = await startStandalone(environment, Promise.resolve({ databaseUrl: postgres.url, stop: () => Promise.resolve() }));
      key ??= gateway.firstKey;
      for (const stream of [false, true]) {
        const body = JSON.stringify({ model: 'simulator/fast', stream, messages: [{ role: 'user', content: 'Hello!' }] });
        await (await fetch(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body, signal: AbortSignal.timeout(ANSWER_MS_MAX) })).text();
      }
      await gateway.stop();
    }
  } finally {
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What V8 stores is the code of the functions that were called before: the others are compiled at each start, when they are called. */
async function keepCompiled(bundle) {
  const loaded = new Map();
  const { warm: load } = loadBundle(join(bundle, 'warm.cjs'), loaded);
  // An all-in-one loads these files before it sets its flags, so V8 would reject their code.
  const early = new Set(load === undefined ? [] : loaded.keys());
  const modules = await load?.();
  // Without it, a start only takes longer: it may fail where no Postgres runs, or a port is refused.
  if (modules !== undefined) await practise(modules).catch((error) => process.stderr.write(`signalbox: starts take longer, since their code could not be compiled beforehand (${error instanceof Error ? error.message : 'unknown cause'}).\n`));
  for (const [file, { script }] of loaded) if (!early.has(file)) writeFileSync(cacheOf(file), script.createCachedData());
}

const folderIsBuilt = (folder) => existsSync(mainOf(folder));
const FOLDERS = {
  standalone: () => [STANDALONE].filter(folderIsBuilt),
  services: () => readdirSync(join(root, 'services')).sort().map((name) => `services/${name}`).filter(folderIsBuilt),
};
export const PROGRAMS = Object.keys(FOLDERS);

/** Bundles some of PROGRAMS; returns whether that succeeded. Programs also run from their modules, so nothing is thrown. */
export async function bundlePrograms(programs = PROGRAMS) {
  try {
    const { rolldown } = await import('rolldown');
    const { v8FlagsOf } = await import('../deploy/split/dist/v8-flags.js');
    const folders = programs.flatMap((name) => FOLDERS[name]());
    for (const folder of folders) rmSync(programOf(folder), { force: true });
    let compiling = Promise.resolve();
    for (const folder of folders) {
      await bundleProgram(rolldown, folder);
      // Compiled while the next one is bundled.
      compiling = compiling.then(() => compile(folder, v8FlagsOf));
    }
    await compiling;
    return true;
  } catch (error) {
    process.stderr.write(`signalbox: the programs could not be bundled; running them from their modules: ${error instanceof Error ? error.message : 'unknown cause'}\n`);
    return false;
  }
}

if (process.argv[1] === here) {
  const args = process.argv.slice(2);
  if (args[0] === '--compile') await keepCompiled(args[1]);
  else {
    const asked = PROGRAMS.filter((name) => args.includes(name));
    const work = () => bundlePrograms(asked.length > 0 ? asked : PROGRAMS);
    if (!(await (args.includes('--held') ? work() : alone(work)))) process.exit(1);
  }
}
