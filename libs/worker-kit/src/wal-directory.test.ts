import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { lockFile } from '@signalbox/runtime/file-lock';
import { ConfigError } from '@signalbox/runtime/config';
import { createFakeClock } from '@signalbox/testkit/clock';
import { ensureIdentity, isDirectoryInUse, lockDirectory, readIdentity } from './wal-directory.js';

let directory: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-lock-'));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

const stat = (pid: number): readonly string[] => {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
};
const heldBy = (pid: number, startTime: string): void => writeFileSync(join(directory, 'lock'), `${pid} ${startTime}`);

test('a directory belongs to one process at a time, and is free again when it is unlocked', () => {
  const unlock = lockDirectory(directory);
  expect(isDirectoryInUse(directory)).toBe(true);
  expect(() => lockDirectory(directory)).toThrow(/is in use by process/);
  unlock();
  expect(isDirectoryInUse(directory)).toBe(false);
  lockDirectory(directory)();
});

const BUILT = new URL('../dist/wal-directory.js', import.meta.url).href;
const TAKE = `import { lockDirectory } from ${JSON.stringify(BUILT)}; lockDirectory(process.argv[1]); process.stdout.write('taken'); setInterval(() => {}, 60_000);`;
const probe = lockFile(join(mkdtempSync(join(tmpdir(), 'signalbox-lock-')), 'probe'));

(probe.state === 'taken' ? test : test.skip)('a holder in another container, whose number is ours or nobody’s here, keeps it; killed, it does not', async () => {
  const holder = spawn(process.execPath, ['--input-type=module', '-e', TAKE, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(holder);
  await once(holder.stdout, 'data');
  const [, startTime = '', mark = ''] = readFileSync(join(directory, 'lock'), 'utf8').split(' ');
  writeFileSync(join(directory, 'lock'), `${process.pid} ${startTime} ${mark}`);
  expect(() => lockDirectory(directory)).toThrow(/is in use by process \d+\. Wait/);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  // Another process has reused its id.
  const stranger = spawn('sleep', ['60'], { stdio: 'ignore' });
  children.push(stranger);
  writeFileSync(join(directory, 'lock'), `${stranger.pid ?? 0} ${stat(stranger.pid ?? 0)[19] ?? ''} ${mark}`);
  lockDirectory(directory)();
});

const onLinux = existsSync('/proc/self/stat') ? test : test.skip;

onLinux('a living process keeps it; one that merely has the number of its holder does not', () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  children.push(child);
  const pid = child.pid ?? 0;
  heldBy(pid, stat(pid)[19] ?? '');
  expect(() => lockDirectory(directory)).toThrow(/is in use by process/);
  heldBy(pid, '1');
  lockDirectory(directory)();
});

onLinux('a killed process whose parent has not asked for its end does not', async () => {
  // The shell becomes `tail`, which never waits for the child it was left. It is `tail` that tells the number: a shell
  // that had told it itself could still be there when the child ends, and a shell does ask.
  const parent = spawn('sh', ['-c', 'sleep 60 & echo $! > "$0"; exec tail -f "$0"', join(directory, 'child')], { stdio: ['ignore', 'pipe', 'ignore'] });
  children.push(parent);
  const [told] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(told.toString());
  heldBy(pid, stat(pid)[19] ?? '');
  expect(isDirectoryInUse(directory)).toBe(true);
  process.kill(pid, 'SIGKILL');
  // A signal is delivered in a moment of the system's own; each look lets it run.
  for (let looks = 0; looks < 10_000 && stat(pid)[0] !== 'Z'; looks += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  expect(stat(pid)[0]).toBe('Z');
  expect(isDirectoryInUse(directory)).toBe(false);
  lockDirectory(directory)();
});

test.each(['', '{"writer":"wrt_1"', 'null', '[]', '{"writer":1,"provider":"p"}'])('an identity file that contains %p is an error that names its path', (text) => {
  writeFileSync(join(directory, 'writer.json'), text);
  expect(() => readIdentity(directory)).toThrow(`${join(directory, 'writer.json')} does not name a writer`);
});

test('a folder that cannot be made is told by its setting, also where Node would never return', () => {
  writeFileSync(join(directory, 'file'), '');
  // Below /proc, Node's recursive mkdir runs forever.
  for (const wrong of [join(directory, 'file', 'openai'), ...(process.platform === 'linux' ? ['/proc/none/openai'] : [])]) {
    expect(() => ensureIdentity(wrong, 'openai', createFakeClock(), () => new Uint8Array(16))).toThrow(ConfigError);
    expect(() => ensureIdentity(wrong, 'openai', createFakeClock(), () => new Uint8Array(16))).toThrow(`WAL_DIR: ${wrong} is not a folder that can be written (`);
  }
});
