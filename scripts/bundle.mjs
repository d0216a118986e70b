// Writes each program once more in few files, dist/program.js beside its dist/main.js: it starts faster and holds less
// memory. Services share their parts in dist/parts. The all-in-one has its own in dist/bundle, as CommonJS with what V8
// compiled of it. Alone: `node scripts/bundle.mjs`; with `--held` whoever starts it has the folder already.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheOf, loadBundle } from './run-bundle.mjs';
import { alone } from './work-lock.mjs';

const here = fileURLToPath(import.meta.url);
const root = join(dirname(here), '..');
const PARTS = 'dist/parts';
const STANDALONE = 'deploy/standalone';
const BUNDLE = `${STANDALONE}/dist/bundle`;
/** V8 takes compiled code only under the flags that it was compiled with: those of `npm start`. */
const STANDALONE_FLAGS = ['--v8-pool-size=1', '--no-memory-reducer'];
const TO_ROOT = '__TO_ROOT__';
const PROTO_LOADER = '\0proto-loader';
const WARM = '\0warm';

const mainOf = (folder) => join(root, folder, 'dist/main.js');
const programOf = (folder) => join(root, folder, 'dist/program.js');

/** A module that looks for files beside itself goes on looking where it stood, wherever its code is put: `home` is where the bundle's file names begin. */
const keepPlaces = (home) => ({
  name: 'keep-places',
  transform: (code, id) => (!id.startsWith('\0') && code.includes('import.meta.url') ? { code: code.replaceAll('import.meta.url', `new URL(${JSON.stringify(`${TO_ROOT}${relative(root, id)}`)}, import.meta.url).href`), map: null } : null),
  renderChunk: (code, { fileName }) => (code.includes(TO_ROOT) ? { code: code.replaceAll(TO_ROOT, '../'.repeat(join(home, fileName).split('/').length - 1)), map: null } : null),
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

// Functions and classes keep their names, which stand in stacks and in profiles. Others are short: V8 holds the text of all that it may yet compile.
const minify = { mangle: { toplevel: false, keepNames: true }, compress: false, codegen: { removeWhitespace: true } };

async function bundleServices(rolldown) {
  const folders = readdirSync(join(root, 'services')).map((name) => `services/${name}`).filter((folder) => existsSync(mainOf(folder)));
  for (const folder of folders) rmSync(programOf(folder), { force: true });
  rmSync(join(root, PARTS), { recursive: true, force: true });
  const bundle = await rolldown({
    input: Object.fromEntries(folders.map((folder) => [`${folder}/dist/program`, mainOf(folder)])),
    platform: 'node',
    plugins: [withoutProtoLoader, keepPlaces(''), ascii],
    logLevel: 'warn',
  });
  await bundle.write({ dir: root, format: 'esm', minify, entryFileNames: '[name].js', chunkFileNames: `${PARTS}/[name]-[hash].js` });
  await bundle.close();
}

/** CommonJS cannot await at its top level: what follows the imports of the main module becomes a function. */
const wrapMain = {
  name: 'wrap-main',
  transform: (code, id) => {
    if (id !== mainOf(STANDALONE)) return null;
    const lines = code.split('\n');
    const imports = lines.findLastIndex((line) => line.startsWith('import ')) + 1;
    return { code: [...lines.slice(0, imports), 'void (async () => {', ...lines.slice(imports).filter((line) => !line.startsWith('//#')), '})();'].join('\n'), map: null };
  },
};

/** An entry that loads what an all-in-one loads, with the flags that it sets for itself, and starts nothing. */
const warm = {
  name: 'warm',
  resolveId: (source) => (source === WARM ? WARM : null),
  load: (id) => {
    if (id !== WARM) return null;
    const [process, compose] = ['libs/runtime/dist/process.js', `${STANDALONE}/dist/compose.js`].map((file) => JSON.stringify(join(root, file)));
    return { code: `import { tuneProcess } from ${process};\nexport async function warm() {\n  tuneProcess();\n  await import(${compose});\n}\n`, moduleType: 'js' };
  },
};

async function bundleStandalone(rolldown) {
  const [program, folder] = [programOf(STANDALONE), join(root, BUNDLE)];
  rmSync(program, { force: true });
  rmSync(folder, { recursive: true, force: true });
  const bundle = await rolldown({ input: { main: mainOf(STANDALONE), warm: WARM }, platform: 'node', plugins: [withoutProtoLoader, warm, wrapMain, keepPlaces(BUNDLE), ascii], logLevel: 'warn' });
  await bundle.write({ dir: folder, format: 'cjs', dynamicImportInCjs: false, minify, entryFileNames: '[name].cjs', chunkFileNames: '[name]-[hash].cjs' });
  await bundle.close();
  const { status } = spawnSync(process.execPath, [...STANDALONE_FLAGS, here, '--compile'], { stdio: ['ignore', 'ignore', 2] });
  if (status !== 0) process.stderr.write('signalbox: what V8 compiled of the all-in-one could not be kept; it is compiled at each start.\n');
  const loader = relative(dirname(program), join(root, 'scripts/run-bundle.mjs'));
  // Last: where it is, the rest is whole.
  writeFileSync(program, `import { fileURLToPath } from 'node:url';\nimport { loadBundle } from '${loader}';\nloadBundle(fileURLToPath(new URL('bundle/main.cjs', import.meta.url)));\n`);
}

/** Leaves what V8 compiled of the all-in-one beside its files. */
async function keepCompiled() {
  const loaded = new Map();
  const { warm: load } = loadBundle(join(root, BUNDLE, 'warm.cjs'), loaded);
  // What is loaded before the program sets its flags would not be taken.
  const early = new Set(loaded.keys());
  await load();
  for (const [file, { script }] of loaded) if (!early.has(file)) writeFileSync(cacheOf(file), script.createCachedData());
}

/** Answers whether the programs are bundled. They run as well from their modules, so nothing is thrown. */
export async function bundlePrograms() {
  try {
    const { rolldown } = await import('rolldown');
    await bundleServices(rolldown);
    await bundleStandalone(rolldown);
    return true;
  } catch (error) {
    process.stderr.write(`signalbox: the programs could not be bundled; running them from their modules: ${error instanceof Error ? error.message : 'unknown cause'}\n`);
    return false;
  }
}

if (process.argv[1] === here) {
  const [asked] = process.argv.slice(2);
  if (asked === '--compile') await keepCompiled();
  else if (!(await (asked === '--held' ? bundlePrograms() : alone(bundlePrograms)))) process.exit(1);
}
