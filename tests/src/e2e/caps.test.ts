import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startGateway, type Gateway } from '../harness/gateway.js';
import { runCrowd, startPartialProvider, type PartialProvider } from './capped-crowd.js';

let provider: PartialProvider;
let gateway: Gateway;

beforeAll(async () => {
  provider = await startPartialProvider();
  gateway = await startGateway({ mode: 'standalone', environment: { ...provider.environment, SIMULATOR: 'off' } });
}, 120_000);

afterAll(async () => {
  await gateway.stop();
  await provider.stop();
}, 60_000);

// `npm run test:caps` does the same with 500 requests at four edges.
test('a crowd spends a cap nearly whole and never over, and nobody is refused while there is room', async () => {
  const { wrong, answered, capped, capNanoUsd, spentNanoUsd } = await runCrowd(gateway, [gateway.baseUrl], 120, 20);
  expect(wrong).toEqual([]);
  expect([answered > 20, capped > 0]).toEqual([true, true]);
  expect(spentNanoUsd <= capNanoUsd).toBe(true);
  expect(Number(spentNanoUsd) / Number(capNanoUsd)).toBeGreaterThanOrEqual(0.95);
}, 120_000);
