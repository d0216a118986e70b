import { expect, test } from '@jest/globals';
import { loadPluginsConfig } from './config.js';

test('what clients’ URLs may lead to is read with the other settings, and refused by its name', () => {
  expect(() => loadPluginsConfig({ DATABASE_URL: 'postgres://x', FETCH_ALLOW: '10.1.0.0/16, %%' })).toThrow(/^FETCH_ALLOW: /);
  loadPluginsConfig({ DATABASE_URL: 'postgres://x', FETCH_ALLOW: '10.1.0.0/16, files.internal:8080' });
});

const NEEDED = { DATABASE_URL: 'postgres://x' };

test.each([
  ['web-search=0.002=5', 'expected plugin=usd'],
  ['web-search', 'expected plugin=usd'],
  ['web-search=0.002,memory=0.1,web-search=0.003', 'expected one fee of web-search, which is named twice'],
])('a fee that could be read in two ways is refused, by its name: %s', (fees, message) => {
  expect(() => loadPluginsConfig({ ...NEEDED, PLUGIN_FEES: fees })).toThrow(`PLUGIN_FEES: ${message}`);
});

test('fees are read to the nano-dollar', () => {
  expect([...loadPluginsConfig({ ...NEEDED, PLUGIN_FEES: 'web-search=0.002, memory=0.000000001' }).PLUGIN_FEES]).toEqual([['web-search', 2_000_000n], ['memory', 1n]]);
});

test('a document may take no longer than its request waits for', () => {
  for (const given of [{ PDF_TIMEOUT_MS: '20001' }, { PDF_TIMEOUT_MS: '9000', PLUGINS_DEADLINE_MS: '8000' }]) expect(() => loadPluginsConfig({ ...NEEDED, ...given })).toThrow(/^PDF_TIMEOUT_MS: must not be above PLUGINS_DEADLINE_MS/);
  expect(loadPluginsConfig({ ...NEEDED, PDF_TIMEOUT_MS: '60000', PLUGINS_DEADLINE_MS: '60000' })).toMatchObject({ PDF_TIMEOUT_MS: 60_000 });
  expect(loadPluginsConfig({ ...NEEDED, PLUGINS_DEADLINE_MS: '5000' })).toMatchObject({ PLUGINS_DEADLINE_MS: 5_000 });
});

test.each(['WEB_SEARCH_URL', 'GUTENDEX_URL'])('%s takes no user name, which would not be sent, and does not say it again', (name) => {
  for (const given of ['http://user:secret@search.internal', 'https://user@search.internal/x']) expect(() => loadPluginsConfig({ ...NEEDED, [name]: given })).toThrow(new RegExp(`^${name}: must hold no user name and no password$`));
  expect(loadPluginsConfig({ ...NEEDED, [name]: 'http://127.0.0.1:8080/search?who=a@b' })).toMatchObject({ [name]: 'http://127.0.0.1:8080/search?who=a@b' });
});

test('a worker at a port that cannot be connected to is refused by the setting', () => {
  expect(() => loadPluginsConfig({ ...NEEDED, WORKERS: 'openai=a:99999' })).toThrow('WORKERS: expected provider=host:port, several separated by commas');
});
