import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from './log.js';

let folder: string;
let descriptor: number;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-log-'));
  descriptor = openSync(join(folder, 'log'), 'w');
});

afterEach(() => {
  closeSync(descriptor);
  rmSync(folder, { recursive: true });
});

function logged(cause: unknown): Readonly<Record<string, unknown>> {
  createLog({ service: 'test', level: 'info', descriptor }).error('It failed.', {}, cause);
  return JSON.parse(readFileSync(join(folder, 'log'), 'utf8')) as Readonly<Record<string, unknown>>;
}

test('a bug is told by its name and where it was, never by its message', () => {
  const line = logged(new TypeError('a prompt'));
  expect(line).toMatchObject({ text: 'It failed.', error: 'TypeError', frames: expect.arrayContaining([expect.stringMatching(/^at .*log\.test/)]) as unknown });
  expect(JSON.stringify(line)).not.toContain('a prompt');
});

test('a fault is told by its code, and by what caused it and where that was', () => {
  const cause = Object.assign(new RangeError('a password'), { code: 'ECONNRESET' });
  const line = logged(new Fault('store_unavailable', 'gone', { cause }));
  expect(line).toMatchObject({ error: 'Fault', error_code: 'store_unavailable', caused_by: 'RangeError', caused_by_code: 'ECONNRESET', frames: expect.arrayContaining([expect.stringMatching(/^at .*log\.test/)]) as unknown });
  expect(JSON.stringify(line)).not.toContain('a password');
});

test.each([[new Fault('overloaded', 'full'), { error: 'Fault', error_code: 'overloaded', frames: [] }], ['a text', { error: 'string' }]])('%s without a cause is told as far as it goes', (cause, expected) => {
  expect(logged(cause)).toMatchObject(expected);
});
