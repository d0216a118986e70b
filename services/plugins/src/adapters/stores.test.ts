import { afterAll, describe, expect, test } from '@jest/globals';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { passagesOf } from '../domain/passages.js';
import type { FactStore, NewSource, PassageIndex } from '../domain/ports.js';
import { createMemoryFacts } from './memory-facts.js';
import { createMemoryIndex } from './memory-index.js';
import { MIGRATIONS } from './migrations.js';
import { createPostgresFacts } from './postgres-facts.js';
import { createPostgresIndex, type PluginsSchema } from './postgres-index.js';

let opening: Promise<Database<PluginsSchema>> | undefined;
const database = (): Promise<Database<PluginsSchema>> =>
  (opening ??= (async () => {
    const opened = openDatabase<PluginsSchema>({ url: new Secret(await testPostgresUrl()), poolMax: 2, log: silentLog, statementTimeoutMs: 30_000 });
    await migrate(opened.db, MIGRATIONS, { schema: 'plugins' });
    return opened;
  })());
afterAll(async () => {
  await (await opening)?.close();
  await stopTestStores();
});

const indexes: readonly (readonly [string, () => Promise<PassageIndex>])[] = [['memory', () => Promise.resolve(createMemoryIndex())], ['postgres', async () => createPostgresIndex((await database()).db)]];
const factStores: readonly (readonly [string, () => Promise<FactStore>])[] = [['memory', () => Promise.resolve(createMemoryFacts())], ['postgres', async () => createPostgresFacts((await database()).db)]];

describe.each(indexes)('index in %s', (_name, open) => {
  const sourceOf = (over: Partial<NewSource>): NewSource => ({ corpus: 'web', key: 'k', title: 'T', author: '', url: 'https://www.a.example/x', language: 'en', passages: [{ heading: 'H', body: 'body' }], ...over });

  test('finds passages by any of the words, in other forms, best first, within its corpus, domains, keys and language', async () => {
    const index = await open();
    await index.put(sourceOf({ key: 'one', title: 'Whales', url: 'https://sea.a.example/1', passages: passagesOf('The white whale dives deep into the ocean.\n\n' + 'Filler '.repeat(200) + '\n\nSailors fear storms.') }));
    await index.put(sourceOf({ key: 'two', title: 'Gardens', url: 'https://b.example/2', passages: [{ heading: '', body: 'A whale of a garden with roses & "quotes" | pipes.' }] }));
    await index.put(sourceOf({ corpus: 'books', key: '7', title: 'A Book', author: 'Ann Author', language: 'fr', passages: [{ heading: 'CHAPTER I', body: 'The white whale again.' }] }));
    const search = async (text: string, over: object = {}): Promise<readonly string[]> => [...new Set((await index.search({ corpus: 'web', text, limit: 5, perSourceMax: 2, ...over })).map(({ key }) => key))];
    expect((await search('Where do white whales dive in the ocean?'))[0]).toBe('one');
    expect(await search('roses')).toEqual(['two']);
    expect(await search('whale', { includeDomains: ['a.example'] })).toEqual(['one']);
    expect(await search('whale', { excludeDomains: ['a.example'] })).toEqual(['two']);
    expect(await search('whale', { includeDomains: ['xa.example'] })).toEqual([]);
    expect(await search('whale', { corpus: 'books', language: 'en' })).toEqual([]);
    expect(await index.search({ corpus: 'books', text: 'whale & !( <-> \' "', limit: 5, perSourceMax: 2, keys: ['7'], language: 'fr' })).toEqual([{ key: '7', title: 'A Book', author: 'Ann Author', url: 'https://www.a.example/x', heading: 'CHAPTER I', body: 'The white whale again.', ordinal: 0 }]);
    expect(await search('the of and')).toEqual([]);
    expect(await search('')).toEqual([]);
  }, 120_000);

  test('a source takes the place of the one with its key, is listed, and is gone once removed', async () => {
    const index = await open();
    await index.put(sourceOf({ key: 'same', passages: [{ heading: '', body: 'zebra' }] }));
    await index.put(sourceOf({ key: 'same', passages: [{ heading: '', body: 'giraffe' }] }));
    expect(await index.search({ corpus: 'web', text: 'zebra', limit: 5, perSourceMax: 2 })).toEqual([]);
    expect((await index.list('web')).filter(({ key }) => key === 'same')).toEqual([{ key: 'same', title: 'T', author: '', url: 'https://www.a.example/x', language: 'en', passages: 1 }]);
    expect([await index.remove('web', 'same'), await index.remove('web', 'same')]).toEqual([1, 0]);
    expect(await index.search({ corpus: 'web', text: 'giraffe', limit: 5, perSourceMax: 2 })).toEqual([]);
  }, 120_000);
});

