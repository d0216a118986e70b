import { expect, test } from '@jest/globals';
import { createEventReader } from './events.js';

const STREAM = ': keep-alive\n\ndata: {"a":1}\n\ndata: two\ndata: lines\r\n\r\ndata: [DONE]\n\n';

test.each([1, 2, 3, 7, 1_000])('events are the same however the stream is cut (%i characters at a time)', (size) => {
  const seen: string[] = [];
  const reader = createEventReader((data) => seen.push(data));
  for (let i = 0; i < STREAM.length; i += size) reader.push(STREAM.slice(i, i + size));
  expect(seen).toEqual(['{"a":1}', 'two\nlines', '[DONE]']);
});
