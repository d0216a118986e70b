import { afterAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Refusal } from './door.js';
import { readText } from './text-file.js';

const folder = mkdtempSync(join(tmpdir(), 'signalbox-admin-'));
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, bytes: string | Uint8Array): string => {
  writeFileSync(join(folder, name), bytes);
  return join(folder, name);
};

test('text is read as it is, a byte-order mark apart', () => {
  expect(readText(file('text', '\uFEFFZoë 株\r\n'))).toBe('Zoë 株\r\n');
});

test('of `-` the text is what comes on standard input: a container has none of the operator’s files', () => {
  const program = `import { readText } from ${JSON.stringify(new URL('../dist/text-file.js', import.meta.url).href)}; process.stdout.write(readText('-'));`;
  const text = `Zoë 株\n${'x'.repeat(300_000)}`;
  expect(spawnSync(process.execPath, ['--input-type=module', '-e', program], { input: text, encoding: 'utf8', timeout: 20_000 })).toMatchObject({ status: 0, stdout: text });
});

test.each([
  ['none', 'cannot be read.', undefined],
  ['.', 'cannot be read.', undefined],
  ['latin-1', 'is no text in UTF-8.', Uint8Array.of(0x5a, 0x6f, 0xeb, 0x0a)],
  ['empty', 'is empty.', ''],
  ['blank', 'is empty.', ' \n'],
])('%s: the file %s', (name, what, bytes) => {
  const path = bytes === undefined ? join(folder, name) : file(name, bytes);
  expect(() => readText(path)).toThrow(new Refusal(`The file ${path} ${what}`));
});
