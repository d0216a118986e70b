// Runs a program from its bundle: CommonJS files with V8's compiled code next to them, as scripts/bundle.mjs writes them.
// Node 20 cannot load compiled code of ES modules.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';

const WRAPPER = ['(function (exports, require, module, __filename, __dirname) {', '\n})'];
export const cacheOf = (file) => `${file}.cache`;

/**
 * Loads `file`, an absolute path, and the files of the bundle that it requires. `loaded` gets an entry per file: its script,
 * and whether V8 accepted the compiled code; undefined = there is none. V8 accepts code that the same version compiled from
 * the same text under the same flags, and otherwise compiles the text.
 */
export function loadBundle(file, loaded = new Map()) {
  const known = loaded.get(file);
  if (known !== undefined) return known.module.exports;
  const cachedData = existsSync(cacheOf(file)) ? readFileSync(cacheOf(file)) : undefined;
  // Bundles are ASCII, and Latin-1 decodes faster than UTF-8.
  const script = new Script(WRAPPER.join(readFileSync(file, 'latin1')), { filename: file, ...(cachedData === undefined ? {} : { cachedData }) });
  const module = { exports: {} };
  loaded.set(file, { module, script, isTaken: cachedData === undefined ? undefined : script.cachedDataRejected === false });
  const requireOthers = createRequire(file);
  const require = (name) => (name.startsWith('./') ? loadBundle(join(dirname(file), name), loaded) : requireOthers(name));
  script.runInThisContext()(module.exports, require, module, file, dirname(file));
  return module.exports;
}
