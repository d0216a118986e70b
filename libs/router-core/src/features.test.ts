import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PLAIN_SETTING, type Cluster } from './clusters.js';
import { createFeatureExtractor, SHAPE, TEXT_MAX } from './features.js';

const extract = createFeatureExtractor();
const shapeOf = (text: string, name: (typeof SHAPE)[number]): number | undefined => extract(text, PLAIN_SETTING).shape[SHAPE.indexOf(name)];

const PIECES = ['A. ', 'B) ', '\n', '\nA. ', '\nB. ', '\nC) ', 'json', 'Word', 'ÄÖü', 'été', '数学', '12', '3.5', '12345', '$', '\\frac', '```', '__', '?', ' ', 'not', 'how many', 'def return import', '\ud800', 'translate', 'Answer:', 'abcd', 'abcde', '=', '\u00a0', '\u2003'];
const texts = fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), fc.array(fc.constantFrom(...PIECES), { maxLength: 200 }).map((pieces) => pieces.join('')));

/** The buckets of a text, from their definition. */
function bucketsOf(text: string): number[] {
  const hashOf = (units: string): number => [...units.split('')].reduce((hash, unit) => Math.imul(hash ^ unit.charCodeAt(0), 0x01000193), 0x811c9dc5);
  const mixed = (value: number): number => {
    let hash = Math.imul(value ^ (value >>> 16), 0x7feb352d);
    hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b);
    return (hash ^ (hash >>> 16)) & 0xffff;
  };
  const lower = text.replace(/\n\s*answer:\s*$/i, '').replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const buckets = new Set<number>();
  let previous = 0;
  for (const [token] of lower.matchAll(/[0-9]+|[a-z\u00c0-\u2e7f][a-z\u00c0-\uffff]*|[^ \t-\r\u00a0]/g)) {
    const hash = /^[0-9]/.test(token) ? hashOf('0') ^ Math.min(token.length, 4) : hashOf(token);
    buckets.add(mixed(hash ^ 0x9e3779b1));
    if (/^[a-z\u00c0-\u2e7f]/.test(token) && token.length > 4) buckets.add(mixed(hashOf(token.slice(0, 4)) ^ 0xc2b2ae3d));
    if (previous !== 0) buckets.add(mixed(Math.imul(previous, 0x85ebca77) ^ hash));
    previous = hash;
  }
  return [...buckets];
}

describe('the kind of task', () => {
  test.each<[Cluster, string]>([
    ['exam', 'Which planet is largest?\nA. Mars\nB. Venus\nC. Jupiter\nD. Earth'],
    ['exam', 'Pick one:\nA) yes\nB) no\nC) perhaps'],
    ['code', 'Fix this:\n```\nx = 1\n```'],
    ['code', 'Write a python function with a class and a lambda that can import a module'],
    ['translation', 'Translate into German: good morning'],
    ['extraction', 'Answer in JSON with the fields name and age.'],
    ['math', 'Find $x$ such that $x^2 = y$ and $\\frac{1}{y} = z$.'],
    ['word-problem', 'Ann has 3 apples and buys twice as many. How many apples does she have?'],
    ['chat', 'Tell me a story about a lighthouse.'],
    ['chat', 'It costs $2 a day.'],
  ])('is %s for %j', (cluster, text) => {
    expect(extract(text, PLAIN_SETTING).cluster).toBe(cluster);
  });

  test('follows what the request says before what the text says', () => {
    const exam = 'Which?\nA. a\nB. b\nC. c';
    expect(extract(exam, { ...PLAIN_SETTING, hasTools: true }).cluster).toBe('tools');
    expect(extract(exam, { ...PLAIN_SETTING, wantsJson: true }).cluster).toBe('extraction');
    expect(extract(exam, { ...PLAIN_SETTING, promptTokens: 50_000 }).cluster).toBe('long-context');
  });
});

test('the kind of task does not depend on whether more than the kind is wanted', () => {
  const kindOnly = createFeatureExtractor(() => false);
  const settings = fc.record({ hasTools: fc.boolean(), wantsJson: fc.boolean(), promptTokens: fc.constantFrom(10, 50_000) });
  fc.assert(fc.property(texts, settings, (text, setting) => {
    expect(kindOnly(text, setting).cluster).toBe(extract(text, setting).cluster);
  }), { numRuns: 500 });
});

describe('features', () => {
  test('are the buckets of words, of their beginnings and of pairs, in their order', () => {
    fc.assert(fc.property(texts, (text) => {
      expect([...extract(text, PLAIN_SETTING).buckets]).toEqual(bucketsOf(text));
    }), { numRuns: 500 });
  });

  test('are the same however many texts were looked at before', () => {
    const fresh = createFeatureExtractor();
    const text = 'One fox, and one fox, and one more fox.';
    const first = fresh(text, PLAIN_SETTING).buckets.slice();
    let different = 0;
    // More calls than the 16-bit stamps can count.
    for (let look = 0; look < 66_000; look += 1) if (fresh(text, PLAIN_SETTING).buckets.length !== first.length) different += 1;
    expect(different).toBe(0);
    expect(fresh(text, PLAIN_SETTING).buckets).toEqual(first);
  });

  test('are the same for the same text, whatever was looked at between', () => {
    const first = extract('The quick brown fox, 12 times.', PLAIN_SETTING);
    const [buckets, words, shape] = [first.buckets.slice(), first.words.slice(), first.shape.slice()];
    extract('something else entirely', PLAIN_SETTING);
    const again = extract('The quick brown fox, 12 times.', PLAIN_SETTING);
    expect([again.buckets, again.words, again.shape]).toEqual([buckets, words, shape]);
  });

  test('keep their meaning: artefacts are trained on these very buckets', () => {
    expect([...extract('Photosynthesis, 12!', PLAIN_SETTING).buckets]).toMatchInlineSnapshot(`
     [
       37815,
       12821,
       53734,
       10430,
       37046,
       54280,
       63248,
       56277,
     ]
    `);
  });

  test('are distinct buckets, fewer for a text that repeats itself', () => {
    const { buckets } = extract('one two one two one two', PLAIN_SETTING);
    expect(new Set(buckets).size).toBe(buckets.length);
    expect(buckets.length).toBe(4);
  });

  test('look at the first 8,192 characters alone', () => {
    const text = 'word '.repeat(3_000);
    const whole = extract(text, PLAIN_SETTING).words.length;
    expect(whole).toBe(extract(text.slice(0, TEXT_MAX), PLAIN_SETTING).words.length);
  });

  test('tell the shape of an exam and do not see its closing cue', () => {
    const text = 'Which is NOT a colour?\nA. red\nB. 12\nC. blue';
    expect(shapeOf(text, 'options')).toBe(0.3);
    expect([shapeOf(text, 'is-exam'), shapeOf(text, 'many-options'), shapeOf(text, 'negation'), shapeOf(text, 'ends-as-question')]).toEqual([1, 0, 1, 1]);
    expect([...extract(`${text}\nAnswer:`, PLAIN_SETTING).buckets]).toEqual([...extract(text, PLAIN_SETTING).buckets]);
  });

  test('never fail, whatever the text', () => {
    for (const text of ['', '\u0000', '\ud800', '数学の問題', '\n\n\n', 'A. ', '$'.repeat(9_000)])
      expect(extract(text, PLAIN_SETTING).shape.every(Number.isFinite)).toBe(true);
    expect(extract('数学の問題', PLAIN_SETTING).words.length).toBe(5);
  });
});
