import { describe, expect, test } from '@jest/globals';
import { parseJsonObject } from './json-scan.js';
import { jsonProblem } from './json-words.js';

function problemOf(text: string, shortens = false): string {
  const body = Buffer.from(text);
  const read = parseJsonObject(body, shortens);
  return read.kind === 'ok' ? '' : jsonProblem(read, body.length);
}

describe('the message for an invalid body', () => {
  test.each([
    ['', 'The body is empty: it must be a JSON object.'],
    ['{', 'The body is not valid JSON: it ends too soon, after 1 byte.'],
    ['{"a":[1,{"b":"c', 'The body is not valid JSON: it ends too soon, after 15 bytes.'],
    ['{"a":1', 'The body is not valid JSON: it ends too soon, after 6 bytes.'],
    ["{'a':1}", 'The body is not valid JSON. See byte 1 (the first is 0).'],
    ['\ufeff{"a":1}', 'The body is not valid JSON. See byte 0 (the first is 0).'],
    ['{"a":1,}', 'The body is not valid JSON. See byte 7 (the first is 0).'],
    ['{"a":True}', 'The body is not valid JSON. See byte 5 (the first is 0).'],
    ['{"a" 1}', 'The body is not valid JSON. See byte 5 (the first is 0).'],
    ['{"a":1}x', 'The body is not valid JSON. See byte 7 (the first is 0).'],
    ['{"a":"\n"}', 'The body is not valid JSON. See byte 6 (the first is 0).'],
    // The byte, not the character: characters of two and four bytes precede it.
    ['{"é😀":"\\x"}', 'The body is not valid JSON. See byte 12 (the first is 0).'],
    ['{"é":1,"\\x":1}', 'The body is not valid JSON. See byte 10 (the first is 0).'],
    ['[]', 'The body must be a JSON object.'],
    ['{"model":"a","model":"b"}', "The body holds the same key twice in one object: 'model'. See byte 13 (the first is 0)."],
    ['{"x":[{"b":1,"\\u0062":2}]}', "The body holds the same key twice in one object: 'b'. See byte 13 (the first is 0)."],
    ['{"__proto__":1}', "The body holds a key that is not allowed: '__proto__'. See byte 1 (the first is 0)."],
    [`{"a":${'['.repeat(40)}`, 'The body is nested more than 32 levels deep. In a JSON schema give the inner parts a name in $defs, and $ref them; send other deep values as text. See byte 36 (the first is 0).'],
  ])('%.40s', (text, words) => expect(problemOf(text)).toBe(words));

  test.each([
    ['in a long text', (text: string) => `{"messages":[{"content":"é${text}\\x${text}"}]}`, 100_028],
    ['after a shortened text', (text: string) => `{"messages":[{"content":"é${text}"},{"name":"\\x"}]}`, 100_040],
    ['of a key after a shortened text', (text: string) => `{"messages":[{"content":"é${text}"}],"\\x":1}`, 100_033],
    ['after many messages that are parsed in pieces', (text: string) => `{"messages":[${`{"content":"é${text.slice(0, 10_000)}"},`.repeat(10)}{"content":"\\x"}]}`, 100_196],
    ['of an early end after a shortened text', (text: string) => `{"messages":[{"content":"é${text}"},`, -1],
  ])('gives the byte position in the body even if long texts are not parsed: %s', (_where, of, byte) => {
    const text = of('x'.repeat(100_000));
    expect(problemOf(text, true)).toBe(problemOf(text));
    expect(problemOf(text)).toContain(byte === -1 ? `it ends too soon, after ${Buffer.byteLength(text)} bytes.` : `See byte ${byte} `);
  });

  test.each(['my secret words', 'sk-live-1', 'a'.repeat(33), 'é', ''])('does not repeat a key that is not a plain name: %s', (key) => {
    expect(problemOf(JSON.stringify({ x: 1 }).replace('"x":1', `"${key}":"value","${key}":2`))).toMatch(/^The body holds the same key twice in one object\. See byte \d+ \(the first is 0\)\.$/);
  });

  test('does not repeat any value, wherever the body breaks', () => {
    const whole = '{"model":"auto","messages":[{"role":"user","content":"hunter2 \\n x"}],"model":2}';
    for (let end = 1; end < whole.length; end += 1) {
      expect(problemOf(whole.slice(0, end))).not.toMatch(/hunter|auto|user/);
      expect(problemOf(`${whole.slice(0, end)}\u0001${whole.slice(end)}`)).not.toMatch(/hunter|auto|user/);
    }
  });
});
