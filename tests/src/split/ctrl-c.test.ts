import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { isAlive } from '@signalbox/local-stores/owner';
import { admin } from '../harness/books.js';
import { until } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';

const open: Gateway[] = [];
afterAll(async () => {
  await Promise.all(open.map((gateway) => gateway.stop()));
}, 120_000);

/** The text of a stream as far as it came; `onContent` is called once, when there is some. Never rejects. */
async function streamed(gateway: Gateway, key: string, content: string, onContent: () => void): Promise<string> {
  let text = '';
  let isTold = false;
  try {
    const response = await fetch(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify({ model: 'simulator/fast', stream: true, max_tokens: 4_000, messages: [{ role: 'user', content }] }) });
    for await (const part of response.body ?? []) {
      text += Buffer.from(part as Uint8Array).toString();
      if (isTold || !text.includes('"content":"')) continue;
      isTold = true;
      onContent();
    }
  } catch {
    // Cut.
  }
  return text;
}

describe('Ctrl-C', () => {
  test('a second one ends the all-in-one in the middle of a stream, and the next start books what was delivered', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'signalbox-ctrl-c-'));
    const first = await startGateway({ mode: 'standalone', dataDir });
    let isOver = false;
    const text = await streamed(first, first.key, 'tell [sim:tokens=3000,chunk-delay-ms=50]', () => {
      // The second counts a second later: until then they are one.
      void until(() => {
        if (isAlive(first.pid)) process.kill(first.pid, 'SIGINT');
        else isOver = true;
        return Promise.resolve(isOver);
      }, 20_000, 200, 'its end');
    });
    expect(text).not.toContain('[DONE]');
    await first.kill();
    const next = await startGateway({ mode: 'standalone', dataDir });
    open.push(next);
    const { accounts } = await admin<{ accounts: readonly { id: string }[] }>(next, '/accounts');
    const { rows } = await admin<{ rows: readonly { kind: string; amount_nano_usd: string; tokens: number }[] }>(next, `/ledger?account=${accounts[0]?.id ?? ''}`);
    expect(rows.filter(({ amount_nano_usd: amount }) => BigInt(amount) > 0n).length).toBeGreaterThan(0);
    expect(await admin(next, '/ledger/verify')).toMatchObject({ ok: true });
    rmSync(dataDir, { recursive: true, force: true });
  }, 180_000);

  test('one, which reaches all processes of the terminal at once, cuts no stream that needs its neighbours', async () => {
    const gateway = await startGateway({ mode: 'split' });
    open.push(gateway);
    const { key } = await admin<{ key: { key: string } }>(gateway, '/accounts', 'POST', { name: 'capped', tier: 'enterprise', cost_cap_usd: '5', cost_cap_period: 'total' });
    const text = await streamed(gateway, key.key, 'tell [sim:tokens=2500,chunk-delay-ms=6]', () => {
      for (const pid of [gateway.pid, ...gateway.processes().map((service) => service.pid)]) process.kill(pid, 'SIGINT');
    });
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    expect(text.slice(-2_000)).toContain('"finish_reason":"stop"');
    expect(text).not.toContain('"error"');
  }, 180_000);
});
