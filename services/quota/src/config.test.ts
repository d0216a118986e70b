import { expect, test } from '@jest/globals';
import { loadQuotaConfig } from './config.js';

test.each(['hello', '127.0.0.1:6379', 'localhost:6379', 'redis://', 'postgres://u:hidden@127.0.0.1/x'])('%s is no address of Redis, and is not repeated', (url) => {
  expect(() => loadQuotaConfig({ REDIS_URL: url })).toThrow(/^REDIS_URL: must be redis:\/\/host:port, or rediss:\/\/host:port$/);
});

test.each(['redis://127.0.0.1:6379', 'rediss://quota:hidden@redis.internal:6380/0'])('%s is one', (url) => {
  expect(loadQuotaConfig({ REDIS_URL: url }).REDIS_URL).toBe(url);
});

test('a password with a bare % is told by its setting, and not repeated', () => {
  expect(() => loadQuotaConfig({ REDIS_URL: 'redis://quota:hidden%@127.0.0.1:6379' })).toThrow(/^REDIS_URL: cannot be read as a URL; a user and a password write [^h]+$/);
});
