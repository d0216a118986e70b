// Writes each program once more: dist/program.js beside its dist/main.js runs what lies in dist/bundle, a few CommonJS
// files with what V8 compiled of them. It starts faster and holds less memory. `node scripts/bundle.mjs` bundles all of
// them, `… standalone` the all-in-one and `… services` the services; with `--held` whoever starts it has the folder already.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheOf, loadBundle } from './run-bundle.mjs';
import { alone } from './work-lock.mjs';

const here = fileURLToPath(import.meta.url);
const root = join(dirname(here), '..');
const STANDALONE = 'deploy/standalone';
/** Those of `npm start`. */
const STANDALONE_FLAGS = ['--v8-pool-size=1', '--no-memory-reducer'];
const TO_ROOT = '__TO_ROOT__';
const PROTO_LOADER = '\0proto-loader';
const WARM = '\0warm';

const mainOf = (folder) => join(root, folder, 'dist/main.js');
const programOf = (folder) => join(root, folder, 'dist/program.js');
const bundleOf = (folder) => join(root, folder, 'dist/bundle');

/** A module that looks for files beside itself goes on looking where it stood, wherever its code is put. */
const keepPlaces = (folder) => ({
  name: 'keep-places',
  transform: (code, id) => (!id.startsWith('\0') && code.includes('import.meta.url') ? { code: code.replaceAll('import.meta.url', `new URL(${JSON.stringify(`${TO_ROOT}${relative(root, id)}`)}, import.meta.url).href`), map: null } : null),
  renderChunk: (code) => (code.includes(TO_ROOT) ? { code: code.replaceAll(TO_ROOT, `${relative(bundleOf(folder), root)}/`), map: null } : null),
});

/** V8 holds a text with one character beyond Latin-1 in twice the memory: escaped, they mean the same in strings and patterns. What follows a backslash is taken with it. */
const ascii = {
  name: 'ascii',
  generateBundle: (_options, bundle) => {
    const escaped = (match) => (match.charCodeAt(match.length - 1) < 128 ? match : `\\u${match.charCodeAt(match.length - 1).toString(16).padStart(4, '0')}`);
    for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') chunk.code = chunk.code.replace(/\\[^]|[^\0-\x7f]/g, escaped);
  },
};

/** What grpc-js reads .proto files with, for a door to its own figures that nobody here opens: a parser, a twentieth of what a service loads. */
const withoutProtoLoader = {
  name: 'without-proto-loader',
  resolveId: (source) => (source === '@grpc/proto-loader' ? PROTO_LOADER : null),
  load: (id) => (id === PROTO_LOADER ? { code: "export const loadSync = () => { throw new Error('Channelz is not in this program.'); };", moduleType: 'js' } : null),
};

/** CommonJS cannot await at its top level: what follows the imports of the main module becomes a function. */
const wrapMain = (main) => ({
  name: 'wrap-main',
  transform: (code, id) => {
    if (id !== main) return null;
    const lines = code.split('\n');
    const imports = lines.findLastIndex((line) => line.startsWith('import ')) + 1;
    return { code: [...lines.slice(0, imports), 'void (async () => {', ...lines.slice(imports).filter((line) => !line.startsWith('//#')), '})();'].join('\n'), map: null };
  },
});

/** Loads what an all-in-one loads once it has set flags for itself. */
function warmStandalone() {
  const [process, compose] = ['libs/runtime/dist/process.js', `${STANDALONE}/dist/compose.js`].map((file) => JSON.stringify(join(root, file)));
  return `import { tuneProcess } from ${process};\nexport async function warm() {\n  tuneProcess();\n  await import(${compose});\n}\n`;
}

/** What a service imports, by absolute paths: this stands nowhere. */
function warmService(main) {
  const names = [...readFileSync(main, 'utf8').matchAll(/^import .* from '([^']+)';/gm)].map(([, name]) => name).filter((name) => !name.startsWith('node:'));
  return names.map((name, at) => `export * as part${at} from ${JSON.stringify(name.startsWith('.') ? join(dirname(main), name) : name)};\n`).join('');
}

