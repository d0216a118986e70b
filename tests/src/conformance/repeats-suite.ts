/** Repeats by Idempotency-Key (docs/idempotency.md). */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { errorOf, header, send, streamOf, type Got } from './http.js';
import { HELLO, PINNED, type TestAccount, type World } from './world.js';

export function describeRepeats(world: () => World): void {
  const ask = (account: TestAccount, idempotencyKey: string, body: object = {}, edge = world().gateway.baseUrl): Promise<Got> =>
    send(edge, { key: account.key, headers: { 'idempotency-key': idempotencyKey }, body: { model: PINNED, messages: HELLO, ...body } });
  /** Right after an answer its claim may not have ended yet. */
  const settled = (account: TestAccount, idempotencyKey: string, body: object = {}, edge?: string): Promise<Got> =>
    eventually('the claim is ended', async () => {
      const got = await ask(account, idempotencyKey, body, edge);
      return got.status === 409 && errorOf(got).code === 'idempotency_in_progress' ? undefined : got;
    });
  const chargesOf = async (account: TestAccount): Promise<number> => {
    const { rows } = JSON.parse((await world().admin('GET', `/admin/ledger?account=${account.id}`)).text) as { rows: readonly { kind: string }[] };
    return rows.filter(({ kind }) => kind === 'charge').length;
  };

  describe('repeats', () => {
    test.each([{}, { stream: true }])('are billed once, and get the kept answer at every replica: %j', async (body) => {
      const account = await world().newAccount({ store_answers: true });
      const key = randomUUID();
      const first = await ask(account, key, body);
      expect([first.status, header(first, 'idempotent-replayed')]).toEqual([200, '']);
      for (const edge of world().edges()) {
        const again = await settled(account, key, body, edge);
        expect([again.status, header(again, 'idempotent-replayed'), again.text, header(again, 'x-request-id')]).toEqual([200, 'true', first.text, header(first, 'x-request-id')]);
        expect([header(again, 'x-router-cost'), again.trailers['x-router-cost']]).toEqual([header(first, 'x-router-cost'), first.trailers['x-router-cost']]);
        if ('stream' in body) expect(streamOf(again.text).isDone).toBe(true);
      }
      await world().ledgerOf(account.id, header(first, 'x-request-id'));
      expect(await chargesOf(account)).toBe(1);
    });

    test('get id and cost if answers are not kept, and a conflict for another body', async () => {
      const account = await world().newAccount({});
      const key = randomUUID();
      const first = await ask(account, key);
      const again = await settled(account, key);
      expect([again.status, errorOf(again).code, errorOf(again).metadata?.['request_id']]).toEqual([409, 'idempotency_completed', header(first, 'x-request-id')]);
      expect(String(errorOf(again).metadata?.['cost_usd'])).toBe(String(Number(header(first, 'x-router-cost'))));
      const other = await ask(account, key, { temperature: 0.5 });
      expect([other.status, errorOf(other).code, header(other, 'x-should-retry')]).toEqual([409, 'idempotency_conflict', 'false']);
      expect((await ask(await world().newAccount({}), key, { temperature: 0.5 })).status).toBe(200);
    });

    test('at the same time, at every replica, run once', async () => {
      const account = await world().newAccount({});
      const key = randomUUID();
      const edges = world().edges();
      const got = await Promise.all(Array.from({ length: 12 }, (_, index) => ask(account, key, {}, edges[index % edges.length])));
      expect(got.map(({ status, text }) => (status === 200 || status === 409 ? status : text)).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 409)]);
      const [answered] = got.filter(({ status }) => status === 200);
      if (answered !== undefined) await world().ledgerOf(account.id, header(answered, 'x-request-id'));
      expect(await chargesOf(account)).toBe(1);
    });

    test('of creating an API key create one key, and never show its secret again', async () => {
      const account = await world().newAccount({});
      const put = await send(world().gateway.baseUrl, { method: 'PUT', path: '/api/policy', key: account.key, body: { store_answers: true } });
      expect((JSON.parse(put.text) as { store_answers: boolean }).store_answers).toBe(true);
      const make = (idempotencyKey: string): Promise<Got> => send(world().gateway.baseUrl, { path: '/api/auth', key: account.key, headers: { 'idempotency-key': idempotencyKey }, body: { name: 'once' } });
      const again = await eventually('the account’s wish is known', async () => {
        const key = randomUUID();
        const first = await make(key);
        expect(first.status).toBe(201);
        const repeated = await eventually('the claim is ended', async () => {
          const got = await make(key);
          return got.status === 409 && errorOf(got).code === 'idempotency_in_progress' ? undefined : got;
        });
        if (repeated.status !== 201) return undefined;
        const { key: secret, ...record } = JSON.parse(first.text) as { key: string };
        expect(secret).toMatch(/^sbx_live_/);
        expect(JSON.parse(repeated.text)).toEqual(record);
        return repeated;
      });
      expect(header(again, 'idempotent-replayed')).toBe('true');
    });
  });
}
