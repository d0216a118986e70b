import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { claimLogs, waitForEarlierStart } from './earlier-start.js';

let walDir: string;
let left: ChildProcess;
let clock: FakeClock;
const told: string[] = [];

const startTimeOf = (pid: number): string => (existsSync(`/proc/${pid}/stat`) ? (readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[19] ?? '') : '');

beforeEach(() => {
  walDir = mkdtempSync(join(tmpdir(), 'signalbox-earlier-'));
  left = spawn('sleep', ['60'], { stdio: 'ignore' });
  clock = createFakeClock();
  told.length = 0;
});
afterEach(() => {
  left.kill('SIGKILL');
  rmSync(walDir, { recursive: true, force: true });
});

/** A worker's log, locked by a process of an earlier start. */
function holdLog(): string {
  const directory = join(walDir, '0', 'simulator');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'writer.json'), '{"writer":"w","provider":"simulator"}');
  const lock = join(directory, 'lock');
  writeFileSync(lock, `${left.pid ?? 0} ${startTimeOf(left.pid ?? 0)}`);
  return lock;
}

const begin = (signal?: AbortSignal): Promise<void> => waitForEarlierStart({ walDir, clock, limitMs: 75_000, tell: (line) => void told.push(line), signal });

test('waits in one line until the services that a killed launcher left have finished', async () => {
  const lock = holdLog();
  let isOver = false;
  const waiting = begin().then(() => {
    isOver = true;
  });
  await clock.advanceAsync(30_000);
  expect(isOver).toBe(false);
  expect(told).toEqual([`signalbox: services of an earlier start (process ${left.pid ?? 0}) still finish their streams; waiting for them, at most 75 s`]);
  rmSync(lock);
  await clock.advanceAsync(200);
  await waiting;
});

test('refuses, and names them, when they do not finish in time', async () => {
  holdLog();
  const refused = expect(begin()).rejects.toThrow(`services of an earlier start (process ${left.pid ?? 0}) still write to ${walDir} after 75 s: end them`);
  await clock.advanceAsync(75_200);
  await refused;
});

test('is given up with the start it belongs to', async () => {
  holdLog();
  const starting = new AbortController();
  const refused = expect(begin(starting.signal)).rejects.toThrow('aborted');
  starting.abort();
  await clock.advanceAsync(200);
  await refused;
});

test('a second start is refused at once, and told whose the logs are', async () => {
  const release = claimLogs(walDir);
  release();
  writeFileSync(join(walDir, 'owner.json'), JSON.stringify({ pid: left.pid, birth: startTimeOf(left.pid ?? 0) }));
  expect(() => claimLogs(walDir)).toThrow(`in use by process ${left.pid ?? 0}`);
  // Unlocked logs cause no wait.
  await begin();
  expect(told).toEqual([]);
});

test('logs that cannot be written are told with their setting', () => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-logs-'));
  writeFileSync(join(root, 'file'), '');
  expect(() => claimLogs(join(root, 'file', 'wal'))).toThrow(/^WAL_DIR: /);
  // As for DATA_DIR: a recursive mkdir never returns here.
  if (existsSync('/proc/self')) expect(() => claimLogs('/proc/signalbox/wal')).toThrow(/^WAL_DIR: /);
  rmSync(root, { recursive: true, force: true });
});
