import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const BUILT = new URL('../dist/process.js', import.meta.url).href;
const REPORT = `
import { readdirSync } from 'node:fs';
import { getPriority } from 'node:os';
import { tuneProcess } from ${JSON.stringify(BUILT)};
const own = getPriority();
tuneProcess();
const others = readdirSync('/proc/self/task').map(Number).filter((id) => id !== process.pid);
process.stdout.write(JSON.stringify({ own, after: getPriority(), others: others.map((id) => getPriority(id)) }));
`;

(process.platform === 'linux' ? test : test.skip)('the threads that compile and collect yield to the one that answers', () => {
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', REPORT], { encoding: 'utf8', cwd: fileURLToPath(new URL('.', import.meta.url)) });
  const { own, after, others } = JSON.parse(stdout) as { own: number; after: number; others: number[] };
  expect(after).toBe(own);
  expect(others.length).toBeGreaterThan(0);
  expect(others.every((niceness) => niceness === Math.min(19, own + 3))).toBe(true);
});

test('V8 knows every flag that a process sets for itself on this Node line', () => {
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', `import { tuneProcess } from ${JSON.stringify(BUILT)}; tuneProcess();`], { encoding: 'utf8', cwd: fileURLToPath(new URL('.', import.meta.url)) });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
