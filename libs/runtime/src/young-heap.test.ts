import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createBodyWatch } from './young-heap.js';

const MIB = 1024 * 1024;

function story() {
  const clock = { nowMs: 1_000, monotonicMs: () => clock.nowMs };
  const due: (() => void)[] = [];
  let collections = 0;
  const watch = createBodyWatch({ clock, collect: () => (collections += 1), later: (callback) => due.push(callback) });
  const turn = (): void => due.splice(0).forEach((callback) => callback());
  return { clock, watch, turn, collected: () => collections };
}

test('2 MiB of bodies are followed by one collection, once the turn is over that read them', () => {
  const { watch, turn, collected } = story();
  watch.note(2 * MIB - 1);
  turn();
  expect(collected()).toBe(0);
  watch.note(1);
  watch.note(5 * MIB);
  expect(collected()).toBe(0);
  turn();
  turn();
  expect(collected()).toBe(1);
});

test('however many bodies come, there are ten collections a second at most', () => {
  const { clock, watch, turn, collected } = story();
  for (let ms = 0; ms < 1_000; ms += 1) {
    clock.nowMs += 1;
    watch.note(MIB);
    turn();
  }
  expect(collected()).toBeGreaterThanOrEqual(9);
  expect(collected()).toBeLessThanOrEqual(10);
});

const BUILT = (name: string): string => JSON.stringify(new URL(`../dist/${name}.js`, import.meta.url).href);
const REPORT = `
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { tuneProcess } from ${BUILT('process')};
import { noteBody } from ${BUILT('young-heap')};
if (process.argv[1] === 'tuned') tuneProcess();
const turn = () => new Promise(setImmediate);
await turn();
let collections = 0;
const count = (entries) => entries.forEach(({ detail }) => (collections += detail.kind === constants.NODE_PERFORMANCE_GC_MINOR ? 1 : 0));
const observer = new PerformanceObserver((list) => count(list.getEntries()));
observer.observe({ entryTypes: ['gc'] });
for (let n = 0; n < 11; n += 1) noteBody(Buffer.alloc(200_000).length);
for (let n = 0; n < 10; n += 1) await turn();
count(observer.takeRecords());
process.stdout.write(String(collections));
`;

test.each([['tuned', 1], ['as V8 has it', 0]])('in a process that is %s the collections of new objects that eleven prompts of 200 kB bring are %i', (how, collections) => {
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', REPORT, how], { encoding: 'utf8', cwd: fileURLToPath(new URL('.', import.meta.url)) });
  expect(stdout).toBe(String(collections));
});
