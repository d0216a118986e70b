import { expect, test } from '@jest/globals';
import { isReadableUrl, isStorable } from './storable.js';

test.each([
  ['/v1/models/openai%2Fgpt-4o-mini?detail=full&x=%C3%A9+y', true], ['/api/requests?after=%00', false], ['/api/auth/key_%00', true], ['/v1/models/%ff', false], ['/v1/models/%', false], ['/api/requests/%E0%A4%A', false],
])('%s can be read: %s', (url, isReadable) => {
  expect(isReadableUrl(url)).toBe(isReadable);
});

test.each([
  [{ name: 'ci', limits: { allowed_models: ['a'], cap: 1, none: null } }, true], [{ name: 'a\0b' }, false], [{ limits: { allowed_models: ['a', '\0'] } }, false], [{ 'a\0': 1 }, false], ['\\u0000', true],
  [{ name: '😀' }, true], [{ name: '\ud800' }, false], [{ allow_models: ['x\udc00'] }, false], [{ '\ud800': 1 }, false],
])('%j can be stored: %s', (body, can) => {
  expect(isStorable(body)).toBe(can);
});
