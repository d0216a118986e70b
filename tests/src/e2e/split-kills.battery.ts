import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { admin, devAccount, expectBalancedBooks } from '../harness/books.js';
import { ask, load, until } from '../harness/client.js';
import { startGateway, type Gateway, type GatewayProcess } from '../harness/gateway.js';

const dataDir = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'));
let gateway: Gateway;

const processOf = (role: string, replica = 0): GatewayProcess => {
  const found = gateway.processes().find((one) => one.role === role && one.replica === replica);
  if (found === undefined) throw new Error(`There is no ${role} ${replica}.`);
  return found;
};
const isAnswering = async ({ ports }: GatewayProcess): Promise<boolean> => {
  try {
    return (await fetch(`http://127.0.0.1:${ports['metrics'] ?? 0}/readyz`, { signal: AbortSignal.timeout(1_000) })).ok;
  } catch {
    return false;
  }
};
const edges = (): readonly string[] => [0, 1].map((replica) => `http://127.0.0.1:${processOf('edge', replica).ports['http'] ?? 0}`);

beforeAll(async () => {
  gateway = await startGateway({ mode: 'split', dataDir, replicas: 'edge=2' });
}, 120_000);

afterAll(async () => {
  const pids = gateway.processes().map(({ pid }) => pid);
  await gateway.stop();
  rmSync(dataDir, { recursive: true, force: true });
  const alive = pids.filter((pid) => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  });
  expect(alive).toEqual([]);
}, 60_000);

describe('separate processes', () => {
  test.each([
    ['worker-simulator', 0],
    ['edge', 1],
    ['billing', 0],
    ['quota', 0],
  ])('SIGKILL of %s %i under load loses no charge, and the process is back at the same ports', async (role, replica) => {
    const before = processOf(role, replica);
    const running = load({ baseUrls: edges(), key: gateway.key, connections: 10, untilMs: systemClock.monotonicMs() + 3_000 });
    const early = await load({ baseUrls: [gateway.baseUrl], key: gateway.key, connections: 1, untilMs: systemClock.monotonicMs() + 800 });
    process.kill(before.pid, 'SIGKILL');
    await until(() => Promise.resolve(processOf(role, replica).pid !== before.pid), 5_000, 20, 'a line with the new pid');
    expect(processOf(role, replica).ports).toEqual(before.ports);
    const { answers } = await running;
    await until(() => isAnswering(processOf(role, replica)), 30_000, 100, `${role} to be ready`);
    await until(async () => (await ask(gateway.baseUrl, gateway.key, { model: 'auto', messages: [{ role: 'user', content: 'Hello' }] })).status === 200, 30_000, 200, 'an answer after the restart');
    expect(answers.length + early.answers.length).toBeGreaterThan(5);
    await expectBalancedBooks(gateway, await devAccount(gateway), [...early.answers, ...answers]);
  }, 150_000);

  test('a revoked key is refused by every edge', async () => {
    const account = await devAccount(gateway);
    const { key } = await admin<{ key: { id: string; key: string } }>(gateway, '/keys', 'POST', { account_id: account, name: 'to be revoked' });
    const statuses = (): Promise<readonly number[]> => Promise.all(edges().map(async (baseUrl) => (await ask(baseUrl, key.key, { model: 'auto', messages: [{ role: 'user', content: 'Hello' }] })).status));
    expect(await statuses()).toEqual([200, 200]);
    await admin(gateway, `/keys/${key.id}`, 'DELETE');
    await until(async () => (await statuses()).every((status) => status === 401), 5_000, 50, 'both to refuse the key');
  }, 60_000);
});
