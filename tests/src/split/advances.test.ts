import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseUsd } from '@signalbox/kernel/money';
import { admin } from '../harness/books.js';
import { ask, until } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';

const AT_ONCE = 12;
const REQUESTS = 360;
/** Well below the 30 s after which a hold ends by itself. */
const GIVEN_BACK_MS = 10_000;
let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ mode: 'split' });
}, 120_000);
afterAll(() => gateway.stop());

async function metric(role: string, name: string): Promise<number> {
  let sum = 0;
  for (const { ports } of gateway.processes().filter((one) => one.role === role)) {
    const text = await (await fetch(`http://127.0.0.1:${String(ports['metrics'])}/metrics`)).text();
    for (const line of text.split('\n')) if (line.startsWith(name)) sum += Number(line.slice(line.lastIndexOf(' ')));
  }
  return sum;
}

test.each([['under a cap', { cost_cap_usd: '100', cost_cap_period: 'month' }], ['without a limit', {}]])('a busy account %s is served from advances: each answer is charged what it told, and all that was taken is given back', async (name, terms) => {
  const { account, key } = await admin<{ account: { id: string }; key: { key: string } }>(gateway, '/accounts', 'POST', { name, tier: 'enterprise', ...terms });
  const [servedBefore, askedBefore] = [await metric('edge', 'signalbox_edge_advance_admissions_total'), await metric('quota', 'signalbox_quota_admissions_total')];
  let left = REQUESTS;
  let told = 0n;
  const client = async (): Promise<void> => {
    while ((left -= 1) >= 0) {
      const { status, headers } = await ask(gateway.baseUrl, key.key, { model: 'simulator/fast', max_tokens: 20, messages: [{ role: 'user', content: 'a word [sim:delay-ms=5]' }] });
      expect(status).toBe(200);
      told += parseUsd(headers.get('x-router-cost') ?? '');
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  const served = (await metric('edge', 'signalbox_edge_advance_admissions_total')) - servedBefore;
  const asked = (await metric('quota', 'signalbox_quota_admissions_total')) - askedBefore;
  expect(served).toBeGreaterThan(REQUESTS / 2);
  // What was not served, and the advances themselves.
  expect(asked).toBeLessThan(REQUESTS / 2);

  let quota = { settled_nano_usd: '', reserved_nano_usd: '' };
  await until(async () => (quota = await admin<typeof quota>(gateway, `/quota?account=${account.id}`)).reserved_nano_usd === '0', GIVEN_BACK_MS, 100, 'everything to be given back');
  expect(quota.settled_nano_usd).toBe(String(told));
}, 120_000);
