import { expect, test } from '@jest/globals';
import { isFoundBy, keyChoices } from './key-choices.js';

const ID = 'key_01M8H8262JJFP4VAZQGSSTTWQK';
const OTHER = 'key_01M8H8262JJFP4VAZQGSSTTWQM';
const key = (id: string, name: string): { readonly id: string; readonly name: string; readonly prefix: string } => ({ id, name, prefix: `sbx_live_${id.slice(-4)}` });

test('keys are chosen by name, and those of one name can be told apart', () => {
  expect(keyChoices([key('key_1', 'ci'), key('key_2', 'ci'), key('key_3', 'web')], [])).toEqual([
    { value: 'key_1', label: 'ci (sbx_live_ey_1…)' }, { value: 'key_2', label: 'ci (sbx_live_ey_2…)' }, { value: 'key_3', label: 'web' },
  ]);
});

test('one that was used, is chosen or is typed can be chosen by its id, once, whether or not it may be read', () => {
  expect(keyChoices([], [ID], ID, ` ${OTHER} `)).toEqual([{ value: ID, label: ID }, { value: OTHER, label: OTHER }]);
  expect(keyChoices([key(ID, 'ci')], [ID], ID, ID)).toEqual([{ value: ID, label: 'ci' }]);
});

test.each(['', 'key_', 'ci', `${ID}X`])('what is no id is none to choose: %j', (typed) => {
  expect(keyChoices([], [], typed)).toEqual([]);
});

test('a key is found by its id, too', () => {
  const choice = { value: ID, label: 'CI of web' };
  expect(['ci of', ID, '01m8h8262', ''].map((search) => isFoundBy(search, choice))).toEqual([true, true, true, true]);
  expect(isFoundBy('key_02', choice)).toBe(false);
});
