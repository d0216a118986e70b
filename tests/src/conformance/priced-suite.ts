/** Requests of every kind: header, body, trailer, reports and ledger have the same integer. */
import { describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { header, nanoIn, nanoOf, send, streamOf, type Got } from './http.js';
import { MODEL, ownCredentialServed } from './own-credentials-suite.js';
import { completion, delta, streamed } from './upstreams.js';
import { HELLO, PINNED, type LedgerRow, type TestAccount, type World } from './world.js';

/** Served by both providers of the pair. Other suites let it fail, too: good answers in between keep its breakers closed, which open at the fifth failure in a row. */
const PAIR_MODEL = 'meta-llama/llama-3.3-70b-instruct';
const SUM = [{ role: 'user', content: 'Add up.\n```js\n1 + 2\n```' }];

/** The figures that a client got for one request; absent ones were not sent. */
interface Asked {
  readonly account: TestAccount;
  readonly requestId: string;
  readonly status: number;
  /** Cost header of a whole answer, trailer of a stream. */
  readonly head?: bigint;
  /** `x_router` of the body, or of the last chunk. */
  readonly body?: bigint;
}

export function describePriced(world: () => World): void {
  const ask = (account: TestAccount, body: object): Promise<Got> => send(world().gateway.baseUrl, { key: account.key, body: { model: PINNED, messages: HELLO, ...body } });
  const bodyOf = (got: Got): object => (world().variant === 'A' ? { body: nanoIn(got.text, 'cost_usd') } : {});
  const whole = async (account: TestAccount, body: object = {}): Promise<Asked> => {
    const got = await ask(account, body);
    return { account, requestId: header(got, 'x-request-id'), status: got.status, ...(got.status === 200 ? { head: nanoOf(header(got, 'x-router-cost')), ...bodyOf(got) } : {}) };
  };
  const stream = async (account: TestAccount, body: object = {}): Promise<Asked> => {
    const got = await ask(account, { stream: true, ...body });
    expect({ status: got.status, refusal: got.status === 200 ? '' : got.text }).toEqual({ status: 200, refusal: '' });
    const last = streamOf(got.text).chunks.filter((chunk) => chunk.x_router !== undefined);
    // Sent once, in the last chunk with content.
    expect(last).toHaveLength(world().variant === 'A' ? 1 : 0);
    return { account, requestId: header(got, 'x-request-id'), status: got.status, head: nanoOf(got.trailers['x-router-cost'] ?? ''), ...bodyOf(got) };
  };
  const inTurn = async <Value>(...works: readonly (() => Promise<Value>)[]): Promise<readonly Value[]> => {
    const values: Value[] = [];
    for (const work of works) values.push(await work());
    return values;
  };
  /** Its client leaves in the middle: it gets no figures, and the provider is cancelled. */
  const hangUp = async (account: TestAccount): Promise<Asked> => {
    const abort = new AbortController();
    let release: () => void = () => undefined;
    const wait = new Promise<void>((resolve) => (release = resolve));
    world().upstreams.single.enqueue({ chunks: [delta('a first piece'), () => wait], hang: true });
    const response = await fetch(`${world().gateway.baseUrl}/v1/chat/completions`, {
      method: 'POST', signal: abort.signal, headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' }, body: JSON.stringify({ model: 'mistralai/ministral-14b-2512', messages: HELLO, stream: true }),
    });
    await response.body?.getReader().read();
    abort.abort();
    release();
    return { account, requestId: response.headers.get('x-request-id') ?? '', status: 0 };
  };

  describe('prices', () => {
    test('of requests of every kind are the same integer in header, body, trailer, reports and ledger, and all sums add up', async () => {
      const { pair, single, own } = world().upstreams;
      for (const provider of [pair, single, own]) provider.clear();
      const [account, capped, byok] = await Promise.all([world().newAccount({}), world().newAccount({ cost_caps: [{ cap_usd: '0.000800', period: 'total' }] }), world().newAccount({})]);
      const source = { corpus: 'web', url: 'https://intranet.example/greetings', title: 'Greetings', text: 'To say hello is a greeting.' };
      expect((await world().admin('POST', '/admin/sources', source)).status).toBeLessThan(300);
      await ownCredentialServed(world(), byok);

      const kinds: Readonly<Record<string, Asked>> = Object.fromEntries(
        (
          await Promise.all([
            inTurn<readonly [string, Asked]>(
              async () => ['plain', await whole(account)],
              async () => ['several choices', await whole(account, { model: 'simulator/smart', n: 2 })],
              async () => ['cached prompt', await whole(account, { model: 'simulator/smart', messages: [{ role: 'user', content: `${'word '.repeat(50)}[sim:cached=40]` }] })],
              async () => ['stream', await stream(account)],
              async () => ['stream with usage asked for', await stream(account, { stream_options: { include_usage: true } })],
              async () => ['plugin fee', await whole(account, { plugins: ['web-search'] })],
              async () => ['plugin fee, stream', await stream(account, { plugins: ['web-search'] })],
              async () => ['tool rounds', await whole(account, { model: 'simulator/fast', messages: SUM, plugins: ['code-exec'] })],
              async () => ['tool rounds, stream', await stream(account, { model: 'simulator/fast', messages: SUM, plugins: ['code-exec'] })],
            ),
            inTurn<readonly [string, Asked]>(
              async () => (pair.enqueue(completion('first try')), ['first of two providers', await whole(account, { model: PAIR_MODEL })]),
              async () => (pair.enqueue({ status: 500, body: {} }, completion('second try')), ['failover', await whole(account, { model: PAIR_MODEL })]),
              async () => (pair.enqueue(streamed('first', ' try')), ['first of two providers, stream', await stream(account, { model: PAIR_MODEL })]),
              async () => (pair.enqueue({ status: 500, body: {} }, streamed('second', ' try')), ['failover, stream', await stream(account, { model: PAIR_MODEL })]),
              async () => (pair.enqueue({ status: 500, body: {} }, { status: 500, body: {} }), ['all failed', await whole(account, { model: PAIR_MODEL })]),
            ),
            inTurn<readonly [string, Asked]>(
              async () => (single.enqueue({ chunks: [delta('half an '), delta('answer')], cut: true }), ['cut', await stream(account, { model: 'mistralai/mistral-medium-3-5' })]),
              async () => (single.enqueue({ chunks: (streamed('no', ' usage').chunks ?? []).filter((piece) => typeof piece !== 'string' || !piece.includes('"usage"')) }), ['no usage told', await stream(account, { model: 'mistralai/codestral-2508' })]),
              async () => ['hung up', await hangUp(account)],
            ),
            inTurn<readonly [string, Asked]>(
              async () => ['gathered', await whole(capped, { model: 'simulator/fast' })],
              async () => ['stopped by a cap', await stream(capped, { model: 'simulator/fast', messages: [{ role: 'user', content: '[sim:tokens=4000]' }] })],
            ),
            inTurn<readonly [string, Asked]>(
              async () => (own.enqueue(completion('Hello.')), ['own credential', await whole(byok, { model: MODEL, provider: { only: ['together'] }, max_tokens: 20 })]),
              async () => (own.enqueue(streamed('Hel', 'lo.')), ['own credential, stream', await stream(byok, { model: MODEL, provider: { only: ['together'] }, max_tokens: 20 })]),
            ),
          ])
        ).flat(),
      );
      expect(Object.entries(kinds).filter(([, { status }]) => status !== 200).map(([kind, { status }]) => [kind, status])).toEqual([['all failed', 503], ['hung up', 0]]);

      const sum = (rows: readonly LedgerRow[]): bigint => rows.reduce((total, row) => total + BigInt(row.amount_nano_usd), 0n);
      const isCharge = ({ kind }: LedgerRow): boolean => kind !== 'attempt';
      const ledgers = new Map<string, readonly LedgerRow[]>();
      for (const { id } of [account, capped, byok]) {
        const asked = Object.values(kinds).filter((one) => one.account.id === id);
        // A request may be booked in parts, as its attempts become known: quota keeps it until the ledger has all.
        const rows = await eventually('every request is booked, and quota counts what the ledger holds', async () => {
          const { rows: all } = JSON.parse((await world().admin('GET', `/admin/ledger?account=${id}`)).text) as { rows: readonly LedgerRow[] };
          const { settled_nano_usd: settled, reserved_nano_usd: reserved } = JSON.parse((await world().admin('GET', `/admin/quota?account=${id}`)).text) as { settled_nano_usd: string; reserved_nano_usd: string };
          const isBooked = asked.every(({ requestId }) => all.some((row) => row.request_id === requestId && row.kind === 'charge'));
          return isBooked && settled === String(sum(all.filter(isCharge))) && reserved === '0' ? all : undefined;
        });
        ledgers.set(id, rows);
      }
      for (const [kind, { account: { id, key }, requestId, head, body }] of Object.entries(kinds)) {
        const isOwn = id === byok.id;
        const rows = (ledgers.get(id) ?? []).filter((row) => row.request_id === requestId);
        const charge = sum(rows.filter(isCharge));
        // Attempts on the account's own credential are not charged, and their rows have the cost of the answer.
        const cost = isOwn ? sum(rows.filter((row) => row.kind === 'attempt')) : charge;
        const report = (await send(world().gateway.baseUrl, { method: 'GET', path: `/api/requests/${requestId}`, key })).text;
        const told = { kind, charges: rows.filter((row) => row.kind === 'charge').length, head: head ?? cost, body: body ?? cost, ofAttempts: isOwn ? cost : sum(rows.filter((row) => row.kind === 'attempt' && row.charged)), reported: nanoIn(report, 'cost_usd'), charged: nanoIn(report, 'charge_usd') };
        expect(told).toEqual({ kind, charges: 1, head: cost, body: cost, ofAttempts: cost, reported: cost, charged: charge });
        expect({ kind, isFree: cost === 0n }).toEqual({ kind, isFree: kind === 'all failed' });
        if (isOwn) expect(charge).toBe(0n);
      }
      // 12 and 7 tokens of the model cost 6,000 nano-USD; the fees are settings of this gateway. Variant B has no plugins.
      const [searchFee, codeFee] = world().variant === 'A' ? [123n, 457n] : [0n, 0n];
      expect([kinds['plain']?.head, kinds['plugin fee']?.head, kinds['plugin fee, stream']?.head]).toEqual([6_000n, 6_000n + searchFee, 6_000n + searchFee]);
      expect((kinds['tool rounds']?.head ?? 0n) % 50n).toBe(codeFee % 50n);
      expect(sum((ledgers.get(capped.id) ?? []).filter(isCharge))).toBeLessThanOrEqual(800_000n);

      for (const { id, key } of [account, capped, byok]) {
        const total = sum((ledgers.get(id) ?? []).filter(isCharge));
        const usage = (await send(world().gateway.baseUrl, { method: 'GET', path: '/api/usage?group_by=day', key })).text;
        expect([...usage.matchAll(/\{[^{}]*\}/g)].reduce((all, [row]) => all + nanoIn(row, 'charge_usd'), 0n)).toBe(total);
        const proof = (await world().admin('GET', `/admin/ledger/verify?account=${id}`)).text;
        expect([proof, (JSON.parse(proof) as { ok: boolean }).ok]).toEqual([proof, true]);
      }
    });
  });
}
