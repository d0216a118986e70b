import { expect, test } from '@jest/globals';
import { holdsNul, isReadableUrl } from './storable.js';

test.each([
  ['/v1/models/openai%2Fgpt-4o-mini?detail=full&x=%C3%A9+y', true], ['/api/requests?after=%00', false], ['/api/auth/key_%00', true], ['/v1/models/%ff', false], ['/v1/models/%', false], ['/api/requests/%E0%A4%A', false],
])('%s can be read: %s', (url, isReadable) => {
  expect(isReadableUrl(url)).toBe(isReadable);
});

test.each([
  [{ name: 'ci', limits: { allowed_models: ['a'], cap: 1, none: null } }, false], [{ name: 'a\0b' }, true], [{ limits: { allowed_models: ['a', '\0'] } }, true], [{ 'a\0': 1 }, true], ['\\u0000', false],
])('%j holds a NUL: %s', (body, holds) => {
  expect(holdsNul(body)).toBe(holds);
});
