import { expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { once } from 'node:events';
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

const BUILT = new URL('../dist/folder.js', import.meta.url).href;
/** Threads that make the same folders at the same moment, as processes do that start together. */
const MAKE = `const { workerData: { root, rounds, threads, arrived } } = require('node:worker_threads');
  import('${BUILT}').then(({ makeFolder }) => {
    for (let round = 0; round < rounds; round += 1) {
      Atomics.add(arrived, 0, 1);
      while (Atomics.load(arrived, 0) < threads * (round + 1));
      makeFolder(root + '/' + round + '/b/c/d/e/f', 'WAL_DIR', 0o700);
    }
  }).catch((error) => { setImmediate(() => { throw error; }); });`;

test('one that another process makes at the same moment is one that can be written', async () => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-folder-'));
  const [rounds, threads] = [300, 2];
  const arrived = new Int32Array(new SharedArrayBuffer(4));
  const workers = Array.from({ length: threads }, () => new Worker(MAKE, { eval: true, workerData: { root, rounds, threads, arrived } }));
  try {
    await Promise.all(workers.map((worker) => once(worker, 'exit')));
    expect(existsSync(join(root, String(rounds - 1), 'b', 'c', 'd', 'e', 'f'))).toBe(true);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
    rmSync(root, { recursive: true, force: true });
  }
});
