/** Rates: what is refused, and the headers. */
import { describe, expect, test } from '@jest/globals';
import { errorOf, header, send, type Got } from './http.js';
import { HELLO, type World } from './world.js';

export function describeLimits(world: () => World): void {
  const chat = (key: string): Promise<Got> => send(world().gateway.baseUrl, { key, body: { model: 'simulator/fast', messages: HELLO } });

  describe('limits', () => {
    test('let no more requests through in a minute than the rate, and say when one would pass', async () => {
      const { key } = await world().newAccount({ requests_per_minute: 3, burst_per_second: 50 });
      const passed = [await chat(key), await chat(key), await chat(key)];
      expect(passed.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(passed.map((got) => header(got, 'x-ratelimit-limit-requests'))).toEqual(['3', '3', '3']);
      expect(passed.map((got) => header(got, 'x-ratelimit-remaining-requests'))).toEqual(['2', '1', '0']);
      for (const got of passed) expect(header(got, 'x-ratelimit-reset-requests')).toMatch(/^(\d+h)?(\d+m)?\d+s$/);
      const refused = await chat(key);
      expect(refused.status).toBe(429);
      expect(errorOf(refused)).toMatchObject({ type: 'requests', code: 'rate_limit_exceeded', metadata: { limit_source: 'requests_per_minute' } });
      expect(header(refused, 'retry-after')).toMatch(/^[1-9]\d?$/);
      expect(Number(header(refused, 'retry-after'))).toBeLessThanOrEqual(61);
      expect(header(refused, 'x-should-retry')).not.toBe('false');
    });

    test('let no more through at once than the burst', async () => {
      const { key } = await world().newAccount({ requests_per_minute: 1_000, burst_per_second: 2 });
      const answers = await Promise.all(Array.from({ length: 8 }, () => chat(key)));
      const refused = answers.filter(({ status }) => status === 429);
      expect(answers.filter(({ status }) => status === 200).length + refused.length).toBe(8);
      expect(refused.length).toBeGreaterThan(0);
      for (const got of refused) {
        expect(errorOf(got)).toMatchObject({ type: 'requests', code: 'rate_limit_exceeded', metadata: { limit_source: 'burst' } });
        // A second of 100 ms buckets ends at most 1.1 s later.
        expect(Number(header(got, 'retry-after-ms'))).toBeLessThanOrEqual(1_100);
        expect(Number(header(got, 'retry-after'))).toBe(Math.ceil(Number(header(got, 'retry-after-ms')) / 1_000));
      }
    });

    test('say whose rate was reached, and tell no key what another has left', async () => {
      const { id, key } = await world().newAccount({ requests_per_minute: 9, burst_per_second: 50 });
      const own = (JSON.parse((await world().admin('POST', '/admin/keys', { account_id: id, name: 'own', requests_per_minute: 1 })).text) as { key: { key: string } }).key.key;
      const bad = (of: string): Promise<Got> => send(world().gateway.baseUrl, { key: of, body: { model: 'simulator/fast' } });
      const told = (got: Got): string => `${got.status} ${header(got, 'x-ratelimit-remaining-requests')}/${header(got, 'x-ratelimit-limit-requests')}`;
      expect([told(await chat(key)), told(await chat(own)), told(await bad(key)), told(await bad(own))]).toEqual(['200 8/9', '200 0/1', '400 8/9', '400 0/1']);
      expect(errorOf(await chat(own)).message).toBe('Rate limit reached: this key may make 1 request a minute.');
      for (let i = 0; i < 7; i += 1) expect((await chat(key)).status).toBe(200);
      expect(errorOf(await chat(key)).message).toBe('Rate limit reached: this account may make 9 requests a minute.');
    });

    test('count an account over all its keys', async () => {
      const { id, key } = await world().newAccount({ requests_per_minute: 2, burst_per_second: 50 });
      const second = (JSON.parse((await world().admin('POST', '/admin/keys', { account_id: id, name: 'second' })).text) as { key: { key: string } }).key.key;
      expect([(await chat(key)).status, (await chat(second)).status, (await chat(key)).status, (await chat(second)).status]).toEqual([200, 200, 429, 429]);
    });

    test('do not count a request that was refused as invalid', async () => {
      const { key } = await world().newAccount({ requests_per_minute: 1, burst_per_second: 50 });
      for (let i = 0; i < 3; i += 1) expect((await send(world().gateway.baseUrl, { key, body: { model: 'simulator/fast', messages: [] } })).status).toBe(400);
      expect((await send(world().gateway.baseUrl, { key, body: { model: 'no/such', messages: HELLO } })).status).toBe(404);
      expect([(await chat(key)).status, (await chat(key)).status]).toEqual([200, 429]);
    });

    test('count the list of models separately from completions', async () => {
      const { key } = await world().newAccount({ requests_per_minute: 2, burst_per_second: 50 });
      const list = (): Promise<Got> => send(world().gateway.baseUrl, { method: 'GET', path: '/v1/models', key });
      const listed = [await list(), await list(), await list()];
      expect(listed.map(({ status }) => status)).toEqual([200, 200, 429]);
      expect(header((listed[2] ?? listed[0]) as Got, 'retry-after')).not.toBe('');
      expect([(await chat(key)).status, (await chat(key)).status]).toEqual([200, 200]);
    });

    test.each([
      ['free', { A: '60', B: '100' }],
      ['team', { A: '600', B: '600' }],
      ['pro', { A: '1000', B: '1000' }],
    ])('give tier %s its published rate', async (tier, rates) => {
      const { key } = await world().newAccount({ tier });
      const got = await chat(key);
      expect([got.status, header(got, 'x-ratelimit-limit-requests')]).toEqual([200, rates[world().variant]]);
    });

    test('give the three token headers if there is an allotment', async () => {
      const { key } = await world().newAccount({ included_tokens: '1000000' });
      const got = await chat(key);
      expect(header(got, 'x-ratelimit-limit-tokens')).toBe('1000000');
      expect(Number(header(got, 'x-ratelimit-remaining-tokens'))).toBeLessThanOrEqual(1_000_000);
      expect(header(got, 'x-ratelimit-reset-tokens')).toMatch(/^(\d+h)?(\d+m)?\d+s$/);
    });
  });
}
