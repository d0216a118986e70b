import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

const BUILT = new URL('../dist/debian.js', import.meta.url).href;
const UNPACK = `import { unpackDebianPackage } from ${JSON.stringify(BUILT)}; process.stdout.write(JSON.stringify(unpackDebianPackage('program', process.env.CACHE, process.env.PATH) ?? null));`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-debian-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** With tools of a system that has the package; `download` is what happens while it comes. */
function unpack(download: string): unknown {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const tools = { 'apt-cache': 'true', 'dpkg-query': 'false', 'apt-get': `touch "$3.deb"\n${download}`, dpkg: 'mkdir -p usr/bin && touch usr/bin/program' };
  for (const [name, script] of Object.entries(tools)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', UNPACK], { encoding: 'utf8', timeout: 30_000, env: { PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}`, CACHE: join(folder, 'cache') } });
  return JSON.parse(stdout);
}

test.each([
  ['that nobody else wants', ''],
  ['that another process has just unpacked', 'mkdir -p "$CACHE/program/usr/bin" && touch "$CACHE/program/usr/bin/program"'],
])('a package %s is there, and nothing of the download is left', (_which, download) => {
  expect(unpack(download)).toMatchObject({ root: join(folder, 'cache/program') });
  expect(readdirSync(join(folder, 'cache'))).toEqual(['program']);
  expect(readdirSync(join(folder, 'cache/program/usr/bin'))).toEqual(['program']);
}, 60_000);
