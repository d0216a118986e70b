import { expect, test } from '@jest/globals';
import { errorOfRefusal, isUncounted } from './refusal.js';

test('a plugin that failed and is missed is a fault of ours: 503, with a time to come again, and no flood of its client', () => {
  const refusal = { kind: 'plugin-failed', plugin: 'pdf-reader' } as const;
  expect(errorOfRefusal(refusal, 0, 'A')).toMatchObject({ status: 503, code: 'overloaded', metadata: { plugin: 'pdf-reader', retryable: true }, headers: { 'Retry-After': '1', 'x-should-retry': 'true' } });
  expect(isUncounted(refusal)).toBe(false);
});
