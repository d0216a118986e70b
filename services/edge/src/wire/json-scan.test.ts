import { describe, expect, test } from '@jest/globals';
import { JSON_NODES_MAX, parseJsonObject } from './json-scan.js';

const reasonOf = (text: string): string => {
  const scan = parseJsonObject(Buffer.from(text));
  return scan.kind === 'ok' ? 'ok' : scan.reason;
};

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

describe('scan of a JSON body', () => {
  test.each([
    ['{}', 'ok'], [' { } \n', 'ok'], ['{"a":[],"b":{},"c":-0.5e+3,"d":"\\ud83d\\"x"}', 'ok'], ['{"a":{"x":1},"b":{"x":1}}', 'ok'],
    ['', 'syntax'], ['{', 'syntax'], ['{"a"}', 'syntax'], ['{"a":1,}', 'syntax'], ['{"a":[1,]}', 'syntax'], ['{"a":01}', 'syntax'], ['{"a":1}x', 'syntax'], ['{"a":[1}}', 'syntax'],
    ['{"a":"\n"}', 'syntax'], ['{"a":"\\x"}', 'syntax'], ['{"a":"\\u12g4"}', 'syntax'], ['{"a":tru}', 'syntax'], ['{"a":1.}', 'syntax'], ['{"a":1e}', 'syntax'], ['\ufeff{}', 'syntax'], ["{'a':1}", 'syntax'],
    ['[]', 'not-object'], ['1', 'not-object'], ['"x"', 'not-object'], ['null', 'not-object'],
    ['{"a":1,"a":2}', 'duplicate-key'], ['{"a":1,"\\u0061":2}', 'duplicate-key'], ['{"x":[{"é":1,"\\u00e9":2}]}', 'duplicate-key'],
    ['{"__proto__":1}', 'forbidden-key'], ['{"a":{"__pr\\u006fto__":1}}', 'forbidden-key'],
    [`{"a":${'['.repeat(31)}${']'.repeat(31)}}`, 'ok'], [`{"a":${'['.repeat(32)}${']'.repeat(32)}}`, 'too-deep'], [`{"a":${'['.repeat(100_000)}`, 'too-deep'],
    [`{"a":[${'1,'.repeat(JSON_NODES_MAX)}1]}`, 'too-many-nodes'],
  ])('judges %.40s as %s', (text, reason) => expect(reasonOf(text)).toBe(reason));

  test.each([0, 31, 32, 33, 34, 100])('ends a string of %d plain characters at its own quote, whatever escapes it has', (length) => {
    const plain = 'x'.repeat(length);
    for (const text of [plain, `${plain}"`, `"${plain}`, `${plain}\\`, `${plain}\\"${plain}\\\\`, `${plain}"${plain}é`, `\\${plain}"x"${plain}`]) {
      const body = Buffer.from(JSON.stringify({ a: text, b: [text, { c: text }], d: 1 }));
      const read = parseJsonObject(body);
      if (read.kind !== 'ok') throw new Error(`${text} was refused`);
      expect(read.object).toEqual({ a: text, b: [text, { c: text }], d: 1 });
      expect([...read.fields.keys()]).toEqual(['a', 'b', 'd']);
    }
    expect(reasonOf(`{"a":"${plain}`)).toBe('syntax');
    expect(reasonOf(`{"a":"${plain}\\"}`)).toBe('syntax');
    expect(reasonOf(`{"a":"${plain}\n"}`)).toBe('syntax');
    expect(reasonOf(`{"a":"${plain}\\x"}`)).toBe('syntax');
  });

  test('refuses bytes that are not UTF-8', () => {
    expect(parseJsonObject(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toEqual({ kind: 'invalid', reason: 'bad-utf8' });
  });

  test('finds a duplicate key however it is written, and whatever was compared before', () => {
    const wide = Array.from({ length: 15 }, (_, i) => `"\\u0061${String(i)}":0`).join(',');
    expect(reasonOf(`{"x":[{${wide}},{${wide}},{"a1":0,"b":{${wide}}}]}`)).toBe('ok');
    expect(reasonOf(`{"x":[{${wide}},{${wide},"a14":0}]}`)).toBe('duplicate-key');
    expect(reasonOf(`{"x":[{${wide}},{"a14":0,${wide}}]}`)).toBe('duplicate-key');
    // Comparisons in one body must not affect the next.
    expect(reasonOf('{"b0":0,"b1":0,"\\u0062":0}')).toBe('ok');
  });

  test('finds a duplicate key in a large object, even if one of the two has escapes', () => {
    const wide = Array.from({ length: 5_000 }, (_, i) => `"k${String(i)}é":0`).join(',');
    expect(reasonOf(`{"x":{${wide},"\\u006b4999\\u00e9":0}}`)).toBe('duplicate-key');
    expect(reasonOf(`{"x":{"\\u006b4999é":0,${wide}}}`)).toBe('duplicate-key');
    expect(reasonOf(`{"x":{${wide},"k4999é":0}}`)).toBe('duplicate-key');
    expect(reasonOf(`{"x":{${wide},"\\u006b5000é":0}}`)).toBe('ok');
    expect(reasonOf(`{"x":{${wide},"__proto__":0}}`)).toBe('forbidden-key');
    expect(reasonOf(`{"x":{${wide},"a":{"k1é":0}}}`)).toBe('ok');
  });

  test('returns the byte range of every top-level value', () => {
    const body = Buffer.from('{ "é" : {"a":[1, 2]} ,"b":"x\\"y", "c" : -1.5 ,"d":null}');
    const scan = parseJsonObject(body);
    if (scan.kind !== 'ok') throw new Error('expected a scan');
    expect([...scan.fields].map(([name, { start, end }]) => [name, body.toString('utf8', start, end)])).toEqual([['é', '{"a":[1, 2]}'], ['b', '"x\\"y"'], ['c', '-1.5'], ['d', 'null']]);
  });

  test('agrees with JSON.parse on mutated objects', () => {
    const seed = '{"long":"0123456789012345678901234567890123456789\\\\","a":[1,-2.5e3,"x\\n\\u00e9",true,false,null,{"b":{}}],"c":"é","d":[[]]}';
    const alphabet = '{}[]",:\\0123eE+-.tfnu \n\u0001é';
    let state = 12_345;
    const next = (bound: number): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) % bound;
    for (let round = 0; round < 20_000; round += 1) {
      let text = seed;
      for (let edits = 1 + next(3); edits > 0; edits -= 1) {
        const at = next(text.length);
        text = text.slice(0, at) + (next(2) === 0 ? alphabet.charAt(next(alphabet.length)) : '') + text.slice(at + next(2));
      }
      const reason = reasonOf(text);
      if (reason === 'duplicate-key') continue;
      expect([text, reason === 'ok']).toEqual([text, isJsonObject(text)]);
    }
  });
});
