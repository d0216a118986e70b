import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { randomBytes } from 'node:crypto';
import { accountWith, keyWith } from '../testing/callers.js';
import { startDoor, type Door } from '../testing/door.js';
import { OPERATIONS } from './openapi/document.js';
import { takesQuery } from './query-fields.js';

let door: Door;
let key: string;
beforeAll(async () => {
  door = await startDoor();
  key = makeApiKey(randomBytes);
  door.accounts.add(key, { key: keyWith({ scopes: ['keys', 'usage:read'] }), account: accountWith() });
});
afterAll(() => door.stop());

const message = (given: string, ...names: readonly string[]): string => {
  try {
    takesQuery(...names)({ query: { [given]: 'x' } }, undefined, () => undefined);
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
};

test.each(OPERATIONS.filter(({ path }) => path.startsWith('/api/')).map(({ method, path, query = {} }) => ({ method, path, names: Object.keys(query) })))('$method $path accepts its documented parameters, and refuses any other by name', async ({ method, path, names }) => {
  const ask = async (query: string): Promise<readonly [number, string | null, string]> => {
    const answer = await fetch(`${door.url}${path.replaceAll(/\{\w+\}/g, 'x')}?${query}`, { method: method.toUpperCase(), headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, ...(method === 'get' || method === 'delete' ? {} : { body: '{}' }) });
    const { error } = (await answer.json()) as { readonly error?: { readonly param: string | null; readonly message: string } };
    return [answer.status, error?.param ?? null, error?.message ?? ''];
  };
  expect(await ask('naem=x')).toEqual([400, 'naem', expect.stringMatching(/^There is no query parameter 'naem' here\./)]);
  for (const name of names) expect((await ask(`${name}=x`))[2]).not.toMatch(/no query parameter/);
});

test.each([['key_id', 'key'], ['apiKey', 'key'], ['kye', 'key'], ['group', 'group_by'], ['groupBy', 'group_by'], ['key[]', 'key'], ['form', 'from'], ['starting_after', 'after'], ['limits', 'limit']])('%s probably means %s', (given, meant) => {
  expect(message(given, 'from', 'to', 'key', 'limit', 'after', 'group_by')).toBe(`There is no query parameter '${given}' here. Did you mean '${meant}'? It takes from, to, key, limit, after, group_by.`);
});

test('if no name is similar, only the accepted ones are listed', () => {
  expect(message('customer', 'from', 'to')).toBe("There is no query parameter 'customer' here. It takes from, to.");
  expect(message('key')).toBe("There is no query parameter 'key' here. This address takes none.");
  expect(message('', 'to')).toBe("There is no query parameter '' here. It takes to.");
  expect(message('x'.repeat(300), 'to')).toBe(`There is no query parameter '${'x'.repeat(64)}' here. It takes to.`);
});
