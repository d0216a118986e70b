import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startGateway, type Gateway } from '../harness/gateway.js';
import { runCrowd, startPartialProvider, type PartialProvider } from './capped-crowd.js';

let provider: PartialProvider;
let gateway: Gateway;

beforeAll(async () => {
  provider = await startPartialProvider();
  gateway = await startGateway({ mode: 'split', replicas: 'edge=4', environment: { ...provider.environment, SIMULATOR: 'off' } });
}, 120_000);

afterAll(async () => {
  await gateway.stop();
  await provider.stop();
}, 60_000);

test.each([20, 25, 40])('500 requests at four edges spend a cap of %i holds nearly whole and never over, and nobody is refused while there is room', async (capHolds) => {
  const edges = gateway.processes().flatMap(({ role, ports }) => (role === 'edge' ? [`http://127.0.0.1:${String(ports['http'])}`] : []));
  expect(edges.length).toBe(4);
  const report = await runCrowd(gateway, edges, 500, capHolds);
  process.stderr.write(`${JSON.stringify(report, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}\n`);
  const { wrong, answered, capped, capNanoUsd, spentNanoUsd } = report;
  expect(wrong).toEqual([]);
  expect([answered > capHolds, capped > 0]).toEqual([true, true]);
  expect(spentNanoUsd <= capNanoUsd).toBe(true);
  expect(Number(spentNanoUsd) / Number(capNanoUsd)).toBeGreaterThanOrEqual(0.95);
}, 300_000);
