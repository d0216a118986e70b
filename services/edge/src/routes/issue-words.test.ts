import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { placeOf, wordsOf } from './issue-words.js';

const wordsFor = (schema: z.ZodType, value: unknown): string => {
  const [issue] = schema.safeParse(value).error?.issues ?? [];
  return issue === undefined ? '' : `${placeOf(issue).join('.')}: ${wordsOf(issue)}`;
};

test.each<[string, z.ZodType, unknown, string]>([
  ['a fraction', z.object({ n: z.int() }), { n: 1.5 }, 'n: expected an integer'],
  ['a fraction, with another check of integers', z.object({ n: z.number().int() }), { n: 1.5 }, 'n: expected an integer'],
  ['a text for a number', z.object({ n: z.number() }), { n: '1' }, 'n: expected a number'],
  ['a number for a text', z.object({ n: z.string() }), { n: 1 }, 'n: expected a string'],
  ['no object', z.object({ n: z.string() }), [], ': expected an object'],
  ['no boolean', z.object({ n: z.boolean() }), { n: 0 }, 'n: expected a boolean'],
  ['no list', z.object({ n: z.array(z.string()) }), { n: 'a' }, 'n: expected an array'],
  ['too little', z.object({ n: z.number().min(1) }), { n: 0 }, 'n: expected at least 1'],
  ['too much', z.object({ n: z.number().max(5) }), { n: 6 }, 'n: expected at most 5'],
  ['zero for a positive number', z.object({ n: z.number().positive() }), { n: 0 }, 'n: expected more than 0'],
  ['an empty text', z.object({ n: z.string().min(1) }), { n: '' }, 'n: expected a string that is not empty'],
  ['a long text', z.object({ n: z.string().max(2) }), { n: 'abc' }, 'n: expected at most 2 characters'],
  ['a long list', z.object({ n: z.array(z.string()).max(1) }), { n: ['a', 'b'] }, 'n: expected at most 1 item'],
  ['a value of a list', z.object({ n: z.enum(['a', 'b']) }), { n: 'c' }, "n: expected one of 'a', 'b'"],
  ['a single allowed value', z.object({ n: z.literal('a') }), { n: 'c' }, "n: expected 'a'"],
  ['an unknown field', z.strictObject({ n: z.object({}).strict() }), { n: { ['x'.repeat(90)]: 1 } }, `n.${'x'.repeat(64)}: there is no such field`],
  ['a message of the schema’s own', z.object({ n: z.string().min(1, 'must not be empty; leave it out') }), { n: '' }, 'n: must not be empty; leave it out'],
  ['one of several forms', z.object({ n: z.union([z.string(), z.number()]) }), { n: true }, 'n: is not of a form that is known here'],
])('%s is reported in plain words', (_what, schema, value, words) => {
  expect(wordsFor(schema, value)).toBe(words);
});
