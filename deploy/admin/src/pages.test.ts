import { expect, test } from '@jest/globals';
import type { PagedMember } from './commands.js';
import { gatherPages, writePages } from './pages.js';

test.each<[PagedMember, object[], string[], object]>([
  ['keys', [{ keys: [{ id: 'key_3' }], has_more: true }, { keys: [{ id: 'key_2' }], has_more: true }, { keys: [{ id: 'key_1' }], has_more: false }], ['key_3', 'key_2'], { keys: [{ id: 'key_3' }, { id: 'key_2' }, { id: 'key_1' }], has_more: false }],
  ['provider_keys', [{ provider_keys: [{ provider: 'a' }], next: 'cred_1' }, { provider_keys: [{ provider: 'b' }], next: null }], ['cred_1'], { provider_keys: [{ provider: 'a' }, { provider: 'b' }], next: null }],
  ['rows', [{ rows: [{ seq: 1 }], next: 1 }, { rows: [], next: null }], ['1'], { rows: [{ seq: 1 }], next: null }],
  ['accounts', [{ accounts: [], has_more: false }], [], { accounts: [], has_more: false }],
])('all pages of %s become one document', async (member, pages, places, whole) => {
  const asked: string[] = [];
  const [first, ...rest] = pages.map((page) => JSON.stringify(page));
  const ask = (after: string): Promise<string> => {
    asked.push(after);
    return Promise.resolve(rest.shift() ?? '');
  };
  expect(JSON.parse(await gatherPages(first ?? '', member, ask))).toEqual(whole);
  expect(asked).toEqual(places);
});

test('a list without an end is given up, and says that there is more', async () => {
  let count = 0;
  const page = (): string => JSON.stringify({ keys: [{ id: `key_${(count += 1)}` }], has_more: true });
  const whole = JSON.parse(await gatherPages(page(), 'keys', () => Promise.resolve(page()))) as { readonly keys: readonly unknown[] };
  expect(whole).toMatchObject({ has_more: true });
  expect(whole.keys).toHaveLength(200);
});

test('a ledger of any number of pages is written page by page, as one document, and one that does not go on is given up', async () => {
  let count = 0;
  const page = (): string => JSON.stringify({ account_id: 'acct_1', rows: [{ seq: (count += 1) }, { seq: (count += 1) }], next: count < 1_000 ? count : null });
  let text = '';
  let most = 0;
  const write = (part: string): void => {
    text += part;
    most = Math.max(most, part.length);
  };
  await writePages(page(), 'rows', (after) => Promise.resolve(after === String(count) ? page() : ''), write);
  expect(JSON.parse(text)).toEqual({ account_id: 'acct_1', rows: Array.from({ length: 1_000 }, (_, index) => ({ seq: index + 1 })), next: null });
  expect(most).toBeLessThan(100);
  text = '';
  await writePages(JSON.stringify({ account_id: 'acct_1', rows: [], next: null }), 'rows', () => Promise.resolve(''), write);
  expect(text).toBe('{"account_id":"acct_1","rows":[],"next":null}');
  const same = JSON.stringify({ account_id: 'acct_1', rows: [], next: 7 });
  await expect(writePages(same, 'rows', () => Promise.resolve(same), write)).rejects.toThrow('does not go on');
});
