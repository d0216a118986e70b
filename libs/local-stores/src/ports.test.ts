import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, test } from '@jest/globals';
import { quietPort } from './ports.js';

/** Few numbers, beside those that are given by default, so that each of them comes up. */
const FROM = 19_000;
const TO = 19_008;
const TAKE = `import { quietPort } from ${JSON.stringify(new URL('../dist/ports.js', import.meta.url).href)}; process.stdout.write(String(await quietPort(${String(FROM)}, ${String(TO)}))); setInterval(() => {}, 60_000);`;

let other: ChildProcess | undefined;
afterEach(() => {
  other?.kill('SIGKILL');
});

test('a number that another process was given is given to nobody while it lives, though its door is shut, and none is given twice', async () => {
  const started = spawn(process.execPath, ['--input-type=module', '-e', TAKE], { stdio: ['ignore', 'pipe', 'inherit'] });
  other = started;
  const [told] = (await once(started.stdout, 'data')) as [Buffer];
  const elsewhere = Number(told.toString());
  const here: number[] = [];
  for (let port = await quietPort(FROM, TO); port >= FROM && port < TO; port = await quietPort(FROM, TO)) here.push(port);
  expect(here.length).toBeGreaterThan(0);
  expect([elsewhere >= FROM, elsewhere < TO]).toEqual([true, true]);
  expect(here).not.toContain(elsewhere);
  expect(new Set(here).size).toBe(here.length);
}, 30_000);
