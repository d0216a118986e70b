import { expect, test } from '@jest/globals';
import { harmless, readable } from './readable.js';

const NAME = 'a\u001b[2J\u009b31m\nstatus: active\u202e\u2028\u007fz é😀';

test('nothing in a name steers the terminal or forges a line', () => {
  const text = readable({ keys: [{ name: NAME, status: 'revoked' }], tags: [NAME], none: null });
  expect(text.trimStart()).toBe(
    ['keys:', '  -', '    name: a\\u001b[2J\\u009b31m\\u000astatus: active\\u202e\\u2028\\u007fz é😀', '    status: revoked', 'tags:', '  - a\\u001b[2J\\u009b31m\\u000astatus: active\\u202e\\u2028\\u007fz é😀', 'none: -'].join('\n'),
  );
});

test('JSON means the same and steers nothing', () => {
  const text = harmless(JSON.stringify({ name: NAME }));
  expect(JSON.parse(text)).toEqual({ name: NAME });
  expect(text).not.toMatch(/[\p{Cc}\p{Zl}\p{Bidi_Control}]/u);
});
