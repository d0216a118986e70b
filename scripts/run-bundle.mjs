// Runs a program from its bundle: CommonJS files, each with what V8 compiled of it where scripts/bundle.mjs left that
// beside it. Node 20 keeps no compiled code of ES modules.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';

const WRAPPER = ['(function (exports, require, module, __filename, __dirname) {', '\n})'];
export const cacheOf = (file) => `${file}.cache`;

/**
 * Loads `file`, an absolute path, with what it requires beside itself. `loaded` gets an entry for each file: its script,
 * and whether V8 took the compiled code; undefined = there was none. It takes only what the same V8 compiled of the same
 * text under the same flags.
 */
export function loadBundle(file, loaded = new Map()) {
  const known = loaded.get(file);
  if (known !== undefined) return known.module.exports;
  const cachedData = existsSync(cacheOf(file)) ? readFileSync(cacheOf(file)) : undefined;
  // Bundles are ASCII, which is faster to read as Latin-1.
  const script = new Script(WRAPPER.join(readFileSync(file, 'latin1')), { filename: file, ...(cachedData === undefined ? {} : { cachedData }) });
  const module = { exports: {} };
  loaded.set(file, { module, script, isTaken: cachedData === undefined ? undefined : script.cachedDataRejected === false });
  const requireOthers = createRequire(file);
  const require = (name) => (name.startsWith('./') ? loadBundle(join(dirname(file), name), loaded) : requireOthers(name));
  script.runInThisContext()(module.exports, require, module, file, dirname(file));
  return module.exports;
}
