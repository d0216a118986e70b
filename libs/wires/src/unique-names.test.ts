import { expect, test } from '@jest/globals';
import { createFileNames } from './bedrock-converse/media.js';
import { createCallIds } from './call-ids.js';
import { readTurns } from './chat-turns.js';
import { createUniqueNames } from './unique-names.js';

/** A request has at most 100,000 JSON values: as many calls as fit, so that what looks for each id anew takes minutes. */
const CALLS = 14_000;
const range = Array.from({ length: CALLS }, (_, i) => i);

test('ids that differ only where they are cut are told apart, the same for a call and its result', () => {
  const idOf = createCallIds(8);
  const ids = range.map((i) => idOf(`abcdefgh${String(i)}`));
  expect(new Set(ids).size).toBe(CALLS);
  expect(ids.every((id) => id.length <= 8)).toBe(true);
  expect(range.map((i) => idOf(`abcdefgh${String(i)}`))).toEqual(ids);
});

test('an id that comes again in every call is a new one each time', () => {
  const calls = range.map(() => ({ id: 'call_0', type: 'function', function: { name: 'f', arguments: '{}' } }));
  const [turn] = readTurns([{ role: 'assistant', tool_calls: calls }]);
  expect(turn?.role === 'assistant' ? new Set(turn.calls.map(({ id }) => id)).size : 0).toBe(CALLS);
});

test('files of one name are told apart', () => {
  const nameOf = createFileNames();
  expect(new Set(range.map(() => nameOf('a.pdf'))).size).toBe(CALLS);
});

test('bases that are cut to the same copies take no more tries for it', () => {
  let copies = 0;
  const unique = createUniqueNames(1, (base, copy) => `${base.slice(0, 4)}_${String((copies += 1) && copy)}`);
  const bases = range.map((i) => `abcd${String(i)}`);
  const names = [...bases, ...bases].map((base) => unique(base));
  expect(new Set(names).size).toBe(2 * CALLS);
  expect(copies).toBeLessThan(20 * CALLS);
});

test('a copy takes no id that another call has', () => {
  const idOf = createCallIds();
  expect(['a__1', 'a!', 'a?', 'a#', 'a?'].map((id) => idOf(id))).toEqual(['a__1', 'a_', 'a__2', 'a__3', 'a__2']);
});
