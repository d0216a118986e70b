/** The price of a request is the same integer wherever it is given. */
import { describe, expect, test } from '@jest/globals';
import { TIME_TOOL, WEATHER_TOOL } from './completions-suite.js';
import { completionOf, header, nanoIn, nanoOf, send, streamOf, type Got } from './http.js';
import { HELLO, PINNED, type LedgerRow, type World } from './world.js';

const charges = (rows: readonly LedgerRow[]): readonly LedgerRow[] => rows.filter(({ kind }) => kind === 'charge');

export function describeMoney(world: () => World): void {
  const chat = (body: object): Promise<Got> => world().chat({ model: PINNED, messages: HELLO, ...body });
  const charged = async (got: Got): Promise<LedgerRow> => {
    const rows = charges(await world().ledgerOf(world().account.id, header(got, 'x-request-id')));
    expect(rows).toHaveLength(1);
    const [row] = rows;
    if (row === undefined) throw new Error('expected a charge');
    return row;
  };

  describe('money', () => {
    test.each([{}, { tools: [WEATHER_TOOL, TIME_TOOL], messages: [{ role: 'user', content: 'two tools' }] }, { model: 'auto' }, { model: 'simulator/smart', n: 2 }])('header, body and ledger have the same integer: %j', async (body) => {
      const got = await chat(body);
      expect(got.status).toBe(200);
      const cost = nanoOf(header(got, 'x-router-cost'));
      expect(cost).toBeGreaterThan(0n);
      if (world().variant === 'A') {
        expect(nanoIn(got.text, 'cost_usd')).toBe(cost);
        expect(nanoIn(got.text, 'savings_usd')).toBe(nanoOf(header(got, 'x-router-savings')));
      }
      expect(BigInt((await charged(got)).amount_nano_usd)).toBe(cost);
    });

    test.each([{}, { stream_options: { include_usage: true } }])('trailer, last chunk and ledger of a stream have the same integer: %j', async (options) => {
      const got = await chat({ stream: true, ...options });
      const cost = nanoOf(got.trailers['x-router-cost'] ?? '');
      if (world().variant === 'A') expect(nanoIn(got.text, 'cost_usd')).toBe(cost);
      expect(BigInt((await charged(got)).amount_nano_usd)).toBe(cost);
      expect(streamOf(got.text).isDone).toBe(true);
    });

    test('a model by name has the catalog’s price, to the nano-dollar', async () => {
      // 12 input tokens at 0.15 and 7 output tokens at 0.60 dollars per million.
      expect(nanoOf(header(await chat({}), 'x-router-cost'))).toBe(6_000n);
      // 2.50 and 10.00 dollars per million.
      expect(nanoOf(header(await chat({ model: 'openai/gpt-4o' }), 'x-router-cost'))).toBe(100_000n);
    });

    test('every 200 has exactly one charge, and a refusal has none', async () => {
      const account = await world().newAccount({});
      const as = (body: object): Promise<Got> => send(world().gateway.baseUrl, { key: account.key, body });
      const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => as({ model: PINNED, messages: HELLO, stream: at % 2 === 0 })));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      const refused = [await as({ model: 'no/such', messages: HELLO }), await as({ model: PINNED, messages: [] })];
      const ids = answers.map((got) => header(got, 'x-request-id'));
      for (const id of ids) expect(charges(await world().ledgerOf(account.id, id))).toHaveLength(1);
      const { rows } = JSON.parse((await world().admin('GET', `/admin/ledger?account=${account.id}`)).text) as { rows: LedgerRow[] };
      expect(charges(rows).map((row) => row.request_id).sort()).toEqual([...ids].sort());
      for (const got of refused) expect(rows.some((row) => row.request_id === header(got, 'x-request-id'))).toBe(false);
      expect(new Set(rows.map(({ seq }) => seq)).size).toBe(rows.length);
    });

    test('savings are the cost of the same tokens at the baseline model, minus the cost', async () => {
      const account = await world().newAccount({ baseline_model: 'openai/gpt-4-turbo' });
      const got = await send(world().gateway.baseUrl, { key: account.key, body: { model: 'auto', messages: HELLO } });
      const { usage } = completionOf(got);
      // Baseline: 10 dollars a million in, 30 out.
      const baseline = BigInt(usage.prompt_tokens) * 10_000n + BigInt(usage.completion_tokens) * 30_000n;
      const savings = baseline - nanoOf(header(got, 'x-router-cost'));
      expect(nanoOf(header(got, 'x-router-savings'))).toBe(savings > 0n ? savings : 0n);
    });

    test('a model at its own maker saves nothing', async () => {
      expect(nanoOf(header(await chat({}), 'x-router-savings'))).toBe(0n);
    });

    test('a cost cap lets requests through until it is reached, never beyond', async () => {
      const account = await world().newAccount({ cost_cap_usd: '0.003', cost_cap_period: 'day' });
      let spent = 0n;
      let refusal: Got | undefined;
      for (let i = 0; i < 100 && refusal === undefined; i += 1) {
        const got = await send(world().gateway.baseUrl, { key: account.key, body: { model: 'openai/gpt-4o', messages: HELLO, max_tokens: 50 } });
        if (got.status === 200) spent += nanoOf(header(got, 'x-router-cost'));
        else refusal = got;
      }
      expect(refusal?.status).toBe(world().variant === 'A' ? 402 : 429);
      expect(spent).toBeGreaterThan(0n);
      expect(spent).toBeLessThanOrEqual(3_000_000n);
    });
  });
}
