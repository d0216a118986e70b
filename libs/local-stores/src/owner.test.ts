import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { lockFile } from '@signalbox/runtime/file-lock';
import { claimFolder, releaseFolder } from './owner.js';

const BUILT = new URL('../dist/owner.js', import.meta.url).href;
const CLAIM = `import { claimFolder } from ${JSON.stringify(BUILT)}; claimFolder(process.argv[1]); process.stdout.write('claimed'); setInterval(() => {}, 60_000);`;

let folder: string;
let others: ChildProcess[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-owner-'));
  others = [];
});
afterEach(() => {
  for (const other of others) other.kill('SIGKILL');
  releaseFolder(folder);
  rmSync(folder, { recursive: true, force: true });
});

async function claimedByAnother(): Promise<ChildProcess> {
  const other = spawn(process.execPath, ['--input-type=module', '-e', CLAIM, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  others.push(other);
  await once(other.stdout, 'data');
  return other;
}
const noteOf = (): Record<string, unknown> => JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8')) as Record<string, unknown>;

const hasLocks = ((): boolean => {
  const probe = mkdtempSync(join(tmpdir(), 'signalbox-owner-'));
  const { state } = lockFile(join(probe, 'lock'));
  rmSync(probe, { recursive: true, force: true });
  return state === 'taken';
})();
const withLocks = hasLocks ? test : test.skip;

test('a folder has one owner, and is free when that was killed', async () => {
  const other = await claimedByAnother();
  expect(() => claimFolder(folder)).toThrow(`The data folder ${folder} is in use by process ${other.pid ?? 0}: stop it, or choose another DATA_DIR.`);
  other.kill('SIGKILL');
  await once(other, 'exit');
  claimFolder(folder);
  claimFolder(folder);
  expect(noteOf()).toMatchObject({ pid: process.pid });
});

withLocks('an owner whose number means nothing here, as in another container, keeps it all the same', async () => {
  await claimedByAnother();
  // There it has the number that is ours here.
  writeFileSync(join(folder, 'owner.json'), JSON.stringify({ ...noteOf(), pid: process.pid }));
  writeFileSync(join(folder, 'owner.lock'), `${process.pid} other-container\n`);
  expect(() => claimFolder(folder)).toThrow(`in use by process ${process.pid} of host other-container`);
});

withLocks('a living process that was given the number of an owner that is gone keeps nobody out', async () => {
  const other = await claimedByAnother();
  other.kill('SIGKILL');
  await once(other, 'exit');
  const stranger = spawn('sleep', ['60'], { stdio: 'ignore' });
  others.push(stranger);
  const birth = readFileSync(`/proc/${stranger.pid ?? 0}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[19];
  writeFileSync(join(folder, 'owner.json'), JSON.stringify({ ...noteOf(), pid: stranger.pid, birth }));
  claimFolder(folder);
});
