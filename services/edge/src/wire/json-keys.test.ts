import { describe, expect, jest, test } from '@jest/globals';
import { KeyStack, type KeyVerdict } from './json-keys.js';

/** Opens an object for `{`, closes one for `}`, adds any other text as a key; returns the verdict on each key. */
function verdicts(steps: readonly string[], keys = new KeyStack()): readonly KeyVerdict[] {
  const body = Buffer.from(steps.join(','));
  keys.reset(body);
  let at = 0;
  return steps.flatMap((step): KeyVerdict[] => {
    const start = at;
    const end = start + Buffer.byteLength(step);
    at = end + 1;
    if (step === '{') keys.open();
    else if (step === '}') keys.close();
    else return [keys.add(start, end)];
    return [];
  });
}

const last = (...steps: readonly string[]): KeyVerdict | undefined => verdicts(steps).at(-1);
const many = (count: number, nameOf: (at: number) => string): readonly string[] => Array.from({ length: count }, (_, at) => nameOf(at));

describe('the keys of open objects', () => {
  test.each<[KeyVerdict, readonly string[]]>([
    ['ok', ['{', 'a', 'b']],
    ['ok', ['{', 'a', '{', 'a']],
    ['ok', ['{', '{', 'a', '}', '{', 'a']],
    ['duplicate-key', ['{', 'a', '{', 'b', 'c', '}', 'a']],
    ['ok', ['{', 'a', '{', 'b', 'c', '}', 'b']],
    ['duplicate-key', ['{', '', 'a', '']],
    ['forbidden-key', ['{', 'a', '__proto__']],
    ['forbidden-key', ['{', '__pr\\u006fto__']],
    ['ok', ['{', '__proto_']],
  ])('%s: %j', (verdict, steps) => expect(last(...steps)).toBe(verdict));

  test.each([2, 15, 16, 17, 200])('an object of %d keys finds each of them again, however it is written, and a nested object does not', (count) => {
    const keys = many(count, (at) => `é${String(at)}`);
    for (const again of [0, count - 1]) {
      expect(last('{', ...keys, `é${String(again)}`)).toBe('duplicate-key');
      expect(last('{', ...keys, `\\u00e9${String(again)}`)).toBe('duplicate-key');
      expect(last('{', `\\u00e9${String(again)}`, ...keys.slice(0, again + 1))).toBe('duplicate-key');
      expect(last('{', ...keys, '{', `é${String(again)}`)).toBe('ok');
    }
    expect(last('{', ...keys, `é${String(count)}`)).toBe('ok');
  });

  test('long keys that differ in their last byte are different', () => {
    const long = 'x'.repeat(1_000);
    expect(verdicts(['{', `${long}a`, `${long}b`, `${long}a`])).toEqual(['ok', 'ok', 'duplicate-key']);
  });

  test('an invalid escape throws', () => expect(() => verdicts(['{', '\\x'])).toThrow(SyntaxError));

  test('keys of one body do not count in the next, even if the first was aborted', () => {
    const keys = new KeyStack();
    verdicts(['{', 'a', '{', ...many(2_000, (at) => `k${String(at)}`), '\\u0061'], keys);
    expect(verdicts(['{', 'a', 'k7', '{', 'k7', 'a'], keys)).toEqual(['ok', 'ok', 'ok', 'ok']);
  });
});

describe('effort', () => {
  /** Counts the strings made from bytes, and the texts parsed as JSON, during `run`. */
  function textsOf(run: () => void): readonly [number, number] {
    const text = jest.spyOn(Buffer.prototype, 'toString');
    const parse = jest.spyOn(JSON, 'parse');
    run();
    const counts = [text.mock.calls.length, parse.mock.calls.length] as const;
    jest.restoreAllMocks();
    return counts;
  }

  test('no string is made for a key without escapes, in small and large objects', () => {
    const steps = ['{', ...many(20_000, (at) => `key${String(at)}`), '{', 'a', 'b'];
    expect(textsOf(() => verdicts(steps))).toEqual([0, 0]);
  });

  test('a key of a large object is compared only with keys of the same hash', () => {
    const steps = ['{', ...many(5_000, (at) => String(at).padStart(100, 'x'))];
    const compared = jest.spyOn(Buffer.prototype, 'compare');
    expect(verdicts(steps).every((verdict) => verdict === 'ok')).toBe(true);
    // Two of them may have the same 32-bit hash.
    expect(compared.mock.calls.length).toBeLessThan(5);
    compared.mockRestore();
  });

  test('beside a key with an escape, each key is made a string once, however often it is compared', () => {
    const object = many(15, (at) => `\\u0061bcdefgh${String(at)}`);
    const steps = many(200, () => '').flatMap(() => ['{', ...object, '}']);
    expect(textsOf(() => verdicts(steps))).toEqual([3_000, 3_000]);
  });
});