/** An entry that loads what the program loads, and starts nothing. */
const warm = (folder) => ({
  name: 'warm',
  resolveId: (source, importer) => (source === WARM ? WARM : importer === WARM && !source.startsWith('/') ? { id: fileURLToPath(import.meta.resolve(source)) } : null),
  load: (id) => (id === WARM ? { code: folder === STANDALONE ? warmStandalone() : warmService(mainOf(folder)), moduleType: 'js' } : null),
});

// Functions and classes keep their names, which stand in stacks and in profiles. Others are short: V8 holds the text of all that it may yet compile.
const minify = { mangle: { toplevel: false, keepNames: true }, compress: false, codegen: { removeWhitespace: true } };

async function bundleProgram(rolldown, folder) {
  rmSync(bundleOf(folder), { recursive: true, force: true });
  const bundle = await rolldown({ input: { main: mainOf(folder), warm: WARM }, platform: 'node', plugins: [withoutProtoLoader, warm(folder), wrapMain(mainOf(folder)), keepPlaces(folder), ascii], logLevel: 'warn' });
  await bundle.write({ dir: bundleOf(folder), format: 'cjs', dynamicImportInCjs: false, minify, entryFileNames: '[name].cjs', chunkFileNames: '[name]-[hash].cjs' });
  await bundle.close();
}

/** Leaves what V8 compiles beside the files. It takes such code only under the flags that it was compiled with. */
async function compile(folder, flagsOf) {
  const child = spawn(process.execPath, [...(folder === STANDALONE ? STANDALONE_FLAGS : flagsOf(folder.slice(folder.lastIndexOf('/') + 1))), here, '--compile', bundleOf(folder)], { stdio: ['ignore', 'ignore', 2] });
  const [status] = await once(child, 'close');
  if (status !== 0) process.stderr.write(`signalbox: what V8 compiled of ${folder} could not be kept; it is compiled at each start.\n`);
  const loader = relative(dirname(programOf(folder)), join(root, 'scripts/run-bundle.mjs'));
  // Last: where it is, the rest is whole.
  writeFileSync(programOf(folder), `import { fileURLToPath } from 'node:url';\nimport { loadBundle } from '${loader}';\nloadBundle(fileURLToPath(new URL('bundle/main.cjs', import.meta.url)));\n`);
}

async function keepCompiled(bundle) {
  const loaded = new Map();
  const { warm: load } = loadBundle(join(bundle, 'warm.cjs'), loaded);
  // What an all-in-one loads before it sets its flags would not be taken.
  const early = new Set(load === undefined ? [] : loaded.keys());
  await load?.();
  for (const [file, { script }] of loaded) if (!early.has(file)) writeFileSync(cacheOf(file), script.createCachedData());
}

const folderIsBuilt = (folder) => existsSync(mainOf(folder));
const FOLDERS = {
  standalone: () => [STANDALONE].filter(folderIsBuilt),
  services: () => readdirSync(join(root, 'services')).sort().map((name) => `services/${name}`).filter(folderIsBuilt),
};
export const PROGRAMS = Object.keys(FOLDERS);

/** Answers whether the programs, some of PROGRAMS, are bundled. They run as well from their modules, so nothing is thrown. */
export async function bundlePrograms(programs = PROGRAMS) {
  try {
    const { rolldown } = await import('rolldown');
    const { v8FlagsOf } = await import('../deploy/split/dist/v8-flags.js');
    const folders = programs.flatMap((name) => FOLDERS[name]());
    for (const folder of folders) rmSync(programOf(folder), { force: true });
    let compiling = Promise.resolve();
    for (const folder of folders) {
      await bundleProgram(rolldown, folder);
      // While the next one is bundled.
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
