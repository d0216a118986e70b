/** The code that the build leaves compiled for the all-in-one. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = new URL('../../../', import.meta.url);
const pathOf = (file: string): string => JSON.stringify(fileURLToPath(new URL(file, root)));
// Set by `npm test`, which bundles the programs.
const ofBundle = process.env['TEST_BUNDLED'] === '1' ? test : test.skip;

/** The flags of node in `npm start`. */
function startFlags(): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { readonly scripts: { readonly start: string } };
  return scripts.start.split(' ').filter((word) => word.startsWith('--'));
}

ofBundle('V8 takes it under the flags of npm start', () => {
  const program = `
    import { loadBundle } from ${pathOf('scripts/run-bundle.mjs')};
    const loaded = new Map();
    await loadBundle(${pathOf('deploy/standalone/dist/bundle/warm.cjs')}, loaded).warm();
    process.stdout.write(JSON.stringify([...loaded.values()].map(({ isTaken }) => isTaken)));`;
  const taken = JSON.parse(execFileSync(process.execPath, [...startFlags(), '--input-type=module', '--eval', program], { encoding: 'utf8' })) as readonly (boolean | null)[];
  expect(startFlags()).not.toEqual([]);
  expect(taken).toContain(true);
  expect(taken).not.toContain(false);
});
