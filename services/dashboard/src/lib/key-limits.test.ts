import { expect, test } from '@jest/globals';
import { exactJson } from './exact-json.js';
import { amountProblem, draftOf, isSameLimits, isWellFormed, limitsBody, NO_LIMITS, rateProblem } from './key-limits.js';

const none = { requests_per_minute: null, cost_cap_usd: null, cost_cap_period: null, allowed_models: null };

test('limits that are opened and saved are the same ones: each cap to its last digit, the rate and the models', () => {
  const limits = { requests_per_minute: 60, cost_cap_usd: 0.000000001, cost_cap_period: 'day' as const, cost_caps: [{ cap_usd: 0.000000001, period: 'day' as const }, { cap_usd: 4393092.087081594, period: 'total' as const }], allowed_models: ['a/one'] };
  expect(exactJson(limitsBody(draftOf(limits)))).toBe('{"cost_caps":[{"cap_usd":0.000000001,"period":"day"},{"cap_usd":4393092.087081594,"period":"total"}],"requests_per_minute":60,"allowed_models":["a/one"]}');
  expect(exactJson(limitsBody(draftOf({ ...none, cost_cap_usd: 5, cost_cap_period: 'week' })))).toBe('{"cost_caps":[{"cap_usd":5,"period":"week"}],"requests_per_minute":null,"allowed_models":null}');
});

test('a key without limits has none, and whoever empties all fields takes them off', () => {
  expect(draftOf(none)).toEqual(NO_LIMITS);
  expect(limitsBody(NO_LIMITS)).toEqual({ cost_caps: null, requests_per_minute: null, allowed_models: null });
});

test('nothing may be spent where nothing is typed as an amount', () => {
  expect(exactJson(limitsBody({ ...NO_LIMITS, caps: { ...NO_LIMITS.caps, day: '0' } }))).toBe('{"cost_caps":[{"cap_usd":0,"period":"day"}],"requests_per_minute":null,"allowed_models":null}');
});

test.each([['', true], ['2', true], ['2.50', true], [' 0.000000001 ', true], ['9000000', true], ['9000000.1', false], ['0.0000000001', false], ['2,5', false], ['1,000', false], ['1e3', false], ['-1', false], ['$5', false], ['.5', false], ['5.', false], ['٣', false], ['Infinity', false]])('an amount of "%s" is one: %p', (text, isOne) => {
  expect(amountProblem(text) === undefined).toBe(isOne);
  expect(isWellFormed({ ...NO_LIMITS, caps: { ...NO_LIMITS.caps, week: text } })).toBe(isOne);
});

test.each([['', true], ['1', true], ['10000000', true], ['0', false], ['10000001', false], ['1.5', false], ['1e3', false], ['-1', false]])('a rate of "%s" is one: %p', (text, isOne) => {
  expect(rateProblem(text) === undefined).toBe(isOne);
  expect(isWellFormed({ ...NO_LIMITS, rate: text })).toBe(isOne);
});

test('limits are the same however they are written, and others where one digit is another', () => {
  const draft = { caps: { ...NO_LIMITS.caps, day: '2.5' }, rate: '60', models: ['a', 'b'] };
  expect(isSameLimits(draft, { caps: { ...NO_LIMITS.caps, day: ' 2.500' }, rate: '060', models: ['b', 'a'] })).toBe(true);
  for (const other of [{ ...draft, caps: NO_LIMITS.caps }, { ...draft, caps: { ...NO_LIMITS.caps, day: '2.500000001' } }, { ...draft, caps: { ...NO_LIMITS.caps, week: '2.5' } }, { ...draft, rate: '' }, { ...draft, models: ['a'] }]) expect(isSameLimits(draft, other)).toBe(false);
});
