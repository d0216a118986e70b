/** Starts and the operator's commands in one folder that is neither installed nor built, with tools that only say that they ran. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { until } from '../harness/client.js';

const SCRIPTS = fileURLToPath(new URL('../../../scripts', import.meta.url));
const WAITS = /^signalbox: waiting for another start \(process (\d+)\), which installs or builds in this folder$/m;

/** Each tool writes into `log` that it begins and ends; npm ends once there is a file `open`, and then leaves the other tools. */
const logged = (name: string, work: string): string => `import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
const root = process.env.TREE;
const log = (line) => appendFileSync(join(root, 'log'), line + '\\n');
const write = (file, text) => { mkdirSync(dirname(join(root, file)), { recursive: true }); writeFileSync(join(root, file), text); };
log('${name} begins ' + process.pid);
${work}
log('${name} ends');
`;
const TSC = logged('tsc', "for (const program of ['standalone', 'admin']) write(`deploy/${program}/dist/main.js`, 'process.stdout.write(\"started\\\\n\");'); write('deploy/split/dist/v8-flags.js', 'export const v8FlagsOf = () => [];');");
const VITE = logged('vite', "write('services/dashboard/dist/site/index.html', '');");
const ROLLDOWN = `import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
const write = async ({ dir, format }) => {
  if (format !== 'cjs') return;
  mkdirSync(dir, { recursive: true });
  cpSync('deploy/standalone/dist/main.js', join(dir, 'main.cjs'));
  writeFileSync(join(dir, 'warm.cjs'), 'exports.warm = async () => undefined;');
};
export const rolldown = async () => ({ write, close: async () => undefined });`;
const NPM = `#!/usr/bin/env node
${logged('npm', `rmSync(join(root, 'node_modules'), { recursive: true, force: true });
while (!existsSync(join(root, 'open'))) await new Promise((resolve) => setTimeout(resolve, 5));
${[['typescript/bin/tsc', TSC], ['vite/bin/vite.js', VITE], ['rolldown/index.js', ROLLDOWN]].map(([file, text]) => `write(${JSON.stringify(`node_modules/${file}`)}, ${JSON.stringify(text)});`).join('\n')}
write('node_modules/rolldown/package.json', '{"type":"module","main":"index.js"}');`)}`;

let tree: string;
let children: ChildProcess[];

beforeEach(() => {
  children = [];
  tree = mkdtempSync(join(tmpdir(), 'signalbox-two-starts-'));
  cpSync(SCRIPTS, join(tree, 'scripts'), { recursive: true });
  const files: Readonly<Record<string, string>> = { 'package.json': '{"type":"module"}', 'package-lock.json': '{}', 'tsconfig.json': '{}', 'tsconfig.base.json': '{}', 'bin/npm': NPM, 'bin/package.json': '{"type":"module"}' };
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    writeFileSync(join(tree, file), text);
  }
  for (const folder of ['libs', 'services/dashboard', 'deploy', 'tests', 'bench', 'sim', 'training']) mkdirSync(join(tree, folder), { recursive: true });
  chmodSync(join(tree, 'bin/npm'), 0o755);
});

afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  for (const pid of pids()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended, as it should.
    }
  }
  rmSync(tree, { recursive: true, force: true });
});

const log = (): string[] => (existsSync(join(tree, 'log')) ? readFileSync(join(tree, 'log'), 'utf8').trim().split('\n') : []);
const open = (): void => writeFileSync(join(tree, 'open'), '');
/** Of the tools that ran. */
const pids = (): number[] => log().flatMap((line) => / begins (\d+)$/.exec(line)?.[1] ?? []).map(Number);
/** What ran, without numbers of processes. */
const ran = (): string[] => log().map((line) => line.replace(/ \d+$/, ''));

interface Started {
  readonly child: ChildProcess;
  readonly said: () => string;
  readonly ended: Promise<{ readonly code: number | null; readonly out: string }>;
}

