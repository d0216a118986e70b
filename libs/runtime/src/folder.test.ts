import { expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from './config.js';
import { makeFolder } from './folder.js';

test.each(['file', 'file/below', 'a\0b', 'a\nb\u001b[2J/\0', 'x'.repeat(300)])('%j is no folder, and is told so in one line by its setting', (name) => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-folder-'));
  writeFileSync(join(root, 'file'), '');
  let problem: unknown;
  try {
    makeFolder(join(root, name), 'SNAPSHOT_DIR', 0o700);
  } catch (error) {
    problem = error;
  }
  rmSync(root, { recursive: true, force: true });
  expect(problem).toBeInstanceOf(ConfigError);
  expect(problem).toHaveProperty('message', expect.stringMatching(/^SNAPSHOT_DIR: [^\x00-\x1f]+ is not a folder that can be written \([A-Z_]+\)\.$/));
});

test('one that is missing is made', () => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-folder-'));
  makeFolder(join(root, 'a', 'b'), 'SNAPSHOT_DIR', 0o700);
  expect(existsSync(join(root, 'a', 'b'))).toBe(true);
  rmSync(root, { recursive: true, force: true });
});
