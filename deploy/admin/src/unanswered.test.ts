import { expect, test } from '@jest/globals';
import { whyUnanswered } from './unanswered.js';

const failed = (code: string): Error => new TypeError('fetch failed', { cause: Object.assign(new Error('why'), { code }) });

test('a server that is still at work is told from one that is not there', () => {
  expect(whyUnanswered(failed('ECONNREFUSED'), 'http://h:1')).toBe('The server does not answer at http://h:1. Where it runs elsewhere, name its port in ADMIN_PORT or its address in ADMIN_URL.');
  expect(whyUnanswered(new TypeError('fetch failed'), 'http://h:1')).toBe('The server does not answer at http://h:1. Where it runs elsewhere, name its port in ADMIN_PORT or its address in ADMIN_URL.');
  expect(whyUnanswered(failed('UND_ERR_HEADERS_TIMEOUT'), 'http://h:1')).toMatch(/^The server at http:\/\/h:1 has not answered within five minutes, and may still be at work\./);
});
