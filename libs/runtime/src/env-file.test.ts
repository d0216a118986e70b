import { afterAll, expect, test } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadEnvFile } from './env-file.js';

const folder = mkdtempSync(join(tmpdir(), 'signalbox-env-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const fileOf = (content: string | Buffer): string => {
  const file = join(folder, `env-${(files += 1)}`);
  writeFileSync(file, content);
  return file;
};

test('variables of the file are added, and none that is set is replaced, not even an empty one', () => {
  const environment = { PORT: '1', HOST: '' };
  expect(loadEnvFile(environment, fileOf('PORT=2\nHOST=x\nOPENAI_API_KEY = "sk-a" # mine\n'))).toBeUndefined();
  expect(environment).toEqual({ PORT: '1', HOST: '', OPENAI_API_KEY: 'sk-a' });
  expect(loadEnvFile(environment, join(folder, 'none'))).toBeUndefined();
});

test('a blank variable counts as absent, with and without a file', () => {
  const environment = { OPENAI_API_KEY: ' ', PORT: '\t', HOST: ' a ' };
  expect(loadEnvFile(environment, join(folder, 'none'))).toBeUndefined();
  expect(environment).toEqual({ OPENAI_API_KEY: '', PORT: '', HOST: ' a ' });
  expect(loadEnvFile(environment, fileOf('KEY_PEPPER=" "\n'))).toBeUndefined();
  expect(environment).toMatchObject({ KEY_PEPPER: '' });
});

test('a byte order mark, which some editors write, does not hide the first variable', () => {
  const environment = {};
  expect(loadEnvFile(environment, fileOf('\uFEFFOPENAI_API_KEY=sk-a\r\nPORT=1\r\n'))).toBeUndefined();
  expect(environment).toEqual({ OPENAI_API_KEY: 'sk-a', PORT: '1' });
});

test('what cannot be read is told in one line', () => {
  const inside = join(folder, 'a-folder');
  mkdirSync(inside);
  expect(loadEnvFile({}, inside)).toBe(`${inside}: cannot be read (EISDIR). It must be a file that this user may read, or not be there.`);
  const wide = fileOf(Buffer.from('\uFEFFPORT=1\n', 'utf16le'));
  const environment = {};
  expect(loadEnvFile(environment, wide)).toBe(`${wide}: is not UTF-8 text. Save it as UTF-8.`);
  expect(environment).toEqual({});
});
