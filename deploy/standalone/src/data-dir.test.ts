import { expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDataDir } from './data-dir.js';

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
  // Where the system makes no folders at all, and asking for all at once never ends.
  if (existsSync('/proc/self')) expect(() => makeDataDir('/proc/signalbox/data')).toThrow(/^DATA_DIR: /);
  rmSync(root, { recursive: true, force: true });
});
