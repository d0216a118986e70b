import { describe, expect, test } from '@jest/globals';
import { bothAllow, createModelNames, isAutoModelId, mayAllowMore, modelsLeft } from './model-lists.js';

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

describe('the models of a catalog', () => {
  const models = [{ id: 'a/one', aliases: ['uno'] }, { id: 'b/one', aliases: [] }, { id: 'b/Two' }];
  const names = createModelNames(models);
  const left = (allowModels: readonly string[], denyModels: readonly string[], viaAuto = false): string[] => models.filter(modelsLeft(names, { allowModels, denyModels }, viaAuto)).map(({ id }) => id);

  test.each<[string, string[], string[], string[]]>([
    ['all, without a list', [], [], ['a/one', 'b/one', 'b/Two']],
    ['what is named in full, in whatever capitals', ['B/two'], [], ['b/Two']],
    ['what is named by its alias', ['UNO'], [], ['a/one']],
    ['what has a bare name alone', ['two'], [], ['b/Two']],
    ['nothing by a bare name that two have', ['one'], [], []],
    ['what a prefix holds', ['b/*'], [], ['b/one', 'b/Two']],
    ['nothing that is denied, though it is allowed', ['b/*'], ['b/tw*'], ['b/one']],
    ['nothing by a bare name that is denied', [], ['ONE'], ['b/Two']],
    ['nothing, where none of them is allowed', ['c/*', '-'], [], []],
  ])('lists leave %s', (_what, allow, deny, ids) => {
    expect([left(allow, deny), left(allow, deny, true)]).toEqual([ids, ids]);
  });

  test('auto alone leaves any model to our choice, and none by its name', () => {
    expect([left(['auto'], ['one'], true), left(['auto'], ['one'])]).toEqual([['b/Two'], []]);
    expect([left(['auto', 'two'], [], true), left(['auto', 'two'], [])]).toEqual([['b/Two'], ['b/Two']]);
  });

  test('names that stand for nothing are told', () => {
    expect(names.unknown(['auto', 'a/one', 'one', 'two', 'b/9*', 'c/*'], 'allow')).toEqual(['one', 'c/*']);
    expect(names.unknown(['auto', 'one', 'b/9*', 'c/*'], 'deny')).toEqual(['auto', 'c/*']);
  });
});

test('both variants’ names of the automatic model are known', () => {
  expect(['auto', 'router-auto', 'Auto', 'x/auto', ''].map(isAutoModelId)).toEqual([true, true, false, false, false]);
});
