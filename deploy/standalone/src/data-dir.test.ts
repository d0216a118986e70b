import { expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDataDir, openDataDir } from './data-dir.js';

test('folders above it are made, and one that is there is taken as it is', () => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-data-dir-'));
  const folder = join(root, 'a', 'b');
  makeDataDir(folder);
  makeDataDir(folder);
  expect(existsSync(folder)).toBe(true);
  rmSync(root, { recursive: true, force: true });
});

test('a folder that cannot be made is told with its setting', () => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-data-dir-'));
  writeFileSync(join(root, 'file'), '');
  for (const name of ['file', join('file', 'data')]) expect(() => makeDataDir(join(root, name))).toThrow(/^DATA_DIR: /);
  // A place where the system creates no folders, and a recursive mkdir never returns.
  if (existsSync('/proc/self')) expect(() => makeDataDir('/proc/signalbox/data')).toThrow(/^DATA_DIR: /);
  rmSync(root, { recursive: true, force: true });
});

test('secrets are made once, for their owner alone; one that is empty is told with its file and is not made anew', () => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-data-dir-'));
  const made = openDataDir(root, {});
  expect(openDataDir(root, {})).toEqual(made);
  for (const name of ['key-pepper', 'secrets-key', 'admin-token']) {
    const file = join(root, name);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const kept = readFileSync(file);
    writeFileSync(file, '\n');
    expect(() => openDataDir(root, {})).toThrow(`${file} is empty`);
    writeFileSync(file, kept);
  }
  writeFileSync(join(root, 'key-pepper'), '');
  expect(openDataDir(root, { KEY_PEPPER: 'given, of enough length' }).keyPepper).toBe('given, of enough length');
  rmSync(root, { recursive: true, force: true });
});
