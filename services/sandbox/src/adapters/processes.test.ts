import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import type { ProgramEnd } from '../domain/program.js';
import { HOGS } from '../testing/hostile-programs.js';
import { createProcesses } from './processes.js';

// The processes run built files; `npm test` builds first.
const processes = createProcesses({ clock: systemClock, runnerPath: fileURLToPath(new URL('../../dist/runner/main.js', import.meta.url)) });
const TIMEOUT_MS = 150;

const run = (code: string, timeoutMs = TIMEOUT_MS): Promise<ProgramEnd> => processes.start().run(code, { timeoutMs, memoryBytes: 128 * 1_048_576, outputBytes: 65_536 });

test('runs a program and tells how it ended', async () => {
  expect(await run("console.log('hi'); 6 * 7", 5_000)).toEqual({ status: 'COMPLETED', output: 'hi\n', result: '42', error: '' });
  expect(await run('(function f() { f() })()', 5_000)).toMatchObject({ status: 'THREW', error: expect.stringContaining('stack overflow') });
});

test(`each of ${String(HOGS.length)} hogs ends in time, its process with it, and is reported`, async () => {
  expect(HOGS.length).toBeGreaterThanOrEqual(45);
  const failures: string[] = [];
  const pending = [...HOGS];
  const work = async (): Promise<void> => {
    for (let code = pending.shift(); code !== undefined; code = pending.shift()) {
      const end = await run(code);
      const isBounded = Buffer.byteLength(end.output) + Buffer.byteLength(end.result) <= 65_536 && end.error.length <= 2_100;
      if (!isBounded || end.status === 'CRASHED' || (end.status !== 'COMPLETED') !== (end.error !== '')) failures.push(`${code}: ${end.status} ${end.error.slice(0, 100)}`);
    }
  };
  await Promise.all([work(), work()]);
  expect(failures).toEqual([]);
}, 180_000);

test('the process sees neither environment nor files, and starts nothing', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
  writeFileSync(join(directory, 'secret.txt'), 'the secret');
  // Checks what the fence would allow if a program broke out of the interpreter: runs plain JavaScript as the runner.
  const runner = join(directory, 'main.mjs');
  writeFileSync(
    runner,
    `import { readFileSync } from 'node:fs';
     const found = [];
     const attempt = (name, work) => { try { work(); found.push(name); } catch {} };
     attempt('file', () => readFileSync(${JSON.stringify(join(directory, 'secret.txt'))}));
     attempt('passwd', () => readFileSync('/etc/passwd'));
     const { spawnSync } = await import('node:child_process');
     attempt('process', () => spawnSync('true'));
     const { writeFileSync } = await import('node:fs');
     attempt('write', () => writeFileSync('/tmp/sandbox-was-here', ''));
     const { Worker } = await import('node:worker_threads');
     attempt('thread', () => new Worker('1', { eval: true }));
     attempt('code', () => eval('1'));
     if (Object.keys(process.env).length > 0) found.push('environment ' + Object.keys(process.env));
     for await (const part of process.stdin) void part;
     process.stdout.write('started\\n');
     process.stdout.write(JSON.stringify({ status: 'COMPLETED', output: found.join(','), result: '', error: '' }));`,
  );
  const fenced = createProcesses({ clock: systemClock, runnerPath: runner, readable: [runner] });
  expect(await fenced.start().run('', { timeoutMs: 5_000, memoryBytes: 1, outputBytes: 65_536 })).toMatchObject({ status: 'COMPLETED', output: '' });
});

test('a runner that floods its answer, dies or says nothing is no answer', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
  const endOf = (name: string, text: string): Promise<ProgramEnd> => {
    const runner = join(directory, `${name}.mjs`);
    writeFileSync(runner, text);
    return createProcesses({ clock: systemClock, runnerPath: runner, readable: [runner] }).start().run('', { timeoutMs: 100, memoryBytes: 1, outputBytes: 64 });
  };
  expect((await endOf('flood', "process.stdout.write('started\\n'); process.stdout.write('x'.repeat(1e6)); setInterval(() => {}, 1000)")).status).toBe('CRASHED');
  expect((await endOf('dies', "process.stdout.write('started\\n{\"status\":\"COMP', () => process.kill(process.pid, 'SIGKILL'))")).status).toBe('CRASHED');
  expect((await endOf('hangs', "process.stdout.write('started\\n'); for (;;);")).status).toBe('TIMED_OUT');
});

test('a process that the system does not make is one that is over, and brings nothing down', async () => {
  // A path with a NUL character makes spawn throw, as it does without memory for another process.
  const refused = createProcesses({ clock: systemClock, runnerPath: '/no/such\0runner.js', readable: [] }).start();
  expect(refused.isOver).toBe(true);
  expect((await refused.run('1', { timeoutMs: 1_000, memoryBytes: 1, outputBytes: 64 })).status).toBe('CRASHED');
  refused.kill();
});

test('a process can be ended before and while it runs', async () => {
  const limits = { timeoutMs: 5_000, memoryBytes: 128 * 1_048_576, outputBytes: 64 };
  const early = processes.start();
  early.kill();
  expect((await early.run('1', limits)).status).toBe('CRASHED');
  expect(early.isOver).toBe(true);
  const late = processes.start();
  const ending = late.run('while (1);', limits);
  late.kill();
  expect((await ending).status).toBe('CRASHED');
});
