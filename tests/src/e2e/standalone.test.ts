import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { admin, devAccount, expectBalancedBooks, ledgerOf } from '../harness/books.js';
import { ask, load, until, type SeenAnswer } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';

const dataDir = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'));
const opened: Gateway[] = [];
/** Repeats are told what became of a request once its edge has been silent for so long. */
const CLAIM_LEASE_SECONDS = '2';
const start = async (): Promise<Gateway> => {
  const gateway = await startGateway({ mode: 'standalone', dataDir, environment: { CLAIM_LEASE_SECONDS } });
  opened.push(gateway);
  return gateway;
};

interface Claimed {
  readonly idempotencyKey: string;
  readonly body: object;
  readonly requestId: string;
}
interface Conflict {
  readonly error: { readonly code: string; readonly metadata?: { readonly request_id: string; readonly cost_usd?: number | null } };
}

afterAll(async () => {
  await opened.at(-1)?.stop();
  rmSync(dataDir, { recursive: true, force: true });
}, 60_000);

describe('the all-in-one, after SIGKILL under load', () => {
  let first: Gateway;
  let second: Gateway;
  let answers: readonly SeenAnswer[];
  let account: { readonly id: string; readonly key: string };
  let answered: Claimed & { readonly costUsd: string };
  let underWay: Claimed;

  const post = (gateway: Gateway, idempotencyKey: string, body: object): Promise<Response> =>
    fetch(`${gateway.baseUrl}/v1/chat/completions`, {
      method: 'POST', headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json', 'idempotency-key': idempotencyKey }, body: JSON.stringify(body), signal: AbortSignal.timeout(60_000),
    });
  const idOf = (response: Response): string => response.headers.get('x-request-id') ?? '';

  beforeAll(async () => {
    first = await start();
    const made = await admin<{ account: { id: string }; key: { key: string } }>(first, '/accounts', 'POST', { name: 'repeats', tier: 'enterprise', store_answers: true });
    account = { id: made.account.id, key: made.key.key };
    const running = load({ baseUrls: [first.baseUrl], key: first.key, connections: 20, untilMs: systemClock.monotonicMs() + 2_500 });
    // Long enough that its worker has written down how far it came.
    const stream = { idempotencyKey: randomUUID(), body: { model: 'simulator/fast', stream: true, messages: [{ role: 'user', content: 'tell [sim:tokens=4000,chunk-delay-ms=20]' }] } };
    const streaming = await post(first, stream.idempotencyKey, stream.body);
    underWay = { ...stream, requestId: idOf(streaming) };
    const left = streaming.text().catch(() => '');
    const early = await load({ baseUrls: [first.baseUrl], key: first.key, connections: 1, untilMs: systemClock.monotonicMs() + 1_500 });
    const whole = { idempotencyKey: randomUUID(), body: { model: 'simulator/fast', messages: [{ role: 'user', content: 'hello' }] } };
    const response = await post(first, whole.idempotencyKey, whole.body);
    answered = { ...whole, requestId: idOf(response), costUsd: response.headers.get('x-router-cost') ?? '' };
    // Between the answer and the end of its claim, as a rule.
    await first.kill();
    expect(await left).not.toContain('[DONE]');
    answers = [...early.answers, ...(await running).answers];
    second = await start();
  }, 150_000);

  test('every answer a client saw is in the ledger once, at the told price, and the kept key still works', async () => {
    expect(first.key).toMatch(/^sbx_live_/);
    expect(answers.length).toBeGreaterThan(20);
    expect(second.key).toBe('');
    const { status } = await ask(second.baseUrl, first.key, { model: 'auto', messages: [{ role: 'user', content: 'Hello again' }] });
    expect(status).toBe(200);
    await expectBalancedBooks(second, await devAccount(second), answers);
    await expectBalancedBooks(second, account.id, [answered]);
  }, 150_000);

  test('a repeat by Idempotency-Key runs neither what was answered nor what was under way again, and is told what each cost', async () => {
    for (const { idempotencyKey, body, requestId } of [answered, underWay]) {
      let last: Response | undefined;
      await until(async () => {
        last = await post(second, idempotencyKey, body);
        if (last.status === 200) return true;
        const { error } = (await last.clone().json()) as Conflict;
        expect([last.status, error.metadata?.request_id]).toEqual([409, requestId]);
        return error.code === 'idempotency_completed';
      }, 30_000, 200, 'the ledger to know of the request');
      // Kept, where the answer was before the kill; a broken stream never is.
      if (last?.status === 200) expect([last.headers.get('idempotent-replayed'), idOf(last), requestId]).toEqual(['true', requestId, answered.requestId]);
      const charges = (await ledgerOf(second, account.id)).filter((row) => row.request_id === requestId && row.kind === 'charge');
      expect(charges).toHaveLength(1);
      const charged = Number(charges[0]?.amount_nano_usd);
      expect(charged).toBeGreaterThan(0);
      if (requestId === answered.requestId) expect(charged).toBe(Math.round(Number(answered.costUsd) * 1e9));
      if (last?.status === 409) expect(Math.round(((await last.json()) as Conflict).error.metadata?.cost_usd as number * 1e9)).toBe(charged);
    }
    expect(new Set((await ledgerOf(second, account.id)).map(({ request_id: id }) => id))).toEqual(new Set([answered.requestId, underWay.requestId]));
  }, 90_000);
});
