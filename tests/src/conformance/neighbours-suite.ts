/** What clients get while one of the gateway's services does not answer. Only with split processes: one is stopped and resumed. */
import { describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { completionOf, errorOf, header, send, streamOf, type Got } from './http.js';
import { problems } from './schemas.js';
import { HELLO, type World } from './world.js';

export function describeNeighbours(world: () => World): void {
  const body = { model: 'simulator/fast', messages: HELLO };
  const chat = (key = world().account.key): Promise<Got> => send(world().gateway.baseUrl, { key, body });

  const whileFrozen = async <Result>(role: string, then: () => Promise<Result>): Promise<Result> => {
    let result: Result;
    const pids = world().gateway.processes().filter((one) => one.role === role).map(({ pid }) => pid);
    expect(pids.length).toBeGreaterThan(0);
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    try {
      result = await then();
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT');
    }
    await eventually(`${role} serves again`, async () => ((await chat()).status === 200 ? true : undefined), 20_000);
    return result;
  };
  const expectOurs = (got: Got, status: number, code: string): void => {
    expect({ status: got.status, code: errorOf(got).code, type: errorOf(got).type }).toEqual({ status, code, type: 'server_error' });
    expect(problems('ErrorResponse', JSON.parse(got.text))).toEqual([]);
    expect(header(got, 'x-should-retry')).toBe('true');
    if (status === 503) expect(Number(header(got, 'retry-after'))).toBeGreaterThanOrEqual(1);
  };

  describe('while another service is away', () => {
    // A question of its own: a frequent one may be served by a kept plan.
    test('routing: 500 routing_unavailable', () => whileFrozen('routing', async () => expectOurs(await send(world().gateway.baseUrl, { key: world().account.key, body: { ...body, max_tokens: 77 } }), 500, 'routing_unavailable')));

    test('quota: without limits nothing changes, and the ledger bills the same; under a limit on money 503 quota_unavailable, never 402 or 429', async () => {
      const capped = await world().newAccount({ cost_caps: [{ cap_usd: '5', period: 'total' }] });
      const free = await world().newAccount({ tier: 'free' });
      const team = await world().newAccount({ tier: 'team' });
      for (const { key } of [capped, free, team]) expect((await chat(key)).status).toBe(200);
      const [plain, ofTeam, ofCapped, ofFree] = await whileFrozen('quota', () => Promise.all([chat(), chat(team.key), chat(capped.key), chat(free.key)]));
      // In variant B a free account has no trial credit.
      const isFreeLimited = world().variant === 'A';
      for (const [account, got] of [[world().account, plain], [team, ofTeam], ...(isFreeLimited ? [] : ([[free, ofFree]] as const))] as const) {
        expect(got.status).toBe(200);
        const charges = (await world().ledgerOf(account.id, completionOf(got).id)).filter(({ kind }) => kind === 'charge');
        expect(charges.map(({ amount_nano_usd: amount }) => BigInt(amount) > 0n)).toEqual([true]);
      }
      for (const got of isFreeLimited ? [ofCapped, ofFree] : [ofCapped]) {
        expectOurs(got, 503, 'quota_unavailable');
        expect(Number(header(got, 'retry-after'))).toBeGreaterThanOrEqual(2);
        expect(Number(header(got, 'retry-after'))).toBeLessThanOrEqual(5);
      }
    });

    test('quota: a stream under a cap that has used up its hold ends as our fault, charged for what was delivered, never as a cost cap', async () => {
      // Eight seconds, and the same in the other variant.
      if (world().variant === 'B') return;
      const { id, key } = await world().newAccount({ cost_caps: [{ cap_usd: '5', period: 'total' }] });
      const long = { ...body, messages: [{ role: 'user', content: '[sim:tokens=4000 delay-ms=500 chunk-delay-ms=1]' }], stream: true };
      // The hold exists before quota is frozen: the stream is dispatched after admission, half a second before its first content.
      const running = send(world().gateway.baseUrl, { key, body: long });
      await eventually('the stream is admitted', async () => ((JSON.parse((await world().admin('GET', `/admin/quota?account=${id}`)).text) as { reserved_nano_usd: string }).reserved_nano_usd === '0' ? undefined : true));
      const got = await whileFrozen('quota', () => running);
      const { chunks, isDone } = streamOf(got.text);
      const last = chunks.at(-1);
      expect({ status: got.status, isDone, reason: last?.choices[0]?.finish_reason, error: last?.error }).toMatchObject({ status: 200, isDone: true, reason: 'error', error: { type: 'server_error', code: 'quota_unavailable', metadata: { retryable: true } } });
      expect(got.text).not.toContain('cost_cap');
      const charges = (await world().ledgerOf(id, chunks[0]?.id ?? '')).filter(({ kind }) => kind === 'charge');
      expect(charges).toMatchObject([{ source: 'estimated' }]);
      expect(last?.usage?.completion_tokens).toBeLessThanOrEqual(1_024);
      if (last?.x_router !== undefined) expect(charges[0]?.amount_nano_usd).toBe(String(Math.round(last.x_router.cost_usd * 1e9)));
    });

    test('accounts: a key that is not cached at edge is 503, never 401', async () => {
      const { key } = await world().newAccount({});
      await whileFrozen('accounts', async () => expectOurs(await chat(key), 503, 'accounts_unavailable'));
    });
  });
}
