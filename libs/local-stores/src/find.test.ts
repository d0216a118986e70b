import { expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findStores } from './find.js';

test('uses given stores as they are and names no secret in its summary', async () => {
  const found = await findStores({ databaseUrl: 'postgres://u:hidden@127.0.0.1:1/x', redisUrl: 'redis://127.0.0.1:2', wanted: ['postgres', 'redis'] });
  expect(found.databaseUrl).toBe('postgres://u:hidden@127.0.0.1:1/x');
  expect(found.summary).toBe('postgres (given), redis (given)');
  expect(() => found.natsUrl).toThrow(/NATS_URL/);
  await found.stop();
  await found.stop();
});

test('starts no store in a folder whose stores a living process has, and names the process', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'signalbox-find-'));
  const owner = spawn('sleep', ['60']);
  try {
    // What the system tells of its birth; empty where it does not.
    let birth = '';
    try {
      birth = readFileSync(`/proc/${owner.pid ?? 0}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[19] ?? '';
    } catch {
      // No /proc here.
    }
    writeFileSync(join(dataDir, 'owner.json'), JSON.stringify({ pid: owner.pid, birth }));
    await expect(findStores({ dataDir })).rejects.toThrow(`in use by process ${owner.pid ?? 0}`);
    expect(readdirSync(dataDir).filter((name) => name !== 'owner.lock')).toEqual(['owner.json']);
    // Stores that are elsewhere are nobody's concern here.
    const found = await findStores({ dataDir, databaseUrl: 'postgres://u@127.0.0.1:1/x', redisUrl: 'redis://127.0.0.1:2', natsUrl: 'nats://127.0.0.1:3' });
    await found.stop();
  } finally {
    owner.kill();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test('a store whose data cannot be read is told with the reason, and no other program is downloaded for it', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'signalbox-find-'));
  const cacheDir = join(dataDir, 'cache');
  mkdirSync(join(dataDir, 'postgres/cluster'), { recursive: true });
  writeFileSync(join(dataDir, 'postgres/cluster/PG_VERSION'), '');
  const found = await findStores({ dataDir, cacheDir, wanted: ['postgres'], path: '' });
  expect(() => found.databaseUrl).toThrow(/^The postgres of .* could not be started, and DATABASE_URL is not set\. What is in .*cluster cannot be read as a database/);
  expect(existsSync(cacheDir)).toBe(false);
  await found.stop();
  rmSync(dataDir, { recursive: true, force: true });
});
