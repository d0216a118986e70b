import { expect, test } from '@jest/globals';
import { isBlank } from './blank.js';

test.each(['', ' \t\n', '\u00a0\u3000', '\u200b', '\u200d\ufeff', '\u00ad', '\u202e', '\u2066\u2069', '\u3164', '\u115f', '\u2800', '\u0007', '\ufe0f', '\u{e0041}'])('nobody sees %j', (text) => {
  expect(isBlank(text)).toBe(true);
});

test.each(['a', ' a ', '\u200bа', '-', '日', '👍', '👩\u200d👧', 'e\u0301', 'ا', '\u202ex'])('%j is seen', (text) => {
  expect(isBlank(text)).toBe(false);
});
