import { expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { journalRig } from './testing/journal-rig.js';
import { localDisk } from './wal-disk.js';

test('a log that no orderly end closed stays known as one where the disk does not take the word of it', async () => {
  const { directory, open } = await journalRig();
  await (await open()).close();
  // Its process died.
  writeFileSync(join(directory, 'lock'), '999999999 1');
  const disk = localDisk(directory);
  const full = { ...disk, setTorn: () => { throw new Error('ENOSPC'); } };
  await expect(open(directory, full)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(disk.isWhole()).toBe(false);
});
