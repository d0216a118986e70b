import { expect, test } from '@jest/globals';
import { lackOf, loadWorkerConfig } from './config.js';

const VARIABLES = { credentials: ['HOUSE_API_KEY', 'HOUSE_TOKEN'], baseUrl: 'HOUSE_BASE_URL', defaultBaseUrl: 'https://house.example/v1' } as const;
const load = (environment: Readonly<Record<string, string>>) => loadWorkerConfig(environment, VARIABLES);

test.each([
  ['HOUSE_BASE_URL', 'nonsense', 'HOUSE_BASE_URL: must be an http or https URL'],
  ['HOUSE_BASE_URL', 'ftp://house.example', 'HOUSE_BASE_URL: must be an http or https URL'],
  ['HOUSE_API_KEY', 'sk-1,sk-\n2', 'HOUSE_API_KEY: must be printable characters without blanks or line breaks'],
  ['HOUSE_API_KEY', 'sk-é', 'HOUSE_API_KEY: must be printable characters without blanks or line breaks'],
  ['HOUSE_TOKEN', 'sk-é', 'HOUSE_TOKEN: must be printable characters without blanks or line breaks'],
  ['FETCH_ALLOW', 'http://user:sk-1@files.internal', 'FETCH_ALLOW: neither a host, host:port nor a range of addresses: a text of 31 characters'],
  ['FETCH_ALLOW', 'files.internal,sk-\n1', 'FETCH_ALLOW: neither a host, host:port nor a range of addresses: a text of 5 characters'],
  ['FETCH_ALLOW', 'http://files.internal', 'FETCH_ALLOW: neither a host, host:port nor a range of addresses: http://files.internal'],
  ['DRAIN_MS', 'soon', 'DRAIN_MS: '],
])('the error for %s=%j names the variable, and does not contain a key', (name, value, line) => {
  expect(() => load({ [name]: value })).toThrow(line);
  expect(() => load({ [name]: value })).not.toThrow('sk-');
});

test('keys are separated by commas, and blanks or line breaks around them are removed', () => {
  expect(load({ HOUSE_TOKEN: ' sk-1,sk-2\n,' }).API_KEYS.map((key) => key.unwrap())).toEqual(['sk-1', 'sk-2']);
  expect(load({})).toMatchObject({ API_KEYS: [], BASE_URL: 'https://house.example/v1', DRAIN_MS: 30_000 });
});

test('an address without a key, or a key without an address if there is no default, is incomplete', () => {
  expect(lackOf(VARIABLES, { HOUSE_BASE_URL: 'http://x' })).toEqual({ given: 'HOUSE_BASE_URL', missing: 'HOUSE_API_KEY or HOUSE_TOKEN' });
  expect(lackOf({ ...VARIABLES, defaultBaseUrl: '' }, { HOUSE_TOKEN: 'a' })).toEqual({ given: 'HOUSE_TOKEN', missing: 'HOUSE_BASE_URL' });
  for (const environment of [{}, { HOUSE_TOKEN: 'a' }, { HOUSE_API_KEY: 'a', HOUSE_BASE_URL: 'http://x' }, { HOUSE_BASE_URL: '' }]) expect(lackOf(VARIABLES, environment)).toBeUndefined();
});
