import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const FULL = '/dev/full';

test('an answer that cannot be written, as on a full disk, is a failure that is told: half of it is no answer', () => {
  if (!existsSync(FULL)) return;
  const disk = openSync(FULL, 'w');
  const { status, stderr } = spawnSync(process.execPath, [MAIN, '--help'], { stdio: ['ignore', disk, 'pipe'], encoding: 'utf8', timeout: 20_000 });
  closeSync(disk);
  expect({ status, stderr }).toEqual({ status: 1, stderr: 'The answer could not be written whole (ENOSPC).\n' });
});
