import { describe, expect, test } from '@jest/globals';
import { createSseParser } from './sse.js';
import { everySplit } from './testing/replay.js';

/** What comes of `parts`. */
function dataOf(parts: readonly Uint8Array[]): readonly string[] {
  const events: string[] = [];
  const parser = createSseParser((bytes, from, to) => events.push(bytes.toString('utf8', from, to)));
  for (const part of parts) expect(parser.push(part)).toBe(true);
  expect(parser.close()).toBe(true);
  return events;
}

const LINES = [': begun', '', 'event: chunk', 'data: {"a":1}', '', 'data:one', 'data: two', 'id: 7', '', '', 'data: Größe', '', 'data: last'];
const EVENTS = ['{"a":1}', 'one\ntwo', 'Größe', 'last'];

describe.each([['LF', '\n'], ['CRLF', '\r\n'], ['CR', '\r']])('lines that end with %s', (_name, end) => {
  test.each([
    ['', LINES.join(end)],
    [', the last one too', `${LINES.join(end)}${end}${end}`],
    [', behind blank ones', `${end}${end}${LINES.join(end)}`],
  ])('give the same events however the bytes are split%s', (_what, text) => {
    const bytes = Buffer.from(text);
    expect(dataOf([bytes])).toEqual(EVENTS);
    for (const parts of everySplit(bytes)) expect(dataOf(parts)).toEqual(EVENTS);
  });
});

describe('JSON that a host writes bare behind its events', () => {
  const error = '{\n  "error": {\n    "code": 503,\n    "status": "UNAVAILABLE"\n  }\n}';
  const given = (text: string): unknown[] => dataOf([Buffer.from(text)]).map((event) => JSON.parse(event) as unknown);

  test.each([['as an object', error], ['in a list', `[${error}]`], ['on one line', '{"error":{"code":503,"status":"UNAVAILABLE"}}']])('is an event once the stream has ended with it, however the bytes are split: %s', (_how, bare) => {
    const told = JSON.parse(bare) as unknown;
    expect([given(`data: {"a":1}\n\n${bare}`), given(`data: {"a":1}\r\n\r\n${bare.replaceAll('\n', '\r\n')}\r\n`)]).toEqual([[{ a: 1 }, told], [{ a: 1 }, told]]);
    const bytes = Buffer.from(`data: {"a":1}\n\n${bare}\n`);
    for (const parts of everySplit(bytes)) expect(dataOf(parts).map((event) => JSON.parse(event) as unknown)).toEqual([{ a: 1 }, told]);
  });

  test.each([['events follow it', `${error}\n\ndata: {"b":2}\n\n`], ['it breaks off', error.slice(0, -4)], ['it tells no error', '{"note":"bye"}'], ['it goes on for ever', `{"error":"${'x'.repeat(70_000)}"}`]])('is skipped where %s', (_what, bare) => {
    expect(given(`data: {"a":1}\n\n${bare}`)[1]).toEqual(bare.includes('"b"') ? { b: 2 } : undefined);
  });
});

test('of what stands around bare JSON nothing is kept for the end of the stream', () => {
  const events: string[] = [];
  const parser = createSseParser((bytes, from, to) => events.push(bytes.toString('utf8', from, to)));
  const read = Buffer.from(`data: {"a":1}\n\n{"error":1}${'\n'.repeat(1_000)}`);
  parser.push(read);
  read.fill(' ');
  parser.close();
  expect(events).toEqual(['{"a":1}', '{"error":1}']);
});

test('an event whose lines CR alone ends is given when it has come, not at the end of the stream', () => {
  const events: string[] = [];
  const parser = createSseParser((bytes, from, to) => events.push(bytes.toString('utf8', from, to)));
  parser.push(Buffer.from('data: one\r'));
  parser.push(Buffer.from('\rdata: two\r'));
  expect(events).toEqual(['one']);
  parser.push(Buffer.from('\r'));
  expect(events).toEqual(['one', 'two']);
});
