import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { JsonTally, type Segment } from './json-bounds.js';
import { readChatAnswer } from './openai-chat/response.js';
import { elementsOf, putBack, setApart } from './set-apart.js';

const BOUNDS = { values: 1e6, members: 1e6, escapes: 1e6, bareBytes: 1e6, logprobValues: 1e6 };

function segmentsOf(body: Buffer, bytesEach: number, piece = body.length): readonly Segment[] {
  const tally = new JsonTally(BOUNDS, bytesEach);
  for (let at = 0; at < body.length; at += piece) tally.push(body.subarray(at, at + piece));
  return tally.segments;
}

/** Read with its segments apart; undefined when they are not all put back. */
function inSteps(body: Buffer, segments: readonly Segment[]): string | undefined {
  const elements = segments.map((segment) => elementsOf(body, segment));
  const apart = setApart(body, segments);
  const result = readChatAnswer(apart.body, 's');
  if (!result.ok || elements.includes(undefined)) return undefined;
  return putBack(result.answer.choices, apart.mark, elements as Buffer[])?.toString();
}

function whole(body: Buffer): string | undefined {
  const result = readChatAnswer(body, 's');
  return result.ok ? Buffer.from(result.answer.choices).toString() : undefined;
}

const answer = (logprobs: readonly string[]): Buffer =>
  Buffer.from(`{"choices":[${logprobs.map((each, index) => `{"index":${index},"message":{"role":"assistant","content":"it fell apart"},"logprobs":${each},"finish_reason":"stop"}`).join()}]}`);
const TOKEN = '{"token": "é\\n],", "logprob": -0.10, "bytes": [104, 105], "top_logprobs": [{"token": "a"}, {"token": "b"}]}';
const tokens = (count: number): string => `{ "content": [${Array.from({ length: count }, () => TOKEN).join(' ,\n ')}], "refusal": null}`;

test.each<[string, string[]]>([
  ['of one choice', [tokens(100)]],
  ['of several', [tokens(40), 'null', tokens(3), tokens(40)]],
  ['in lists beside each other', [`{"tokens":[${'"a",'.repeat(200)}"b"],"token_logprobs":[${'-1.50,'.repeat(200)}0]}`]],
  ['in a list of its own', [`[${`${TOKEN},`.repeat(50)}${TOKEN}]`]],
])('probabilities %s are the same as read at once', (_what, logprobs) => {
  const body = answer(logprobs);
  const segments = segmentsOf(body, 300);
  expect(segments.length).toBeGreaterThan(2);
  expect(inSteps(body, segments)).toBe(whole(body));
  expect(segmentsOf(body, 300, 7)).toEqual(segments);
});

test('whatever stands there, it is the same or is not put back, and what is no JSON is found', () => {
  fc.assert(
    fc.property(fc.array(fc.json(), { minLength: 3 }), fc.integer({ min: 1, max: 40 }), fc.option(fc.nat(200), { nil: undefined }), (elements, bytesEach, spoilt) => {
      const list = `{"content":[${elements.join(',')}]}`;
      const body = answer([spoilt === undefined ? list : `${list.slice(0, spoilt)}]${list.slice(spoilt + 1)}`]);
      const told = inSteps(body, segmentsOf(body, bytesEach));
      if (told !== undefined || spoilt === undefined) expect(told).toBe(whole(body));
    }),
  );
});

test('no segment holds more than its bytes and an element, and what is left of the answer is small', () => {
  const body = answer([tokens(1_000)]);
  const segments = segmentsOf(body, 1_000);
  expect(Math.max(...segments.map(([from, to]) => to - from))).toBeLessThan(1_000 + 2 * TOKEN.length);
  expect(setApart(body, segments).body.length).toBeLessThan(1_000 + 2 * TOKEN.length + segments.length * 20);
});

test('members of an object are no segment', () => {
  const body = answer([`{"content":{${Array.from({ length: 300 }, (_, at) => `"k${at}":1`).join()}}}`]);
  expect(segmentsOf(body, 100)).toEqual([]);
});

test('what a provider writes where it is not given on as it came is not put back', () => {
  const list = `{"content":[${'1,'.repeat(200)}1]}`;
  const inCall = Buffer.from(`{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"logprobs":${list}}}}]},"finish_reason":"tool_calls"}]}`);
  const twice = Buffer.from(`{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"logprobs":${list},"logprobs":null,"finish_reason":"stop"}]}`);
  for (const body of [inCall, twice]) {
    const segments = segmentsOf(body, 200);
    expect(segments.length).toBeGreaterThan(0);
    expect(inSteps(body, segments)).toBeUndefined();
  }
});

test.each(['[1,"m0","m0"]', '["m0"]', '["a,m0",1,"m0"]', '[{"m0":1,"m0":2}]'])('a mark in another place is seen, in %s', (json) => {
  expect(putBack(Buffer.from(json), 'm', [Buffer.from('2')])).toBeUndefined();
});

test('a mark is as short, and found as fast, whatever the answer holds', () => {
  const segments: readonly Segment[] = [[2, 3]];
  let mark = '';
  for (const held of ['', '@apart', `@apart${'@'.repeat(1_000)}`]) {
    const next = setApart(Buffer.from(`[1,2,"${mark}${held}"]`), segments).mark;
    expect(next).toHaveLength(12);
    expect(next).not.toBe(mark);
    mark = next;
  }
});

test.each(['', ' ', '1,', '1,,2', '1],[2', '1 2', '{"a":1'])('%j is no list of elements', (text) => {
  expect(elementsOf(Buffer.from(text), [0, text.length])).toBeUndefined();
});
