/** Preloaded with `--import <this file>?<folder>`: a V8 profile of the whole process, written at its exit. (`--cpu-prof` is refused in NODE_OPTIONS.) */
import { mkdirSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { roleOf } from './process-table.js';

const folder = decodeURIComponent(new URL(import.meta.url).search.slice(1));
const SAMPLE_US = 500;

if (folder !== '' && isMainThread) {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US });
  session.post('Profiler.start');
  process.once('exit', () => {
    session.post('Profiler.stop', (error, answer) => {
      if (error !== null) return;
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, `${roleOf(process.argv[1] ?? '', 'node')}-${String(process.pid)}.cpuprofile`), JSON.stringify(answer.profile));
    });
  });
}
