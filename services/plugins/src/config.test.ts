import { expect, test } from '@jest/globals';
import { loadPluginsConfig } from './config.js';

test('what clients’ URLs may lead to is read with the other settings, and refused by its name', () => {
  expect(() => loadPluginsConfig({ DATABASE_URL: 'postgres://x', FETCH_ALLOW: '10.1.0.0/16, %%' })).toThrow(/^FETCH_ALLOW: /);
  loadPluginsConfig({ DATABASE_URL: 'postgres://x', FETCH_ALLOW: '10.1.0.0/16, files.internal:8080' });
});
