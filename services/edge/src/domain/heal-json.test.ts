import { afterEach, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { healJson, JsonHealer, repairBudget, type HealedText, type HealStep, type JsonKind } from './heal-json.js';

/** Heals the text as a stream of pieces; a text that cannot be healed is compared unchanged. */
function streamed(pieces: readonly string[], kind: JsonKind, isCut: boolean): HealedText {
  const healer = new JsonHealer(kind, repairBudget());
  const given = pieces.map((piece) => healer.push(piece)).join('');
  const last = healer.finish(isCut);
  return { ...last, text: given + last.text };
}

const cutAt = (text: string, at: readonly number[]): string[] => {
  const places = [...new Set(at.map((place) => place % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, index) => text.slice(from, places[index] ?? text.length));
};

const FENCE = '```';
const CASES: readonly (readonly [string, string, string, readonly HealStep[]])[] = [
  ['is left alone when it is right', ' {"a": [1, 2.50, "x"]}\n', ' {"a": [1, 2.50, "x"]}\n', []],
  ['loses a byte order mark', '\uFEFF{"a":1}', '{"a":1}', ['bom']],
  ['loses its fence', `${FENCE}json\n{"a":1}\n${FENCE}`, '{"a":1}', ['fence']],
  ['loses prose before and behind', 'Sure! Here it is:\n{"a":1}\nHope this helps.', '{"a":1}', ['prose']],
  ['loses fence and prose', `Here:\n${FENCE}json\n{"a":1}\n${FENCE}\nBye`, '{"a":1}', ['fence', 'prose']],
  ['loses a second value', '{"a":1}\n{"b":2}', '{"a":1}', ['prose']],
  ['loses a thinking block, values and all', '<think>maybe {"a":0}?</think>{"a":1}', '{"a":1}', ['prose']],
  ['is not looked for in braces of prose', 'Use {curly} braces, or [1]: {"a":1}', '{"a":1}', ['prose']],
  ['loses a trailing comma', '{"a":[1,2,],}', '{"a":[1,2]}', ['syntax']],
  ['gets double quotes', "{'a': 'it'}", '{"a": "it"}', ['syntax']],
  ['gets quotes around keys', '{a: 1, b_c: [true]}', '{"a": 1, "b_c": [true]}', ['syntax']],
  ['gets its literals', '{"a": True, "b": None, "c": False}', '{"a": true, "b": null, "c": false}', ['syntax']],
  ['gets the first quote of its first key', 'Here: {a": {"b": 1}, "c": 2}', '{"a": {"b": 1}, "c": 2}', ['prose', 'syntax']],
  ['loses comments with words in quotes', '{"a":"x", // the "best"\n "b":"y" /* it\'s "so" */}', '{"a":"x", \n "b":"y" }', ['syntax']],
  ['loses comments with an apostrophe', '{"a":1, // users\' list\n "b":2}', '{"a":1, \n "b":2}', ['syntax']],
  ['loses a list of what its members are', '{"a":1}\n\n- "a": the 5" one, see [1]\n- "b": none :]', '{"a":1}', ['prose']],
  ['is found behind its name', 'The "answer": {"a":1}', '{"a":1}', ['prose']],
  ['loses one brace too many', '{"a":{"b":1}}} Done.', '{"a":{"b":1}}', ['prose']],
  ['loses comments', '{"a":1, // one\n "b":2}', '{"a":1, \n "b":2}', ['syntax']],
  ['gets missing commas', '{"a":1 "b":2}', '{"a":1, "b":2}', ['syntax']],
  ['gets inner quotes escaped', '{"a":"say "hi" now","b":1}', '{"a":"say \\"hi\\" now","b":1}', ['syntax']],
  ['keeps what stands behind a bracket in a string of single quotes', "{'a': 'x} y', 'b': [']']}", '{"a": "x} y", "b": ["]"]}', ['syntax']],
  ['keeps what stands behind a bracket in a string of backticks', '{"a": `x} y`, "b": 2}', '{"a": "x} y", "b": 2}', ['syntax']],
  ['keeps what stands behind a bracket in a comment', '{a: 1, /* } */ b: 2, // }\n c: 3}', '{"a": 1,  "b": 2, \n "c": 3}', ['syntax']],
  ['takes no slashes of a URL for a comment', "{'a': http://x/y}\nor {so}", '{"a": "http://x/y"}', ['prose', 'syntax']],
  ['gets line breaks escaped', '{"a":"x\ny"}', '{"a":"x\\ny"}', ['syntax']],
];

describe('an answer', () => {
  test.each(CASES)('%s', (_name, text, healed, steps) => {
    expect(healJson(text, 'object', false)).toEqual({ text: healed, steps, isJson: true });
    expect(streamed([text], 'object', false)).toEqual({ text: healed, steps, isJson: true });
  });

  test.each(CASES)('%s, wherever a stream of it is split', (_name, text) => {
    const whole = streamed([text], 'object', false);
    for (let at = 0; at <= text.length; at += 1) expect(streamed([text.slice(0, at), text.slice(at)], 'object', false)).toEqual(whole);
    expect(streamed([...text], 'object', false)).toEqual(whole);
  });

  test.each([
    ['prose', 'I cannot answer that.'],
    ['nothing', ''],
    ['an array where an object is wanted', '[{"a":1},{"a":2}]'],
    ['an array in prose where an object is wanted', 'These: [{"a":1},{"a":2}]'],
    ['a string', '"{\\"a\\":1}"'],
    ['members without the first brace', '"a": {"b": 1}, "c": 2}'],
    ['such in a fence', `${FENCE}json\n"a": {"b": 1}\n${FENCE}`],
    ['such of single quotes', "'a b': [{'b': 1}]}"],
    ['a first key of words that lacks a quote', '{a b": {"c": 1}, "d": 2}'],
    ['ended by a brace in a string that an inner quote ends', '{"a": "{k"}", "b": 1}'],
    ['such at the end of a list', '{"a": ["[k"]}"] }'],
    ['such without the first quote, where another string has an escaped quote', '{"a":b} c {d","e":["f \\"g","h, i"]}'],
    ['such behind a mistake', `{'a': 1, "b": "x"}", 'c': 2}`],
    ['such with more words in the string', '{"a": "x"}y", "b": 1}'],
    ['ended by one brace too many', '{"a": {"b": 1}}, "c": 2}'],
    ['such behind a mistake of single quotes', "{'a': {'b': 1}}, 'c': 2}"],
    ['such before a key without quotes', '{a: 1}, b: 2}'],
    ['the value of a member whose object is broken', '"a": 1, "b": {"c": 2}}'],
    ['a URL of which a quote stands in the middle', '{"a": "http:"//x/y",\n "b": 1}'],
    ['such at the end', '{"a": "http:"//x/y"\n}'],
    ['such without its last quote', '{"a": "http:"//x/y,\n"b": 1}'],
    ['a string with slashes in inner quotes', `{"a": "see "// x" y",\n 'b': 1}`],
    ['one with a number sign', '{"a": "x", #1 y",\n "b": 2}'],
    ['one whose first quote is missing before a number sign', '{"a": x #y z",\n "b": 2}'],
    ['ended by a comma and a brace in a string that an inner quote ends', '{"a": "use ",}" here", "b": 1}'],
    ['such within an object', '{"a": {"b": "use ",}" here"}, "c": 1}'],
    ['such within a list', '{"a": ["x ",] y", "z"]}'],
    ['ended by one brace too many behind a comma', '{"a":1,}}, "c":2}'],
    ['cut off by itself behind a comma and a bracket', '{"a":[1,]\n'],
    ['cut off by itself', '{"a":1,"b":[2'],
    ['cut off and broken', '{"a":1,"b":tru'],
    ['beyond repair', '{"a" "b" {c} : 1}'],
    ['broken and cut off by itself', "{'a':{'b':1},'c':[1"],
    ['broken and without its last bracket', "{'a':{'b':1}"],
  ])('that is %s is returned unchanged, and reported as such', (_name, text) => {
    expect(healJson(text, 'object', false)).toEqual({ text, steps: [], isJson: false });
    expect(streamed([...text], 'object', false)).toEqual({ text, steps: [], isJson: false });
  });

  test.each([
    ['{"a":"x', '{"a":"x"}'],
    ['{"a":"x\\', '{"a":"x"}'],
    ['{"a":"x\\u00', '{"a":"x"}'],
    ['{"a":"x"', '{"a":"x"}'],
    ['{"a":[1,{"b":2', '{"a":[1,{"b":2}]}'],
    ['{"a":[1,', '{"a":[1]}'],
    ['{"a":1,"b', '{"a":1}'],
    ['{"a":1,"b"', '{"a":1}'],
    ['{"a":1,"b": ', '{"a":1}'],
    ['{"a":1,"b":-', '{"a":1}'],
    ['{"a":1,"b":1.', '{"a":1,"b":1}'],
    ['{"a":tr', '{"a":true}'],
    ['{', '{}'],
    ['Here: {"a":"b', '{"a":"b"}'],
  ])('that the limit cut off at %j is closed as %j', (text, closed) => {
    expect(healJson(text, 'object', true)).toMatchObject({ text: closed, isJson: true });
    expect(streamed([...text], 'object', true)).toMatchObject({ text: closed, isJson: true });
    expect(healJson(text, 'object', true).steps).toContain('closed');
  });

  test('that is broken and cut off after a long run of blanks is read in linear time', () => {
    const blanks = ' \n'.repeat(60_000);
    expect(healJson(`{'a':1${blanks}`, 'object', true)).toEqual({ text: '{"a":1}', steps: ['syntax', 'closed'], isJson: true });
    expect(JSON.parse(healJson(`{'a':'${blanks}`, 'object', true).text)).toEqual({ a: blanks });
    expect(healJson(`{'a':[1${FENCE}\n`, 'object', true)).toEqual({ text: '{"a":[1]}', steps: ['fence', 'syntax', 'closed'], isJson: true });
  });

  test('for a schema without a root type may be a scalar', () => {
    for (const text of ['42', '"x"', 'true', ' null ', '-1.5e3']) expect(streamed([...text], 'any', false)).toEqual({ text, steps: [], isJson: true });
    expect(healJson(`${FENCE}json\n"x"\n${FENCE}`, 'any', false)).toEqual({ text: '"x"', steps: ['fence'], isJson: true });
    const thought = `<think>2 or 3?</think>\n\n42`;
    for (const healed of [healJson(thought, 'any', false), streamed([...thought], 'any', false)]) expect(healed).toEqual({ text: '42', steps: ['prose'], isJson: true });
  });

  test('for a schema without a root type is not taken from a number or quote in prose, wherever the stream is split', () => {
    for (const text of ['I found 3 of them, "true": {"a":1}', '<think>2 or 3?</think>Here are 3: [1,2]', 'There are 3 "words" here.', '-- 4']) {
      const whole = healJson(text, 'any', false);
      expect(whole.text).toBe(whole.isJson ? text.slice(text.search(/[{[]/)) : text);
      for (const pieces of [[...text], text.split(/(?=\d|")/)]) expect(streamed(pieces, 'any', false)).toEqual(whole);
    }
  });

  test('may be nested to any depth without an error', () => {
    for (const text of ['['.repeat(200_000), '{"a":'.repeat(50_000), `${'[1,'.repeat(20_000)}x`]) expect(healJson(text, 'any', true)).toMatchObject({ text: expect.anything() as unknown });
  });
});

test('is repaired only up to a bound of characters, however many texts it has', () => {
  const text = (chars: number): string => `{'a':'${'x'.repeat(chars - 8)}'}`;
  expect([healJson(text(262_144), 'object', false).isJson, healJson(text(262_145), 'object', false)]).toEqual([true, { text: text(262_145), steps: [], isJson: false }]);
  const budget = repairBudget();
  expect([160_000, 160_000, 80_000].map((chars) => healJson(text(chars), 'object', false, budget).isJson)).toEqual([true, false, true]);
  // A text that needs no repair may be of any length.
  expect(healJson(`Here: {"a":"${'x'.repeat(400_000)}",} Bye.`, 'object', false)).toMatchObject({ steps: ['prose', 'syntax'], isJson: true });
});

describe('a stream', () => {
  test('passes on certain text at once, and holds back only the rest', () => {
    const healer = new JsonHealer('object', repairBudget());
    expect(healer.push('Sure:\n')).toBe('');
    expect(healer.push('{"ci')).toBe('{');
    expect(healer.push('ty": "Os')).toBe('"city": "Os');
    expect(healer.push('lo\\')).toBe('lo');
    expect(healer.push('n"')).toBe('\\n');
    expect(healer.push(', "n": 1')).toBe('"');
    expect(healer.push('2')).toBe('');
    expect(healer.push(',')).toBe(', "n": 12');
    expect(healer.push(' "list": [')).toBe(', "list": [');
    expect(healer.push('true')).toBe('');
    expect(healer.push(',]}')).toBe('true]}');
    expect(healer.push('\nAnything else?')).toBe('');
    expect(healer.finish(false)).toEqual({ text: '', steps: ['prose', 'syntax'], isJson: true });
  });

  test.each([
    ['an array where an object is wanted', '[{"a":', '1}]'],
    ['members without the first brace', '"a": {', '"b": 1}, "c": 2}'],
    ['a first key of words that lacks a quote', '{a b": ', '{"c": 1}}'],
  ])('that is %s is held back to its end like prose, so that another provider may still be asked', (_name, first, more) => {
    const healer = new JsonHealer('object', repairBudget());
    expect(healer.push(first) + healer.push(more)).toBe('');
    expect(healer.finish(false)).toEqual({ text: first + more, steps: [], isJson: false });
    const long = new JsonHealer('object', repairBudget());
    const rest = `${more}${' '.repeat(65_536)}`;
    expect(long.push(first) + long.push(rest) + long.push('{}')).toBe(`${first}${rest}{}`);
  });

  test('without a value is passed on once it is too long to be held back', () => {
    const healer = new JsonHealer('object', repairBudget());
    const prose = 'word '.repeat(14_000);
    expect(healer.push(prose)).toBe(prose);
    expect(healer.push('{"a":1}')).toBe('{"a":1}');
    expect(healer.finish(false)).toMatchObject({ isJson: false });
  });

  test('of many small pieces takes linear time', () => {
    const text = `{"items":[${Array.from({ length: 20_000 }, (_, n) => `{"n":${String(n)},"t":"some text"}`).join(',')}]}`;
    expect(streamed(text.match(/.{1,4}/gs) ?? [], 'object', false)).toEqual({ text, steps: [], isJson: true });
  });
});

describe('proof by fuzzing', () => {
  const root = (kind: JsonKind) => fc.json({ maxDepth: 4 }).filter((text) => kind === 'any' || (kind === 'array' ? text.startsWith('[') : text.startsWith('{')));
  const objects = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 3 })).map((value) => JSON.stringify(value, null, 1));
  /** No brackets and no colons: words before a bracket, or quotes before a colon, may belong to the value. */
  const prose = fc.string({ maxLength: 30 }).map((text) => text.replace(/[{}[\]:]/g, ''));
  /** Directly after a value, a quote and a comma end a string that contained its bracket. */
  const proseBehind = prose.filter((text) => !/^"[ \t\r\n]*,/.test(text));
  const cuts = fc.array(fc.nat(), { maxLength: 8 });
  /** JSON with characters removed, inserted or doubled. */
  const broken = fc.tuple(objects, fc.array(fc.tuple(fc.nat(), fc.constantFrom('', ',', '"', "'", '}', '{', ']', ':', '\\', '\n', 'True', '/*', '`', 'x')), { maxLength: 4 })).map(([text, edits]) => edits.reduce((edited, [place, by]) => {
    const at = place % (edited.length + 1);
    return edited.slice(0, at) + by + edited.slice(at + (place % 2));
  }, text));

  test('valid JSON is never changed, in one piece or in many', () => {
    for (const kind of ['object', 'array', 'any'] as const) {
      fc.assert(fc.property(root(kind), cuts, fc.boolean(), (text, at, isCut) => {
        expect(healJson(text, kind, isCut)).toEqual({ text, steps: [], isJson: true });
        expect(streamed(cutAt(text, at), kind, isCut)).toEqual({ text, steps: [], isJson: true });
      }), { numRuns: 150 });
    }
  });

  test('a valid value keeps all its characters, whatever surrounds it', () => {
    fc.assert(fc.property(objects, prose, proseBehind, (text, before, behind) => {
      const healed = healJson(`${before} ${text}${behind}`, 'object', false);
      expect(healed.isJson).toBe(true);
      expect(healed.text.trim()).toBe(text);
    }), { numRuns: 200 });
  });

  test('a value directly followed by a quote and a comma was part of a string: nothing is reported as healed', () => {
    for (const text of ['{}",', '{"a": 1}" ,', 'Sure: {"a": 1}",\n']) expect(healJson(text, 'object', false)).toEqual({ text, steps: [], isJson: false });
  });

  test('with one mark missing or too many, no text of a value is lost: it is repaired, or nothing is reported as healed', () => {
    let made = 0;
    const word = fc.constant(0).map(() => `w${String((made += 1))}w`);
    const text = fc.array(fc.tuple(word, fc.constantFrom(' ', ', ', ': ', '} ', ' {', '] ', ' [', ' // ', ' http://', ' "', "'s ", ' (', ' #')), { minLength: 1, maxLength: 3 }).map((parts) => parts.map(([each, mark], at) => (at === parts.length - 1 ? each : each + mark)).join(''));
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({ value: fc.oneof({ maxDepth: 3 }, text, fc.array(tie('value'), { minLength: 1, maxLength: 3 }), fc.array(fc.tuple(word, tie('value')), { minLength: 1, maxLength: 3 }).map((members) => Object.fromEntries(members))) }));
    const written = fc.tuple(fc.array(fc.tuple(word, value), { minLength: 1, maxLength: 3 }), fc.boolean()).map(([members, isWide]) => JSON.stringify(Object.fromEntries(members), null, isWide ? 1 : 0));
    const edit = fc.tuple(fc.nat(), fc.constantFrom('', ...'"{}[],'));
    fc.assert(fc.property(written, edit, (whole, [place, by]) => {
      const marks = [...whole.matchAll(/["{}[\],:]/g)].map(({ index }) => index);
      const at = marks[place % marks.length] ?? 0;
      const source = whole.slice(0, at) + by + whole.slice(by === '' ? at + 1 : at);
      const healed = healJson(source, 'object', false);
      // Of two adjacent values the second is left out.
      if (healed.isJson && !/^\s*\{\s*\}/.test(healed.text)) expect([source, (source.match(/w\d+w/g) ?? []).filter((each) => !healed.text.includes(each))]).toEqual([source, []]);
    }), { numRuns: 1_000 });
  });

  test('an answer reported as JSON parses with the wanted root, and any other is returned unchanged', () => {
    fc.assert(fc.property(fc.oneof(broken, fc.string(), fc.string({ unit: fc.constantFrom(...'{}[]",:\\ \n`tn1-e.') })), fc.boolean(), (text, isCut) => {
      const healed = healJson(text, 'object', isCut);
      if (healed.isJson) expect(JSON.parse(healed.text)).toBeInstanceOf(Object);
      else expect(healed.text).toBe(text);
    }), { numRuns: 500 });
  });

  test('a stream that failed lacks what stood before its value, commas before a bracket that was one, and nothing else', () => {
    const extra = /,(?=[ \t\r\n]*[}\]][ \t\r\n]*[,}\]])/g;
    fc.assert(fc.property(fc.oneof(broken, fc.string({ unit: fc.constantFrom(...'{}[]",:\\ \n`tn1-e.') })), fc.boolean(), cuts, (text, isCut, at) => {
      const told = streamed(cutAt(`Well: ${text}`, at), 'object', isCut);
      if (!told.isJson) expect(`Well: ${text}`.replace(extra, '').endsWith(told.text.replace(extra, ''))).toBe(true);
    }), { numRuns: 1_000 });
  });

  test('strings in single quotes keep all characters, brackets included, or nothing is reported as healed', () => {
    const words = fc.string({ unit: fc.constantFrom(...'ab {}[]é') });
    fc.assert(fc.property(fc.dictionary(fc.string({ unit: fc.constantFrom(...'abc'), minLength: 1 }), words, { minKeys: 1 }), prose, (value, behind) => {
      const text = `{${Object.entries(value).map(([key, word]) => `'${key}': '${word}'`).join(', ')}}`;
      const healed = healJson(`${text} ${behind}`, 'object', false);
      if (healed.isJson) expect(JSON.parse(healed.text)).toEqual({ ...value });
    }), { numRuns: 300 });
  });

  test('a stream gives the same result wherever it is split', () => {
    // A comment after a bracket and a line break: the result must not depend on where a piece ends.
    const commented = '{"a": [\n/* {\n  "b": 1\n  } ] }';
    for (const isCut of [false, true]) expect(streamed([...commented], 'object', isCut)).toEqual(streamed([commented], 'object', isCut));
    fc.assert(fc.property(fc.oneof(broken, objects.map((text) => `Well 3: ${text} so.`)), cuts, fc.constantFrom<JsonKind>('object', 'any'), fc.boolean(), (text, at, kind, isCut) => {
      expect(streamed(cutAt(text, at), kind, isCut)).toEqual(streamed([text], kind, isCut));
      expect(streamed([...text], kind, isCut)).toEqual(streamed([text], kind, isCut));
    }), { numRuns: 200 });
  });

  test('a stream and a whole answer give the same result', () => {
    fc.assert(fc.property(broken, fc.boolean(), (text, isCut) => {
      const whole = healJson(text, 'object', isCut);
      const stream = streamed([text], 'object', isCut);
      expect(stream.isJson).toBe(whole.isJson);
      if (whole.isJson) expect(stream.text).toBe(whole.text);
    }), { numRuns: 200 });
  });

  test('JSON that is cut off anywhere is closed without inventing anything', () => {
    fc.assert(fc.property(objects, fc.nat(), (text, place) => {
      const cut = text.slice(0, 1 + (place % text.length));
      const healed = healJson(cut, 'object', true);
      expect(healed.isJson).toBe(true);
      for (const key of Object.keys(JSON.parse(healed.text) as object)) expect(Object.hasOwn(JSON.parse(text) as object, key)).toBe(true);
    }), { numRuns: 200 });
  });
});

describe('effort', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Regular expressions that were run on texts during `work`. */
  function patternsOf(work: () => void): number {
    const tested = jest.spyOn(RegExp.prototype, 'test');
    const executed = jest.spyOn(RegExp.prototype, 'exec');
    work();
    return tested.mock.calls.length + executed.mock.calls.length;
  }

  test.each([['{'], ['[ x '], ['{ x ']])('a whole text of megabytes is searched for a value only as far as a stream is: %j', (prose) => {
    const text = prose.repeat(500_000);
    expect(patternsOf(() => expect(healJson(text, 'object', false)).toEqual({ text, steps: [], isJson: false }))).toBeLessThan(300_000);
  });

  test('text before a value is read once, however many brackets it has', () => {
    const text = `${FENCE}${'a'.repeat(30_000)} !${'[1 '.repeat(10_000)}`;
    const sliced = jest.spyOn(String.prototype, 'slice');
    healJson(text, 'object', false);
    const chars = sliced.mock.results.reduce((sum, { value }) => sum + String(value).length, 0);
    expect(chars).toBeLessThan(100 * text.length);
  });

  test('a long run of blanks is not copied for each of its pieces', () => {
    const read = jest.spyOn(String.prototype, 'charCodeAt');
    const pieces = Array.from({ length: 3_000 }, () => '\n    ');
    expect(streamed(['{"a": "x",', ...pieces, '"b": 1}'], 'object', false)).toMatchObject({ steps: [], isJson: true });
    // A string that is joined from pieces is copied in full before a character of it is read.
    expect(Math.max(...read.mock.contexts.map((text) => String(text).length))).toBeLessThan(100);
  });

  test('reasoning of any length may precede the value', () => {
    expect(healJson(`<think>${'{ '.repeat(200_000)}</think>{"a":1}`, 'object', false)).toMatchObject({ text: '{"a":1}', isJson: true });
  });

  test('whether a text is JSON is checked without building its values', () => {
    const parse = jest.spyOn(JSON, 'parse');
    expect(healJson(`{"a":[${'[],'.repeat(100_000)}[]]}`, 'object', false)).toMatchObject({ steps: [], isJson: true });
    expect(parse).not.toHaveBeenCalled();
  });

  test.each([
    ['one piece of it', ['{"a":', `"${'x'.repeat(1_100_000)}`, '","b":1,}']],
    ['the whole', [...Array.from({ length: 70 }, (_, at) => `${at === 0 ? '["' : ''}${'x'.repeat(64_000)}`), '",]']],
  ])('a text of which %s is longer than any model writes is passed on unchanged', (_what, pieces) => {
    expect(streamed(pieces, 'any', false)).toEqual({ text: pieces.join(''), steps: [], isJson: false });
    expect(healJson(pieces.join(''), 'any', false)).toEqual({ text: pieces.join(''), steps: [], isJson: false });
  });

  test('a text that is given up keeps the prose before it if nothing was sent yet', () => {
    const text = `Sure: {"a":"${'x'.repeat(1_100_000)}`;
    expect(streamed([text], 'object', false).text).toBe(text);
  });
});
