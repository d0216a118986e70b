import { afterEach, expect, jest, test } from '@jest/globals';
import { parseIsoTime } from './iso-time.js';

afterEach(() => void jest.restoreAllMocks());

test.each([
  ['2026-11-22', Date.UTC(2026, 10, 22)], ['2024-02-29', Date.UTC(2024, 1, 29)], ['2026-11-22T10:30', Date.UTC(2026, 10, 22, 10, 30)], ['2026-11-22T10:30:15.5', Date.UTC(2026, 10, 22, 10, 30, 15, 500)],
  ['2026-11-22T10:30:15Z', Date.UTC(2026, 10, 22, 10, 30, 15)], ['2026-11-22T10:30+02:00', Date.UTC(2026, 10, 22, 8, 30)], ['2026-03-29T02:30', Date.UTC(2026, 2, 29, 2, 30)],
])('%s is %i', (text, ms) => {
  expect(parseIsoTime(text)).toBe(ms);
});

test('a time without an offset is never read in the zone of the server', () => {
  const parse = jest.spyOn(Date, 'parse');
  for (const text of ['2026-11-22T10:30', '2026-11-22T10:30:15', '2026-11-22T10:30:15.5']) parseIsoTime(text);
  for (const [given] of parse.mock.calls) expect(given).toMatch(/^[\d-]{10}$|Z$/);
});

test.each(['', 'x', '2026', '2026-02-31', '2026-13-01', '2026-11-22T25:00', '2026-11-22T', '22 Nov 2026', '-5', '1795379840000', '2026-11-22 10:30'])('%j is none', (text) => {
  expect(parseIsoTime(text)).toBeNaN();
});
