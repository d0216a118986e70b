import { describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { AnswerTally, ANSWER_BOUNDS, isWithin, JsonTally, type AnswerBounds, type JsonBounds } from './json-bounds.js';

const BOUNDS: JsonBounds = { values: 10, members: 6, escapes: 3, bareBytes: 64 };
const within = (text: string, bounds = BOUNDS): boolean => {
  const bytes = Buffer.from(`x${text}x`);
  return isWithin(bytes, 1, bytes.length - 1, bounds);
};

function valuesIn(value: unknown): number {
  return typeof value === 'object' && value !== null ? Object.values(value).reduce((sum: number, inner) => sum + valuesIn(inner), 1) : 1;
}

describe('what may be parsed', () => {
  test.each<[boolean, string]>([
    [true, '[1,2,3,4,5,6,7,8,9]'],
    [false, '[1,2,3,4,5,6,7,8,9,0]'],
    [false, '[[],[],[],[],[]]'],
    [true, '{"a":1,"b":{"c":1,"d":1,"e":":"},"f":1}'],
    [false, '{"a":1,"b":{"c":1,"d":1,"e":1},"f":1,"g":1}'],
    [true, '{"a,[{":",[{,[{,[{,[{,[{"}'],
    [true, `["${'x'.repeat(1_000)}","${'x'.repeat(1_000)}"]`],
    [true, `["${'x'.repeat(100)}\\"\\",,,,,,,,,,,,,"]`],
    [false, '["\\n\\n\\n\\n"]'],
    [false, `["\\n${'x'.repeat(100)}\\n${'x'.repeat(100)}\\n\\n"]`],
    [false, `[${' '.repeat(100)}]`],
    [false, `[${'9'.repeat(100)}]`],
    [true, '[[[['],
    // No JSON: to be told by the parser, at once.
    [true, '"unfinished'],
    [true, '"\\'],
  ])('%s: %j', (expected, text) => expect(within(text)).toBe(expected));

  test('no value of any JSON is missed, and no more than two are seen in one', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const values = valuesIn(JSON.parse(text) as unknown);
        fc.pre(values > 1);
        const wide = { members: Infinity, escapes: Infinity, bareBytes: Infinity };
        expect(within(text, { ...wide, values: values - 1 }) && Buffer.byteLength(text) > values - 1).toBe(false);
        expect(within(text, { ...wide, values: 2 * values })).toBe(true);
      }),
    );
  });
});

describe('a whole answer', () => {
  const ANSWER: AnswerBounds = { values: 10, members: 6, escapes: 3, bareBytes: 64, logprobValues: 20 };
  const inPieces = (text: string, bytesEach: number, bounds: JsonBounds = ANSWER): boolean => {
    const tally = new JsonTally(bounds);
    const bytes = Buffer.from(text);
    let isIn = true;
    for (let at = 0; at < bytes.length; at += bytesEach) isIn = tally.push(bytes.subarray(at, at + bytesEach));
    return isIn;
  };
  const ten = '[1,2,3,4,5,6,7,8,9]';

  test.each<[boolean, string]>([
    [true, `{"logprobs":${ten},"x":1}`],
    [true, `{"a":{"logprobs" \n: {"content":[${ten}]}},"x":1}`],
    [true, `[{"logprobsResult":${ten}},2]`],
    [true, `[{"logprobs":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8}},2]`],
    [true, `{"logprobs":{"content":[{"token":"]}","bytes":[93,125]}]},"x":[2,3,4,5]}`],
    [false, `{"logprobs":[[${ten}],${ten},1,2]}`],
    [false, `{"logprobs":{"content":[]},"x":${ten}}`],
    [false, `{"logprobs":null,"x":${ten}}`],
    [false, `["logprobs",${ten}]`],
    [false, `{"a":"logprobs","b":${ten}}`],
    [false, `{"xlogprobs":${ten}}`],
    [false, `{"logprobs2":${ten}}`],
    [false, `{"logprobs":"${'\\n'.repeat(4)}"}`],
    [false, `{"logprobs":[1],"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`],
    // Of an error before it: said for good.
    [false, `${ten.replace('9', '9,10')} {"logprobs":[]}`],
  ])('%s: %j, in pieces of any size', (expected, text) => {
    for (const bytesEach of [1, 2, 3, 7, 1_000]) expect(inPieces(text, bytesEach)).toBe(expected);
  });

  test('no two ways to cut it are counted differently', () => {
    const wide = { members: 9, escapes: 4, bareBytes: 60 };
    fc.assert(
      fc.property(fc.json(), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 12 }), (json, bytesEach, values) => {
        const text = `{"logprobs":${json},"x":${json}}`;
        const bounds: AnswerBounds = { ...wide, values, logprobValues: values };
        expect(inPieces(text, bytesEach, bounds)).toBe(inPieces(text, text.length * 4, bounds));
      }),
    );
  });

  test('one that is short is not looked at, of a longer one every byte is', () => {
    const short = new AnswerTally({ ...ANSWER_BOUNDS, values: 10 });
    expect(short.push(Buffer.from(ten.repeat(20_000)))).toBe(true);
    expect(short.push(Buffer.from(ten.repeat(20_000)))).toBe(false);
    const long = new AnswerTally(ANSWER_BOUNDS);
    for (let i = 0; i < 40; i += 1) expect(long.push(Buffer.from('0,'.repeat(5_000)))).toBe(true);
    expect(long.push(Buffer.from('0,'.repeat(200_000)))).toBe(false);
  });
});

test('long strings are searched natively, each byte once, whatever is escaped in them', () => {
  const searched = jest.spyOn(Buffer.prototype, 'indexOf');
  const text = `["${`${'x'.repeat(100)}\\"`.repeat(1_000)}","${'y'.repeat(100_000)}"]`;
  expect(within(text, { values: 10, members: 6, escapes: 1_000, bareBytes: 64 })).toBe(true);
  const bytes = searched.mock.calls.reduce((sum, [, from], at) => {
    const found = searched.mock.results[at]?.value as number;
    return sum + (found === -1 ? text.length : found) - Number(from);
  }, 0);
  searched.mockRestore();
  // For each of two bytes.
  expect(bytes).toBeLessThanOrEqual(2 * (text.length + 2));
});
