/** What `npm start` and `npm test` install, and what they say when that fails. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { digestOfLock, install, installStampOf, isInstalled } from '../../../scripts/dependencies.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-install-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** `at` in seconds of the file's clock. */
function put(name: string, text: string, at: number): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
  utimesSync(join(folder, name), at, at);
}

const LOCK = 'package-lock.json';
const COPY = 'node_modules/.package-lock.json';
const COMPILER = 'node_modules/typescript/bin/tsc';
const STAMP = 'node_modules/.signalbox-install';

test.each([
  ['nothing is there', { [LOCK]: 1 }, false],
  ['npm ci was run by hand after the clone', { [LOCK]: 1, [COPY]: 2, [COMPILER]: 2 }, true],
  ['the lock changed since', { [LOCK]: 3, [COPY]: 2, [COMPILER]: 2 }, false],
  ['it was run without the tools that build', { [LOCK]: 1, [COPY]: 2 }, false],
  ['it was cut off, and npm’s copy of the lock is missing', { [LOCK]: 1, [COMPILER]: 2 }, false],
  ['the stamp is of another lock or Node, and nobody installed since', { [LOCK]: 1, [COPY]: 2, [COMPILER]: 2, [STAMP]: 3 }, false],
  ['it was run by hand after such a stamp', { [LOCK]: 1, [COPY]: 4, [COMPILER]: 2, [STAMP]: 3 }, true],
] as const)('when %s (%j), is all installed? %s', (_what, files, expected) => {
  for (const [name, at] of Object.entries(files)) put(name, name, at);
  expect(isInstalled(folder)).toBe(expected);
});

test('the stamp of this lock is believed, however old', () => {
  put(LOCK, '{}', 5);
  put(STAMP, digestOfLock(folder), 1);
  expect([isInstalled(folder), installStampOf(folder)]).toEqual([true, join(folder, STAMP)]);
});

test('npm’s own reason is told when it fails', async () => {
  put('package.json', JSON.stringify({ name: 'x', version: '1.0.0' }), 1);
  const logs = join(folder, 'logs');
  mkdirSync(logs);
  expect(await install({ folder, logs, quiet: true })).toMatch(/^npm ci failed \(exit code 1\)\.\n[^]*The `npm ci` command can only install with an existing package-lock\.json/);
});