describe.each(factStores)('memory in %s', (_name, open) => {
  test('nothing of one account, user or namespace is seen, replaced or deleted by another', async () => {
    const facts = await open();
    const owners = [{ accountId: 'a', user: 'u' }, { accountId: 'a', user: 'v' }, { accountId: 'b', user: 'u' }, { accountId: 'a', user: '' }];
    for (const owner of owners) await facts.put(owner, 'n', [{ topic: 'name', text: `I am ${owner.accountId}/${owner.user}` }], 1, 10);
    await facts.put({ accountId: 'a', user: 'u' }, 'm', [{ topic: 'name', text: 'elsewhere' }], 1, 10);
    for (const owner of owners) expect((await facts.recall(owner, 'n', 'who am I', 10, 2)).map(({ text }) => text)).toEqual([`I am ${owner.accountId}/${owner.user}`]);
    expect(await facts.clear({ accountId: 'a', user: 'u' }, 'n')).toBe(1);
    expect((await facts.list({ accountId: 'a', user: 'u' }, undefined, 10))?.map(({ text }) => text)).toEqual(['elsewhere']);
    expect(await facts.clear({ accountId: 'a', user: 'u' }, undefined)).toBe(1);
    for (const owner of owners.slice(1)) expect(await facts.list(owner, undefined, 10)).toHaveLength(1);
  }, 120_000);

  test('a list is read page by page, each fact once, by nobody else, and from nowhere where its place is gone', async () => {
    const facts = await open();
    const owner = { accountId: 'd', user: 'u' };
    // Several facts with the same time, across a page boundary.
    for (const [at, topics] of [[1_000, ['a', 'b', 'c']], [2_000, ['d', 'e']]] as const) await facts.put(owner, at === 1_000 ? 'n' : 'm', topics.map((topic) => ({ topic, text: topic })), at, 10);
    const pages = async (namespace: string | undefined): Promise<readonly string[]> => {
      const texts: string[] = [];
      for (let after: string | undefined; ;) {
        const page = (await facts.list(owner, namespace, 2, after)) ?? [];
        if (page.length === 0) return texts;
        texts.push(...page.map(({ text }) => text));
        after = page.at(-1)?.id;
      }
    };
    const all = await pages(undefined);
    expect([[...all.slice(0, 2)].sort(), [...all.slice(2)].sort()]).toEqual([['d', 'e'], ['a', 'b', 'c']]);
    expect([...await pages('n')].sort()).toEqual(['a', 'b', 'c']);
    const [first] = (await facts.list(owner, undefined, 1)) ?? [];
    expect(await facts.list({ ...owner, user: 'v' }, undefined, 10, first?.id)).toBeUndefined();
    expect(await facts.list(owner, undefined, 10, 'no id of a fact')).toBeUndefined();
    await facts.clear(owner, 'm');
    expect(await facts.list(owner, undefined, 10, first?.id)).toBeUndefined();
    // A page after the last fact is empty, not undefined.
    const [last] = ((await facts.list(owner, undefined, 10)) ?? []).slice(-1);
    expect(await facts.list(owner, undefined, 10, last?.id)).toEqual([]);
  }, 120_000);

  test('a topic has one fact, words rank before recency, and the oldest beyond the bound are dropped', async () => {
    const facts = await open();
    const owner = { accountId: 'c', user: 'u' };
    await facts.put(owner, 'n', [{ topic: 'home', text: 'I live in Oslo' }], 1_000, 10);
    await facts.put(owner, 'n', [{ topic: 'home', text: 'I live in Bergen' }, { topic: 'x', text: 'My dog is called Fenrir' }], 2_000, 10);
    expect((await facts.list(owner, 'n', 10))?.map(({ text, createdAtMs, updatedAtMs }) => [text, createdAtMs, updatedAtMs])).toContainEqual(['I live in Bergen', 1_000, 2_000]);
    await facts.put(owner, 'n', [{ topic: 'y', text: 'I like chess' }], 3_000, 10);
    expect((await facts.recall(owner, 'n', 'What is the name of my dog?', 1, 4_000)).map(({ text }) => text)).toEqual(['My dog is called Fenrir']);
    expect((await facts.recall(owner, 'n', '', 1, 4_000)).map(({ text }) => text)).toEqual(['I like chess']);
    await facts.put(owner, 'n', [{ topic: 'z', text: 'I play cello' }], 5_000, 2);
    expect((await facts.list(owner, 'n', 10))?.map(({ text }) => text)).toEqual(['I play cello', 'I like chess']);
  }, 120_000);
});

test('the database itself keeps owners apart: without an owner, or as another, a session sees and writes nothing', async () => {
  const { db } = await database();
  const facts = createPostgresFacts(db);
  await facts.put({ accountId: 'rls', user: 'u' }, 'n', [{ topic: 't', text: 'mine' }], 1, 10);
  await db.transaction().execute(async (transaction) => {
    await sql`set local role signalbox_memory`.execute(transaction);
    expect((await sql`select * from plugins.memory_fact`.execute(transaction)).rows).toEqual([]);
    await sql`select set_config('signalbox.account_id', 'other', true), set_config('signalbox.user_id', 'u', true)`.execute(transaction);
    expect((await sql`select * from plugins.memory_fact`.execute(transaction)).rows).toEqual([]);
    expect((await sql`delete from plugins.memory_fact`.execute(transaction)).numAffectedRows).toBe(0n);
  });
  await expect(
    db.transaction().execute(async (transaction) => {
      await sql`set local role signalbox_memory`.execute(transaction);
      await sql`select set_config('signalbox.account_id', 'other', true), set_config('signalbox.user_id', 'u', true)`.execute(transaction);
      await sql`insert into plugins.memory_fact (account_id, user_id, namespace, topic, text, created_at_ms, updated_at_ms) values ('rls', 'u', 'n', 'forged', 'x', 1, 1)`.execute(transaction);
    }),
  ).rejects.toMatchObject({ code: 'store_unavailable', cause: { message: expect.stringMatching(/row-level security/) } });
  expect(await facts.list({ accountId: 'rls', user: 'u' }, undefined, 10)).toHaveLength(1);
}, 120_000);
