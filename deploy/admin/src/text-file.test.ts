import { afterAll, expect, test } from '@jest/globals';
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
