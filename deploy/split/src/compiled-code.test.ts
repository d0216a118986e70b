/** The bundle of each program, and its compiled code, which V8 accepts only under the flags that it was compiled with. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

ofBundles.each(['deploy/standalone', 'services/edge', 'services/worker-openai'])('the bundle of %s runs in strict mode, as its modules do', (folder) => {
  const bundle = new URL(`${folder}/dist/bundle/`, root);
  const files = readdirSync(bundle).filter((name) => name.endsWith('.cjs'));
  expect(files).toContain('main.cjs');
  for (const name of files) expect([name, /^(["'])use strict\1;/.test(readFileSync(new URL(name, bundle), 'latin1'))]).toEqual([name, true]);
});

/** Loads the program of `folder` without starting it, and returns what `told` makes of each file that was loaded. */
function loadedIn<T>(folder: string, flags: readonly string[], told: string): readonly T[] {
  const program = `
    import { loadBundle } from ${pathOf('scripts/run-bundle.mjs')};
    const loaded = new Map();
    const { warm } = loadBundle(${pathOf(`${folder}/dist/bundle/warm.cjs`)}, loaded);
    await warm?.();
    process.stdout.write(JSON.stringify([...loaded.values()].map(${told})));`;
  return JSON.parse(execFileSync(process.execPath, [...flags, '--input-type=module', '--eval', program], { encoding: 'utf8' })) as readonly T[];
}

ofBundles.each([
  ['npm start', 'deploy/standalone', startFlags()],
  ...['edge', 'billing', 'quota', 'worker-openai'].map((role) => [`a process of ${role}`, `services/${role}`, v8FlagsOf(role)] as const),
])('it is taken in %s', (_what, folder, flags) => {
  const taken = loadedIn<boolean | null>(folder, flags, '({ isTaken }) => isTaken');
  expect(flags).not.toEqual([]);
  expect(taken).toContain(true);
  expect(taken).not.toContain(false);
});

ofBundles('that of npm start is the code of a start and of its first answers, not only of loading', () => {
  const bundle = new URL('deploy/standalone/dist/bundle/', root);
  const stored = readdirSync(bundle).filter((name) => name.endsWith('.cache')).reduce((sum, name) => sum + statSync(new URL(name, bundle)).size, 0);
  // Under other flags V8 takes nothing of what is stored, and compiles what loading calls.
  const sizes = loadedIn<number>('deploy/standalone', [...startFlags(), '--stack-size=900'], '({ script, isTaken }) => (isTaken === false ? script.createCachedData().length : 0)');
  const ofLoading = sizes.reduce((sum, size) => sum + size, 0);
  expect(ofLoading).toBeGreaterThan(0);
  expect(stored).toBeGreaterThan(1.5 * ofLoading);
});

test('what a killed build left of its practice is removed by the next build of the same source folder, and nothing else is', () => {
  const temporary = mkdtempSync(join(tmpdir(), 'signalbox-bundle-'));
  try {
    const practiceFolder = (): string => execFileSync(process.execPath, ['--input-type=module', '--eval', `import { practiceFolder } from ${pathOf('scripts/bundle.mjs')}; process.stdout.write(practiceFolder());`], { encoding: 'utf8', env: { ...process.env, TMPDIR: temporary } });
    const others = mkdtempSync(join(temporary, 'signalbox-practice-0123456789ab-'));
    const left = practiceFolder();
    expect(existsSync(left)).toBe(true);
    const next = practiceFolder();
    expect({ left: existsSync(left), next: existsSync(next), others: existsSync(others) }).toEqual({ left: false, next: true, others: true });
  } finally {
    rmSync(temporary, { recursive: true });
  }
});

test.each(['edge', 'quota', 'billing', 'worker-openai'])('V8 knows each flag of %s', (role) => {
  expect(() => execFileSync(process.execPath, [...v8FlagsOf(role), '--eval', ''], { stdio: 'pipe' })).not.toThrow();
});
