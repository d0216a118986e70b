import { describe, expect, test } from '@jest/globals';
import type { ProgramEnd } from '../domain/program.js';
import { FOUND, PROBES } from '../testing/hostile-programs.js';
import { loadInterpreter, runProgram } from './program.js';

const run = async (code: string, outputBytes = 65_536, timeoutMs = 10_000): Promise<ProgramEnd> =>
  runProgram(await loadInterpreter(), code, { timeoutMs, memoryBytes: 16 * 1_048_576, outputBytes }, () => performance.now());

describe('a program', () => {
  test.each([
    ['1 + 1', { status: 'COMPLETED', result: '2', output: '' }],
    ["console.log('a', { b: [1n, null, undefined] }, new Set([1])); 'end'", { status: 'COMPLETED', output: 'a {"b":["1n",null,null]} {"Set":[1]}\n', result: 'end' }],
    ["console.log('a\\0b', 1); 'c\\0d'", { status: 'COMPLETED', output: 'a\0b 1\n', result: 'c\0d' }],
    ["JSON.stringify = () => '1'; console.log('a\\0b'); throw new Error('e\\0f')", { status: 'THREW', output: 'a\0b\n', error: 'Error: e\0f (line 1)' }],
    ["console.log('x'.repeat(60) + '\\ud83d')", { status: 'COMPLETED', output: `${'x'.repeat(60)}\ud83d\n` }],
    ['const x = 5', { status: 'COMPLETED', result: '' }],
    ['async function f() { await null; return 7 } f()', { status: 'COMPLETED', result: '7' }],
    ['const x = await Promise.resolve(5); console.log(x)', { status: 'COMPLETED', output: '5\n', result: '' }],
    ['let t = 0; for (let i = 1; i <= 1000; i += 1) t += i * i; t', { status: 'COMPLETED', result: '333833500' }],
    ["\nthrow new TypeError('no')", { status: 'THREW', error: 'TypeError: no (line 2)' }],
    ['nothing.at.all', { status: 'THREW', error: "ReferenceError: 'nothing' is not defined (line 1)" }],
    ['let a = ;', { status: 'THREW' }],
    ['Promise.reject(new RangeError("far"))', { status: 'THREW', error: 'RangeError: far (line 1)' }],
    ['new Promise(() => {})', { status: 'COMPLETED', result: '[A promise that nothing settles]' }],
    ['const a = []; for (;;) a.push(new ArrayBuffer(1 << 20))', { status: 'OUT_OF_MEMORY' }],
  ])('%s', async (code, expected) => {
    expect(await run(code)).toMatchObject(expected);
  });

  test('that prints too much is stopped, and what it printed is cut at a whole character', async () => {
    const end = await run("console.log('ab'); for (;;) console.log('€')", 64);
    expect(end.status).toBe('OUTPUT_LIMIT');
    expect(Buffer.byteLength(end.output)).toBeLessThanOrEqual(64);
    expect(end.output).toMatch(/^ab\n(€\n)+(€)?$/);
  });

  test('whose value is too long is stopped', async () => {
    const end = await run("'x'.repeat(1000)", 64);
    expect([end.status, end.result.length]).toEqual(['OUTPUT_LIMIT', 64]);
  });

  test('is stopped at its time, also where it catches everything', async () => {
    for (const code of ['while (1);', 'for (;;) { try { for (;;); } catch {} }', 'const p = () => Promise.resolve().then(p); p()']) {
      expect(await run(code, 64, 50)).toMatchObject({ status: 'TIMED_OUT', error: 'The program was stopped: it ran for longer than 50 ms.' });
    }
  });
});

test('there are probes enough', () => {
  expect(PROBES.length).toBeGreaterThanOrEqual(120);
});

test.each(PROBES.map((code, i) => [i + 1, code] as const))('probe %i finds nothing', async (_number, code) => {
  const end = await run(code);
  expect([code, ['COMPLETED', 'THREW'].includes(end.status)]).toEqual([code, true]);
  expect([code, `${end.output}${end.result}${end.error}`.includes(FOUND)]).toEqual([code, false]);
});
