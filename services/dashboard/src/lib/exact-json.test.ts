import { expect, test } from '@jest/globals';
import { Decimal, exactJson } from './exact-json.js';

test('what is no amount is written as JSON.stringify does', () => {
  const value = { name: 'a "quoted" \u2028 name', list: [1, null, undefined, { of: [] }], left: undefined, is: false, none: null, rate: 1e21 };
  expect(exactJson(value)).toBe(JSON.stringify(value));
  expect([exactJson('text'), exactJson(null), exactJson(2.5)]).toEqual(['"text"', 'null', '2.5']);
});

test('an amount keeps each of its digits, also those that a float has no room for', () => {
  expect(exactJson({ caps: [{ cap_usd: new Decimal('8999999.999999999') }] })).toBe('{"caps":[{"cap_usd":8999999.999999999}]}');
});
