// Writes each program once more in few files: dist/program.js beside its dist/main.js, and in dist/parts what programs
// share. The same code starts in two thirds of the time and holds less memory. Alone: `node scripts/bundle.mjs`; with
// `--held` whoever starts it has the folder already.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { alone } from './work-lock.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const PARTS = 'dist/parts';
const TO_ROOT = '__TO_ROOT__';
const PROTO_LOADER = '\0proto-loader';

function programs() {
  const services = readdirSync(join(root, 'services')).map((name) => `services/${name}`);
  return ['deploy/standalone', ...services].filter((folder) => existsSync(join(root, folder, 'dist/main.js')));
}

/** A module that looks for files beside itself goes on looking where it stood, wherever its code is put. */
const keepPlaces = {
  name: 'keep-places',
  transform: (code, id) => (!id.startsWith('\0') && code.includes('import.meta.url') ? { code: code.replaceAll('import.meta.url', `new URL(${JSON.stringify(`${TO_ROOT}${relative(root, id)}`)}, import.meta.url).href`), map: null } : null),
  renderChunk: (code, { fileName }) => (code.includes(TO_ROOT) ? { code: code.replaceAll(TO_ROOT, '../'.repeat(fileName.split('/').length - 1)), map: null } : null),
};

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

/** Answers whether the programs are bundled. They run as well from their modules, so nothing is thrown. */
export async function bundlePrograms() {
  const folders = programs();
  try {
    const { rolldown } = await import('rolldown');
    for (const folder of folders) rmSync(join(root, folder, 'dist/program.js'), { force: true });
    rmSync(join(root, PARTS), { recursive: true, force: true });
    const bundle = await rolldown({
      input: Object.fromEntries(folders.map((folder) => [`${folder}/dist/program`, join(root, folder, 'dist/main.js')])),
      platform: 'node',
      plugins: [withoutProtoLoader, keepPlaces, ascii],
      logLevel: 'warn',
    });
    // Functions and classes keep their names, which stand in stacks and in profiles. Others are short: V8 holds the text of all that it may yet compile.
    await bundle.write({ dir: root, format: 'esm', minify: { mangle: { toplevel: false, keepNames: true }, compress: false, codegen: { removeWhitespace: true } }, entryFileNames: '[name].js', chunkFileNames: `${PARTS}/[name]-[hash].js` });
    await bundle.close();
    return true;
  } catch (error) {
    process.stderr.write(`signalbox: the programs could not be bundled; running them from their modules: ${error instanceof Error ? error.message : 'unknown cause'}\n`);
    return false;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !(await (process.argv.includes('--held') ? bundlePrograms() : alone(bundlePrograms)))) process.exit(1);