function start(script: string, ...args: readonly string[]): Started {
  const env = { PATH: `${join(tree, 'bin')}${delimiter}${process.env['PATH'] ?? ''}`, TREE: tree };
  const child = spawn(process.execPath, [join(tree, 'scripts', script), ...args], { cwd: tree, env, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const told = { out: '', error: '' };
  child.stdout.on('data', (part: Buffer) => (told.out += part.toString()));
  child.stderr.on('data', (part: Buffer) => (told.error += part.toString()));
  return { child, said: () => told.error, ended: new Promise((resolve) => child.once('close', (code) => resolve({ code, out: told.out }))) };
}

/** The first one, while npm installs for it. */
async function installing(): Promise<Started> {
  const first = start('start.mjs');
  await until(() => Promise.resolve(log().length > 0), 20_000);
  return first;
}

const isWaiting = ({ said }: Started): Promise<void> => until(() => Promise.resolve(WAITS.test(said())), 20_000);

test.each(['start.mjs', 'admin.mjs'])('a second %s waits for the first, says so, and finds all of it done', async (script) => {
  const first = await installing();
  const second = start(script);
  await isWaiting(second);
  expect(WAITS.exec(second.said())?.[1]).toBe(String(first.child.pid));
  expect(ran()).toEqual(['npm begins']);
  open();
  expect(await Promise.all([first.ended, second.ended])).toEqual([{ code: 0, out: 'started\n' }, { code: 0, out: 'started\n' }]);
  expect(ran()).toEqual(['npm begins', 'npm ends', 'tsc begins', 'tsc ends', 'vite begins', 'vite ends']);
}, 60_000);

/** As the root's package.json has them: programs with their arguments. */
const command = (name: string): readonly string[] => {
  const { scripts } = JSON.parse(readFileSync(join(SCRIPTS, '../package.json'), 'utf8')) as { readonly scripts: Readonly<Record<string, string>> };
  return (scripts[name] ?? '').replace(/^node scripts\//, '').split(' ');
};

test.each([
  ['build', ['tsc begins', 'tsc ends']],
  ['typecheck', ['tsc begins', 'tsc ends']],
  ['clean', ['tsc begins', 'tsc ends']],
  ['build:dashboard', []],
])('npm run %s waits for a start, and does its work after it', async (name, own) => {
  const first = await installing();
  const [script = '', ...args] = command(name);
  const second = start(script, ...args);
  await isWaiting(second);
  expect(ran()).toEqual(['npm begins']);
  open();
  expect((await Promise.all([first.ended, second.ended])).map(({ code }) => code)).toEqual([0, 0]);
  expect(ran()).toEqual(['npm begins', 'npm ends', 'tsc begins', 'tsc ends', 'vite begins', 'vite ends', ...own]);
}, 60_000);

test.each(['build.mjs', 'bundle.mjs'])('a start waits for %s, begun by hand', async (script) => {
  const first = await installing();
  open();
  await first.ended;
  rmSync(join(tree, 'open'));
  // The next tool of each is one that ends when it is told to.
  const held = logged('tool', "while (!existsSync(join(root, 'open'))) await new Promise((resolve) => setTimeout(resolve, 5));");
  writeFileSync(join(tree, 'node_modules/typescript/bin/tsc'), held);
  writeFileSync(join(tree, 'node_modules/rolldown/index.js'), `export const rolldown = async () => ({ write: async () => { ${held.replace(/^import .*$/gm, '').replace('const root', 'const { appendFileSync, existsSync } = await import("node:fs"); const { join } = await import("node:path"); const root')} }, close: async () => undefined });`);
  const building = start(script);
  await until(() => Promise.resolve(ran().at(-1) === 'tool begins'), 20_000);
  writeFileSync(join(tree, 'package-lock.json'), '{"a":1}');
  const next = start('start.mjs');
  await isWaiting(next);
  open();
  expect((await building.ended).code).toBe(0);
  expect((await next.ended).code).toBe(0);
  expect(ran().indexOf('tool ends')).toBeLessThan(ran().lastIndexOf('npm begins'));
}, 60_000);

test('what a killed start left running is waited for, and then made anew', async () => {
  const first = await installing();
  const second = start('start.mjs');
  await isWaiting(second);
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');
  // npm has outlived it, and has the folder still.
  const third = start('admin.mjs');
  await isWaiting(third);
  expect(ran()).toEqual(['npm begins']);
  open();
  expect(await Promise.all([second.ended, third.ended])).toEqual([{ code: 0, out: 'started\n' }, { code: 0, out: 'started\n' }]);
  expect(ran()).toEqual(['npm begins', 'npm ends', 'npm begins', 'npm ends', 'tsc begins', 'tsc ends', 'vite begins', 'vite ends']);
}, 60_000);

test('a killed start holds up nobody', async () => {
  const first = await installing();
  process.kill(Number(pids()[0]), 'SIGKILL');
  expect(await first.ended).toMatchObject({ code: 1 });
  open();
  const second = start('start.mjs');
  expect(await second.ended).toEqual({ code: 0, out: 'started\n' });
  expect(second.said()).not.toMatch(WAITS);
}, 60_000);
