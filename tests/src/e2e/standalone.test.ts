import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { devAccount, expectBalancedBooks } from '../harness/books.js';
import { ask, load } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';

const dataDir = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'));
const opened: Gateway[] = [];
const start = async (): Promise<Gateway> => {
  const gateway = await startGateway({ mode: 'standalone', dataDir });
  opened.push(gateway);
  return gateway;
};

afterAll(async () => {
  await opened.at(-1)?.stop();
  rmSync(dataDir, { recursive: true, force: true });
}, 60_000);

describe('the all-in-one', () => {
  test('after SIGKILL under load every answer a client saw is in the ledger once, at the told price, and the kept key still works', async () => {
    const first = await start();
    expect(first.key).toMatch(/^sbx_live_/);
    const running = load({ baseUrls: [first.baseUrl], key: first.key, connections: 20, untilMs: systemClock.monotonicMs() + 2_500 });
    const early = await load({ baseUrls: [first.baseUrl], key: first.key, connections: 1, untilMs: systemClock.monotonicMs() + 1_500 });
    await first.kill();
    const seen = await running;
    const answers = [...early.answers, ...seen.answers];
    expect(answers.length).toBeGreaterThan(20);

    const second = await start();
    expect(second.key).toBe('');
    const { status } = await ask(second.baseUrl, first.key, { model: 'auto', messages: [{ role: 'user', content: 'Hello again' }] });
    expect(status).toBe(200);
    await expectBalancedBooks(second, await devAccount(second), answers);
  }, 150_000);
});
