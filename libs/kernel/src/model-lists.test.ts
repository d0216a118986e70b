import { describe, expect, test } from '@jest/globals';
import { bothAllow, isAutoModelId, mayAllowMore } from './model-lists.js';

const NONE = [expect.not.stringMatching(/^(auto|a\/.*|)$/)];

describe('what two lists allow', () => {
  test.each<[string[], string[], string[]]>([
    [[], [], []],
    [['a/x', 'a/y'], [], ['a/x', 'a/y']],
    [['a/x', 'a/y'], ['a/y', 'a/z'], ['a/y']],
    [['a/*'], ['a/x', 'b/y'], ['a/x']],
    [['a/*'], ['a/x*', '*'], ['a/x*', 'a/*']],
    [['auto'], ['auto'], ['auto']],
    [['auto'], [], ['auto']],
    [['auto', 'a/x'], ['a/x', 'a/y'], ['a/x']],
    [['A/X', 'a/Y*'], ['a/x', 'A/y1'], ['a/x', 'a/y1']],
    [['Auto', 'A/X'], ['a/x'], ['a/x']],
  ])('%j and %j allow %j, whichever is whose', (one, other, both) => {
    expect(bothAllow(one, other)).toEqual({ viaAuto: both, byName: both });
    expect(new Set(bothAllow(other, one).byName)).toEqual(new Set(both));
  });

  test.each<[string[], string[]]>([[['a/x'], ['a/y']], [['a/*'], ['b/x']], [['auto', 'a/x'], ['auto', 'a/y']]])('%j and %j allow none, rather than all', (one, other) => {
    expect(bothAllow(one, other)).toEqual({ viaAuto: NONE, byName: NONE });
  });

  test.each<[string[]]>([[['auto']], [['router-auto']]])('%j never lets auto choose what the other list leaves out, and allows no model by its name', (onlyAuto) => {
    for (const names of [['a/x'], ['auto', 'a/x']]) {
      expect(bothAllow(onlyAuto, names)).toEqual({ viaAuto: ['a/x'], byName: NONE });
      expect(bothAllow(names, onlyAuto)).toEqual({ viaAuto: ['a/x'], byName: NONE });
    }
  });
});

test.each<[string[], string[], boolean]>([
  [[], [], false],
  [['a/x'], [], false],
  [[], ['a/x'], true],
  [['a/x'], ['a/x', 'a/y'], false],
  [['a/x', 'a/z'], ['a/x', 'a/y'], true],
  [['auto'], ['auto'], false],
  [['auto'], ['auto', 'a/x'], true],
  [['auto', 'a/x'], ['auto', 'a/x', 'a/y'], false],
  [['a/x'], ['auto'], true],
  [['A/x'], ['a/X'], false],
])('that %j may allow more than %j is %j', (wanted, bound, more) => {
  expect(mayAllowMore(wanted, bound)).toBe(more);
});

test('both variants’ names of the automatic model are known', () => {
  expect(['auto', 'router-auto', 'Auto', 'x/auto', ''].map(isAutoModelId)).toEqual([true, true, false, false, false]);
});
