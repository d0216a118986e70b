import { expect, test } from '@jest/globals';
import { Linter } from 'eslint';
import tseslint from 'typescript-eslint';
import { keptCollections } from '../../../scripts/lint/kept-collections.mjs';

const linter = new Linter();

/** Lines that the rule points at. */
const toldOf = (code: string): readonly number[] =>
  linter
    .verify(code, { files: ['**/*.ts'], languageOptions: { parser: tseslint.parser as Linter.Parser }, plugins: { own: { rules: { kept: keptCollections } } }, rules: { 'own/kept': 'error' } }, 'a.ts')
    .map(({ line, ruleId }) => (ruleId === 'own/kept' ? line : NaN));

test.each([
  ['of a module', 'const running = new Map<string, number>();'],
  ['that a module hands out', 'export const running = new Set<string>();'],
  ['in a field', 'class Line { private readonly waiting = new Map<string, number>(); }'],
  ['of a maker', 'export function createLine() { const waiting = new Set<string>(); return { add: (id: string) => waiting.add(id) }; }'],
  ['of a maker that is an arrow', 'export const createLine = () => { let waiting = new Map(); return () => waiting; };'],
  ['within what a maker declares', 'function createLine() { const by = { key: new Map() }; return by; }'],
  ['in what a maker answers', 'function newState() { return { open: new Map(), isOver: false }; }'],
  ['in what an arrow answers', 'const newLevel = () => ({ next: new Map() });'],
  ['whose neighbour alone has a reason', 'const a = new Map(); // kept: by endpoint.\nconst b = new Map();'],
  ['with a comment that is no reason', '/** Requests in work. */\nconst running = new Map();'],
])('a collection %s wants its reason', (_what, code) => {
  expect(toldOf(code)).toEqual([code.split('\n').length]);
});

test.each([
  ['says why beside it', 'const cards = new Map(); // kept: by card.'],
  ['says why above it', '// kept: by card.\nconst cards = new Map();'],
  ['says why in its own comment', '/** Cards that were met; kept: by card. */\nconst cards = new Map();'],
  ['is a constant by its name', "const KINDS = new Set(['a', 'b']);"],
  ['is a constant by its type', "const kinds: ReadonlySet<string> = new Set(['a']);"],
  ['is of one call', 'function sumsOf(list: string[]) { const sums = new Map(); for (const one of list) sums.set(one, 1); return [...sums]; }'],
  ['is of one call of what a maker made', 'function createLine() { return { ids: (list: string[]) => { const ids = new Set(list); return ids.size; } }; }'],
  ['is within one step of a maker', 'function createLine(list: string[]) { for (const one of list) { const ids = new Set(one); ids.clear(); } return {}; }'],
  ['is given to a call', 'const names = createNames(new Set(list)); function run() { go(new Map()); }'],
  ['is what a call answers', 'function idsOf(list: string[]) { return new Set(list); }'],
])('one that %s needs none', (_what, code) => {
  expect(toldOf(code)).toEqual([]);
});
