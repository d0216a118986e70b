import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { lockFile } from './file-lock.js';

const folder = mkdtempSync(join(tmpdir(), 'signalbox-file-lock-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const BUILT = new URL('../dist/file-lock.js', import.meta.url).href;
const TAKE = `import { lockFile } from ${JSON.stringify(BUILT)}; process.stdout.write(lockFile(process.argv[1]).state); setInterval(() => {}, 60_000);`;
const hasLocks = lockFile(join(folder, 'probe')).state === 'taken' ? test : test.skip;

hasLocks('one has it at a time, and it is free again when it is given back', () => {
  const path = join(folder, 'own');
  const first = lockFile(path);
  expect(lockFile(path)).toEqual({ state: 'held', by: `process ${process.pid}` });
  if (first.state === 'taken') first.release();
  const again = lockFile(path);
  expect(again.state).toBe('taken');
});

hasLocks('a process that was killed leaves nothing in the way', async () => {
  const path = join(folder, 'killed');
  const holder = spawn(process.execPath, ['--input-type=module', '-e', TAKE, path], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [said] = (await once(holder.stdout, 'data')) as [Buffer];
  expect(said.toString()).toBe('taken');
  expect(lockFile(path)).toEqual({ state: 'held', by: `process ${holder.pid ?? 0}` });
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  expect(lockFile(path).state).toBe('taken');
});

hasLocks('a holder elsewhere is named with its host', () => {
  const path = join(folder, 'elsewhere');
  expect(lockFile(path).state).toBe('taken');
  writeFileSync(path, '7 other-container\n');
  expect(lockFile(path)).toEqual({ state: 'held', by: 'process 7 of host other-container' });
  writeFileSync(path, `7 ${hostname()}\n`);
  expect(lockFile(path)).toEqual({ state: 'held', by: 'process 7' });
  writeFileSync(path, '');
  expect(lockFile(path)).toEqual({ state: 'held', by: 'another process' });
});

hasLocks('what the holder starts does not go on holding it', async () => {
  const path = join(folder, 'children');
  const START = `${TAKE} import { spawn } from 'node:child_process'; const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' }); process.stdout.write(' ' + child.pid);`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', START, path], { stdio: ['ignore', 'pipe', 'ignore'] });
  let said = '';
  while (!/ \d+$/.test(said)) said += String(((await once(holder.stdout, 'data')) as [Buffer])[0]);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  expect(lockFile(path).state).toBe('taken');
  spawnSync('kill', ['-KILL', said.split(' ')[1] ?? '']);
});
