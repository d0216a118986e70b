/** What clients are told while a service of ours does not answer. Split processes only: one of them is frozen and thawed. */
import { describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { errorOf, header, send, type Got } from './http.js';
import { problems } from './schemas.js';
import { HELLO, type World } from './world.js';

export function describeNeighbours(world: () => World): void {
  const body = { model: 'simulator/fast', messages: HELLO };
  const chat = (key = world().account.key): Promise<Got> => send(world().gateway.baseUrl, { key, body });

  const whileFrozen = async (role: string, then: () => Promise<void>): Promise<void> => {
    const pids = world().gateway.processes().filter((one) => one.role === role).map(({ pid }) => pid);
    expect(pids.length).toBeGreaterThan(0);
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    try {
      await then();
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT');
    }
    await eventually(`${role} serves again`, async () => ((await chat()).status === 200 ? true : undefined), 20_000);
  };
  const expectOurs = (got: Got, status: number, code: string): void => {
    expect({ status: got.status, code: errorOf(got).code, type: errorOf(got).type }).toEqual({ status, code, type: 'server_error' });
    expect(problems('ErrorResponse', JSON.parse(got.text))).toEqual([]);
    expect(header(got, 'x-should-retry')).toBe('true');
    if (status === 503) expect(Number(header(got, 'retry-after'))).toBeGreaterThanOrEqual(1);
  };

  describe('while a neighbour does not answer', () => {
    test('routing: 500 routing_unavailable', () => whileFrozen('routing', async () => expectOurs(await chat(), 500, 'routing_unavailable')));

    test('quota: 503 quota_unavailable, never 402 or 429', () => whileFrozen('quota', async () => expectOurs(await chat(), 503, 'quota_unavailable')));

    test('accounts: a key that edge has not seen is 503, never 401', async () => {
      const { key } = await world().newAccount({});
      await whileFrozen('accounts', async () => expectOurs(await chat(key), 503, 'accounts_unavailable'));
    });
  });
}
