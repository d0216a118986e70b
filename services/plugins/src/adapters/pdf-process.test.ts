import { describe, expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { createFakeClock } from '@signalbox/testkit/clock';
import { existsSync } from 'node:fs';
import { makeBomb, makeChinesePdf, makeEncryptedPdf, makeGlyphsPdf, makePdf } from '../testing/pdf.js';
import { createPdfProcess } from './pdf-process.js';

// Generous, since the host may be busy. Tests of the limits set their own.
const read = createPdfProcess({ clock: systemClock, timeoutMs: 60_000, memoryMib: 512, processesMax: 2 });
const signal = new AbortController().signal;

describe('a PDF', () => {
  test('is read page by page; scanned pages are told from empty ones; pages beyond the bound are counted, not read', async () => {
    expect(await read(makePdf(['The fox (red) runs', undefined, 'Third']), { accountId: 'a', maxPages: 10, signal })).toEqual({
      pageCount: 3, isCut: false, pages: [{ text: 'The fox (red) runs', isScanned: false }, { text: '', isScanned: true }, { text: 'Third', isScanned: false }],
    });
    expect(await read(makePdf(['one', 'two', 'three']), { accountId: 'a', maxPages: 1, signal })).toMatchObject({ pageCount: 3, pages: [{ text: 'one' }] });
  }, 120_000);

  test('of Chinese, whose characters are known by a map that is not in the file, is read as any other', async () => {
    expect(await read(makeChinesePdf(['\u4f60\u597d\u4e16\u754c'], 'UniGB-UCS2-H'), { accountId: 'a', maxPages: 10, signal })).toEqual({ pageCount: 1, isCut: false, pages: [{ text: '\u4f60\u597d\u4e16\u754c', isScanned: false }] });
  }, 120_000);

  test('whose text cannot be read is told from one without any', async () => {
    expect(await read(makeChinesePdf(['\u4f60\u597d'], 'No-Such-Map-H'), { accountId: 'a', maxPages: 10, signal })).toMatchObject({ pages: [{ text: '', isScanned: false, isUnreadable: true }] });
    expect(await read(makePdf([' ', '\u0001\u0002']), { accountId: 'a', maxPages: 10, signal })).toEqual({ pageCount: 2, isCut: false, pages: [{ text: '', isScanned: false }, { text: '', isScanned: false, isUnreadable: true }] });
  }, 120_000);

  test('whose font names halves of surrogate pairs gives text that every provider takes', async () => {
    expect(await read(makeGlyphsPdf(['uniD83D', 'uniDE00', 'uni00E9']), { accountId: 'a', maxPages: 10, signal })).toMatchObject({ pages: [{ text: 'x\uFFFDx\uFFFDx\u00e9x' }] });
  }, 120_000);

  test.each([
    ['encrypted', makeEncryptedPdf()],
    ['broken', Buffer.from('%PDF-1.7 and then nothing of the kind')],
    ['broken', makePdf(['x']).subarray(0, 60)],
  ])('that is %s is told as such', async (problem, bytes) => {
    expect(await read(bytes, { accountId: 'a', maxPages: 10, signal })).toEqual({ problem });
  }, 120_000);

  test('that unpacks to more than the memory allowed is ended there', async () => {
    const small = createPdfProcess({ clock: systemClock, timeoutMs: 60_000, memoryMib: 160, processesMax: 1 });
    const bomb = makeBomb(400 * 1_024 * 1_024);
    expect(bomb.length).toBeLessThan(100_000);
    expect(await small(bomb, { accountId: 'a', maxPages: 10, signal })).toEqual({ problem: 'memory' });
  }, 120_000);

  test.each([
    ['timeout', 'has computed for all of it', 4_600],
    ['timeout', 'has computed for who knows how long', undefined],
    ['unavailable', 'had the processor for a part of it alone: the machine was busy', 4_000],
  ])('that takes too long is ended at its time, and its place is free for the next; it is told as %s when it %s', async (problem, _why, used) => {
    const clock = createFakeClock();
    const slow = createPdfProcess({ clock, timeoutMs: 5_000, memoryMib: 512, processesMax: 1, processorMs: () => Promise.resolve(used) });
    const first = slow(makePdf(['x']), { accountId: 'a', maxPages: 1, signal });
    await Promise.resolve();
    clock.advance(5_000);
    expect(await first).toEqual({ problem });
    expect(await slow(makePdf(['again']), { accountId: 'a', maxPages: 1, signal })).toMatchObject({ pages: [{ text: 'again' }] });
  }, 120_000);

  test('is not called slow for what it did not compute', async () => {
    // Just started, so its process has used almost no processor time.
    const clock = createFakeClock();
    const busy = createPdfProcess({ clock, timeoutMs: 600_000, memoryMib: 512, processesMax: 1 });
    const first = busy(makePdf(['x']), { accountId: 'a', maxPages: 1, signal });
    await Promise.resolve();
    clock.advance(600_000);
    expect(await first).toEqual({ problem: existsSync('/proc/self/stat') ? 'unavailable' : 'timeout' });
  }, 120_000);

  test('whose caller leaves while it waits is not read', async () => {
    const one = createPdfProcess({ clock: systemClock, timeoutMs: 60_000, memoryMib: 512, processesMax: 1 });
    const left = new AbortController();
    const first = one(makePdf(['first']), { accountId: 'a', maxPages: 1, signal });
    const second = one(makePdf(['second']), { accountId: 'a', maxPages: 1, signal: left.signal });
    left.abort();
    expect(await second).toEqual({ problem: 'unavailable' });
    expect(await first).toMatchObject({ pageCount: 1 });
  }, 120_000);

  test('is refused at once when its account has too many in line', async () => {
    const left = new AbortController();
    const one = createPdfProcess({ clock: systemClock, timeoutMs: 60_000, memoryMib: 512, processesMax: 1 });
    const asked = Array.from({ length: 21 }, () => one(makePdf(['x']), { accountId: 'a', maxPages: 1, signal: left.signal }));
    expect(await one(makePdf(['x']), { accountId: 'a', maxPages: 1, signal })).toEqual({ problem: 'unavailable' });
    left.abort();
    expect(new Set((await Promise.all(asked)).map((answer) => ('problem' in answer ? answer.problem : 'read')))).toEqual(new Set(['unavailable']));
  }, 120_000);
});
