import { expect, test } from '@jest/globals';
import { Secret } from '@signalbox/runtime/secret';
import { loadEdgeConfig, warningsOf } from './config.js';

test.each([1, 15])('an ADMIN_TOKEN of %i characters causes a warning, which does not contain it', (length) => {
  expect(warningsOf({ ADMIN_TOKEN: new Secret('z'.repeat(length)) })).toEqual(['ADMIN_TOKEN has fewer than 16 characters: whoever reaches the admin door on this host can guess it.']);
});

test('a token of 16 characters causes none', () => {
  expect(warningsOf({ ADMIN_TOKEN: new Secret('z'.repeat(16)) })).toEqual([]);
});

test('a worker at a port that cannot be connected to is refused by the setting', () => {
  const needed = { ADMIN_TOKEN: 'z'.repeat(16), KEY_PEPPER: 'p', ACCOUNTS_ADDRS: 'a:1', ROUTING_ADDRS: 'a:1', QUOTA_ADDRS: 'a:1', BILLING_ADDRS: 'a:1' };
  for (const workers of ['openai=a:99999', 'openai=a:0', 'openai=a', 'openai']) expect(() => loadEdgeConfig({ ...needed, WORKERS: workers })).toThrow('WORKERS: expected provider=host:port, several separated by commas');
  expect(loadEdgeConfig({ ...needed, WORKERS: 'openai=a:1,openai=[::1]:65535' }).WORKERS.get('openai')).toEqual(['a:1', '[::1]:65535']);
});
