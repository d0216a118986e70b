/** The code that the build leaves compiled for each program: V8 takes it only under the flags that it was compiled with. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { v8FlagsOf } from './v8-flags.js';

const root = new URL('../../../', import.meta.url);
const pathOf = (file: string): string => JSON.stringify(fileURLToPath(new URL(file, root)));
// Set by `npm test`, which bundles the programs.
const ofBundles = process.env['TEST_BUNDLED'] === '1' ? test : test.skip;

/** The flags of node in `npm start`. */
function startFlags(): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { readonly scripts: { readonly start: string } };
  return scripts.start.split(' ').filter((word) => word.startsWith('--'));
}

ofBundles.each([
  ['npm start', 'deploy/standalone', startFlags()],
  ...['edge', 'billing', 'quota', 'worker-openai'].map((role) => [`a process of ${role}`, `services/${role}`, v8FlagsOf(role)] as const),
])('it is taken in %s', (_what, folder, flags) => {
  const program = `
    import { loadBundle } from ${pathOf('scripts/run-bundle.mjs')};
    const loaded = new Map();
    const { warm } = loadBundle(${pathOf(`${folder}/dist/bundle/warm.cjs`)}, loaded);
    await warm?.();
    process.stdout.write(JSON.stringify([...loaded.values()].map(({ isTaken }) => isTaken)));`;
  const taken = JSON.parse(execFileSync(process.execPath, [...flags, '--input-type=module', '--eval', program], { encoding: 'utf8' })) as readonly (boolean | null)[];
  expect(flags).not.toEqual([]);
  expect(taken).toContain(true);
  expect(taken).not.toContain(false);
});
