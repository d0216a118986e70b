import { expect, test } from '@jest/globals';
import { findStores } from './find.js';

test('uses given stores as they are and names no secret in its summary', async () => {
  const found = await findStores({ databaseUrl: 'postgres://u:hidden@127.0.0.1:1/x', redisUrl: 'redis://127.0.0.1:2', wanted: ['postgres', 'redis'] });
  expect(found.databaseUrl).toBe('postgres://u:hidden@127.0.0.1:1/x');
  expect(found.summary).toBe('postgres (given), redis (given)');
  expect(() => found.natsUrl).toThrow(/NATS_URL/);
  await found.stop();
  await found.stop();
});
