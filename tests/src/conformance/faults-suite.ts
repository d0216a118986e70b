/** Providers that fail in different ways; clients see nothing of it while another provider can answer. */
import { describe, expect, test } from '@jest/globals';
import { sse, type FakeProvider, type ScriptedAnswer } from '@signalbox/testkit/fake-provider';
import { eventually } from './eventually.js';
import { completionOf, contentOf, errorOf, header, send, streamOf, type Got } from './http.js';
import { problems } from './schemas.js';
import { completion, delta, GREETING, streamed } from './upstreams.js';
import { HELLO, PINNED, type TestAccount, type World } from './world.js';

/** Served by groq and cerebras alike; spread, so that none fails five times in a row and its breaker stays closed. */
const PAIR_MODELS = ['meta-llama/llama-3.3-70b-instruct', 'qwen/qwen3-32b', 'meta-llama/llama-3.1-70b-instruct', 'openai/gpt-oss-120b'] as const;

interface Fault {
  readonly name: string;
  readonly answer: ScriptedAnswer;
}

const RESET: ScriptedAnswer = { chunks: [], cut: true };
const BOTH: readonly Fault[] = [
  { name: '500', answer: { status: 500, body: { error: { message: 'internal' } } } },
  { name: '502 with a page of HTML', answer: { status: 502, body: '<html>bad gateway</html>' } },
  { name: 'a reset connection', answer: RESET },
  { name: '404 for the model', answer: { status: 404, body: { error: { message: 'model not found', code: 'model_not_found' } } } },
  { name: '408', answer: { status: 408, body: { error: { message: 'timeout' } } } },
];
const WHOLE: readonly Fault[] = [
  ...BOTH,
  { name: '200 with a page of HTML', answer: { body: '<html>hello</html>' } },
  { name: '200 without choices', answer: { body: { id: 'x', object: 'chat.completion', choices: [] } } },
  { name: '200 with an error object', answer: { body: { error: { message: 'overloaded', code: 503 } } } },
  { name: 'a body cut in the middle', answer: { headers: { 'content-type': 'application/json' }, chunks: ['{"id":"x","choices":[{"index":0,"mess'], cut: true } },
];
const STREAMS: readonly Fault[] = [
  ...BOTH.slice(0, 3),
  { name: '200 with garbage', answer: { chunks: ['data: {"choices": [{\n\n', 'data: ~~~\n\n'] } },
  { name: 'an empty stream', answer: { chunks: [sse('[DONE]')] } },
  { name: 'an error event first', answer: { chunks: [sse({ error: { message: 'overloaded', code: 503 } })] } },
];

export function describeFaults(world: () => World): void {
  const pair = (): FakeProvider => world().upstreams.pair;
  const single = (): FakeProvider => world().upstreams.single;
  const post = (key: string, body: object, signal: AbortSignal): Promise<Response> =>
    fetch(`${world().gateway.baseUrl}/v1/chat/completions`, { method: 'POST', signal, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const chat = (model: string, more: object = {}, { key }: Pick<TestAccount, 'key'> = world().account): Promise<Got> => world().chat({ model, messages: HELLO, ...more }, { key });

  describe('providers that fail', () => {
    let slow: Promise<Got> | undefined;

    test('(a request to a provider that hangs is under way)', () => {
      // Takes ten seconds, so it runs beside the other tests and is checked last.
      single().enqueue({ hang: true });
      slow = chat('mistralai/ministral-8b-2512', { stream: true, ...(world().variant === 'A' ? { models: [PINNED] } : {}) });
      slow.catch(() => undefined);
    });

    test.each(WHOLE.map((fault, at) => ({ ...fault, model: PAIR_MODELS[at % PAIR_MODELS.length] ?? '' })))('$name: the next provider answers, and the client pays once', async ({ answer, model }) => {
      pair().enqueue(answer, completion('second try'));
      const got = await chat(model);
      expect({ status: got.status, text: got.status === 200 ? '' : got.text }).toEqual({ status: 200, text: '' });
      expect(completionOf(got).choices[0]?.message.content).toBe('second try');
      expect(header(got, 'x-router-attempts')).toBe('2');
      expect(completionOf(got).model).toBe(model);
      const rows = await world().ledgerOf(world().account.id, completionOf(got).id);
      expect(rows.filter(({ kind }) => kind === 'charge')).toMatchObject([{ provider: header(got, 'x-router-provider') }]);
    });

    test.each(STREAMS.map((fault, at) => ({ ...fault, model: PAIR_MODELS[(at + 1) % PAIR_MODELS.length] ?? '' })))('$name before any content of a stream: the next provider answers', async ({ answer, model }) => {
      pair().enqueue(answer, streamed('second', ' try'));
      const got = await chat(model, { stream: true });
      expect({ status: got.status, text: got.status === 200 ? '' : got.text }).toEqual({ status: 200, text: '' });
      const { chunks, isDone } = streamOf(got.text);
      expect(contentOf(chunks)).toBe('second try');
      expect(isDone).toBe(true);
      expect(chunks.filter(({ choices }) => choices.some(({ finish_reason: reason }) => reason !== null))).toHaveLength(1);
      if (world().variant === 'A') expect(chunks.at(-1)?.x_router?.provider).toBe(header(got, 'x-router-provider'));
    });

    test('429 with Retry-After: the next provider answers, and the limited one is left alone', async () => {
      pair().enqueue({ status: 429, headers: { 'retry-after': '20' }, body: { error: { message: 'slow down' } } }, completion('from the other'), completion('again from the other'));
      const model = 'meta-llama/llama-3.1-8b-instruct';
      const first = await chat(model);
      expect([first.status, header(first, 'x-router-attempts')]).toEqual([200, '2']);
      const second = await eventually('the limited provider is passed by', async () => {
        const got = await chat(model);
        if (header(got, 'x-router-attempts') === '1') return got;
        pair().enqueue(completion('once more'));
        return undefined;
      });
      expect(header(second, 'x-router-provider')).toBe(header(first, 'x-router-provider'));
    });

    test('when every provider fails it is 503 with Retry-After and each provider’s error, and the charge is 0', async () => {
      pair().enqueue({ status: 500, body: {} }, { status: 503, headers: { 'retry-after': '7' }, body: { error: { message: 'SECRET UPSTREAM TEXT' } } });
      const got = await chat('openai/gpt-oss-120b');
      expect(got.status).toBe(503);
      const error = errorOf(got);
      expect(error).toMatchObject({ type: 'server_error', code: 'all_models_unavailable', param: null });
      expect(error.metadata?.['previous_errors']).toMatchObject([{ status: 500 }, { status: 503 }]);
      expect(problems('ErrorResponse', JSON.parse(got.text))).toEqual([]);
      expect([header(got, 'retry-after'), header(got, 'x-should-retry')]).toEqual(['7', 'true']);
      expect(got.text).not.toContain('SECRET');
      const rows = await world().ledgerOf(world().account.id, header(got, 'x-request-id'));
      expect(rows.filter(({ kind }) => kind === 'charge').map(({ amount_nano_usd: amount }) => amount)).toEqual(['0']);
    });

    test('the attempts of a failed request are listed beside its error for a client that asks', async () => {
      single().enqueue({ status: 500, body: {} });
      const got = await world().call({ headers: { 'x-router-metadata': 'enabled' }, body: { model: 'mistralai/codestral-2508', messages: HELLO } });
      expect(JSON.parse(got.text)).toMatchObject({ error: { code: 'all_models_unavailable' }, router_metadata: { attempts: [{ provider: 'mistral', status: 'failed', class: 'provider_error', provider_status: 500 }] } });
    });

    test('without a Retry-After of a provider the client is told to wait 5 s', async () => {
      single().enqueue({ status: 500, body: {} });
      const got = await chat('mistralai/mistral-medium-3.1');
      expect([got.status, header(got, 'retry-after')]).toEqual([503, '5']);
    });

    test('a refused credential of the operator is never reported as 401', async () => {
      world().upstreams.refusing.enqueue({ status: 401, body: { error: { message: 'bad key', code: 'invalid_api_key' } } });
      expect((await chat('deepseek/deepseek-v4-flash')).status).toBe(503);
    });

    test('a provider that the account denies while its request runs is not asked', async () => {
      const account = await world().newAccount({});
      const of = (method: 'GET' | 'PUT', path: string, body?: object): Promise<Got> => send(world().gateway.baseUrl, { method, path, key: account.key, ...(body === undefined ? {} : { body }) });
      const statuses: number[] = [];
      const deny = async (): Promise<void> => {
        statuses.push((await of('PUT', '/api/policy', { deny_providers: ['openai'] })).status, (await of('GET', '/v1/models')).status);
      };
      single().enqueue({ chunks: [deny], cut: true });
      // Without the denial openai answers, as the next test shows.
      const got = await chat('mistralai/mistral-medium-3.1', { models: [PINNED] }, account);
      expect([got.status, statuses]).toEqual([503, [200, 200]]);
    });

    test('a fallback list is tried in order in variant A, and ignored in variant B', async () => {
      single().enqueue({ status: 500, body: {} });
      const got = await chat('mistralai/mistral-large-2512', { models: [PINNED] });
      if (world().variant === 'A') {
        expect([got.status, header(got, 'x-router-attempts')]).toEqual([200, '2']);
        expect(completionOf(got)).toMatchObject({ model: PINNED, x_router: { provider: 'openai', routed_from: 'mistralai/mistral-large-2512' } });
      } else expect([got.status, header(got, 'retry-after')]).toEqual([503, '5']);
    });

    test('a stream cut after content ends with one error chunk and [DONE], is charged for what was delivered, and is not retried', async () => {
      single().enqueue({ chunks: [delta('half an '), delta('answer')], cut: true });
      const asked = single().requests.length;
      const got = await chat('mistralai/mistral-medium-3-5', { stream: true });
      const { chunks, isDone } = streamOf(got.text);
      expect(isDone).toBe(true);
      expect(contentOf(chunks)).toBe('half an answer');
      const last = chunks.at(-1);
      expect(last?.error).toMatchObject({ type: 'server_error', param: null, code: 'provider_disconnected' });
      expect(last?.choices[0]?.finish_reason).toBe('error');
      expect(last?.usage?.completion_tokens).toBeGreaterThan(0);
      expect(chunks.filter(({ error }) => error !== undefined)).toHaveLength(1);
      expect(single().requests.length).toBe(asked + 1);
      const rows = await world().ledgerOf(world().account.id, header(got, 'x-request-id'));
      expect(rows.filter(({ kind }) => kind === 'charge')).toHaveLength(1);
    });

    test('of two choices, one that had ended keeps its end when the stream is cut, and the other gets the error', async () => {
      const part = (index: number, text: string, finish: string | null = null): string => sse({ choices: [{ index, delta: text === '' ? {} : { content: text }, finish_reason: finish }] });
      single().enqueue({ chunks: [part(0, 'one'), part(1, 'tw'), part(0, '', 'length'), part(1, 'o')], cut: true });
      const got = await chat('mistralai/mistral-medium-3-5', { stream: true, n: 2 });
      const { chunks, isDone } = streamOf(got.text);
      expect(isDone).toBe(true);
      expect(chunks.flatMap(({ choices }) => choices.flatMap(({ index, finish_reason: reason }) => (typeof reason === 'string' ? [[index, reason]] : [])))).toEqual([[0, 'length'], [1, 'error']]);
      expect(chunks.at(-1)?.error?.code).toBe('provider_disconnected');
    });

    test('an error event after content ends the stream in the same way, without the provider’s words', async () => {
      single().enqueue({ chunks: [delta('some text'), sse({ error: { message: 'SECRET UPSTREAM TEXT', code: 500 } })] });
      const got = await chat('mistralai/devstral-2512', { stream: true });
      const { chunks, isDone } = streamOf(got.text);
      expect([isDone, contentOf(chunks)]).toEqual([true, 'some text']);
      expect(chunks.at(-1)?.error?.code).toMatch(/^provider_/);
      expect(got.text).not.toContain('SECRET');
    });

    test('a content policy that stops a stream after content is its finish reason, and what was delivered is charged', async () => {
      single().enqueue({ chunks: [delta('half an '), delta('answer'), sse({ error: { message: 'SECRET UPSTREAM TEXT', code: 'content_filter' } })] });
      const got = await chat('mistralai/devstral-2512', { stream: true });
      const { chunks, isDone } = streamOf(got.text);
      expect([isDone, contentOf(chunks)]).toEqual([true, 'half an answer']);
      expect(chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason: reason }) => reason ?? []))).toEqual(['content_filter']);
      expect(chunks.filter(({ error }) => error !== undefined)).toEqual([]);
      expect(chunks.at(-1)?.usage?.completion_tokens).toBeGreaterThan(0);
      if (world().variant === 'A') expect(chunks.at(-1)?.x_router?.provider).toBe('mistral');
      expect(got.text).not.toContain('SECRET');
      const rows = await world().ledgerOf(world().account.id, header(got, 'x-request-id'));
      expect(rows.filter(({ kind }) => kind === 'charge')).toHaveLength(1);
    });

    test('a stream that stops without an end is not reported as complete', async () => {
      single().enqueue({ chunks: [delta('and then')] });
      const { chunks, isDone } = streamOf((await chat('mistralai/magistral-medium-2509', { stream: true })).text);
      expect(isDone).toBe(true);
      expect(chunks.at(-1)?.error?.code).toBe('provider_disconnected');
    });

    test('a client that leaves cancels the provider, and pays for what was generated', async () => {
      let release: () => void = () => undefined;
      const wait = new Promise<void>((resolve) => (release = resolve));
      single().enqueue({ chunks: [delta('a first piece'), () => wait], hang: true });
      const abort = new AbortController();
      const response = await post(world().account.key, { model: 'mistralai/ministral-14b-2512', messages: HELLO, stream: true }, abort.signal);
      await response.body?.getReader().read();
      const upstream = single().requests.at(-1);
      abort.abort();
      await eventually('the provider sees the connection break', () => (upstream?.wasAborted() === true ? true : undefined));
      release();
      const rows = await world().ledgerOf(world().account.id, response.headers.get('x-request-id') ?? '');
      const charges = rows.filter(({ kind }) => kind === 'charge');
      expect(charges).toHaveLength(1);
      expect(rows.find(({ kind }) => kind === 'attempt')?.flags).toContain('estimated');
    });

    test('a client that leaves a stream before its first byte cancels the provider, too, and pays for the prompt only', async () => {
      const account = await world().newAccount({ cost_cap_usd: '1', cost_cap_period: 'total' });
      single().enqueue({ hang: true });
      const asked = single().requests.length;
      const abort = new AbortController();
      const going = post(account.key, { model: 'mistralai/mistral-small-3.2-24b-instruct', messages: HELLO, stream: true }, abort.signal);
      going.catch(() => undefined);
      const upstream = await eventually('the provider is asked', () => single().requests[asked]);
      abort.abort();
      await eventually('the provider sees the connection break', () => (upstream.wasAborted() ? true : undefined));
      const rows = await world().ledgerOf(account.id, String(upstream.headers['x-request-id']).replace(/\/1$/, ''));
      expect(rows.map(({ kind, source, flags }) => [kind, source, flags.includes('estimated')])).toEqual([['attempt', 'estimated', true], ['charge', 'estimated', false]]);
      const [booked = 0n, charged] = rows.map(({ amount_nano_usd: amount }) => BigInt(amount));
      expect(booked).toBeGreaterThan(0n);
      expect(charged).toBe(booked);
      const quota = await eventually('the hold has ended', async () => {
        const told = JSON.parse((await world().admin('GET', `/admin/quota?account=${account.id}`)).text) as { settled_nano_usd: string; reserved_nano_usd: string };
        return told.reserved_nano_usd === '0' && told.settled_nano_usd !== '0' ? told : undefined;
      });
      expect(quota.settled_nano_usd).toBe(String(booked));
    });

    test('a client that leaves a whole answer pays for it, since the provider generates it anyway', async () => {
      const account = await world().newAccount({});
      let release: () => void = () => undefined;
      const wait = new Promise<void>((resolve) => (release = resolve));
      const asked = single().requests.length;
      single().enqueue({ headers: { 'content-type': 'application/json' }, chunks: [() => wait, JSON.stringify(completion('made in vain').body)] });
      const abort = new AbortController();
      const going = post(account.key, { model: 'mistralai/mistral-small-3.2-24b-instruct', messages: HELLO }, abort.signal);
      going.catch(() => undefined);
      await eventually('the provider is asked', () => single().requests[asked]);
      abort.abort();
      release();
      await eventually('the charge is booked', async () => {
        const { rows } = JSON.parse((await world().admin('GET', `/admin/ledger?account=${account.id}`)).text) as { rows: { kind: string; source: string }[] };
        return rows.some(({ kind, source }) => kind === 'charge' && source === 'provider') ? true : undefined;
      });
    });

    test('when a provider hangs before its first byte the client gets a comment, and then the next provider is asked', async () => {
      const got = await slow;
      if (got === undefined) throw new Error('expected the request of the first test');
      if (world().variant === 'A') {
        expect(got.status).toBe(200);
        const { chunks, isDone } = streamOf(got.text);
        expect([contentOf(chunks), isDone]).toEqual([GREETING, true]);
        expect(chunks.at(-1)?.x_router?.provider).toBe('openai');
      } else if (got.status === 200) {
        // The headers were sent with the heartbeat, so the refusal is a chunk.
        const { comments, chunks, isDone } = streamOf(got.text);
        expect(comments).toEqual([': keep-alive']);
        expect([chunks.at(-1)?.error?.code, isDone]).toEqual(['all_models_unavailable', true]);
      } else expect([got.status, errorOf(got).code]).toEqual([503, 'all_models_unavailable']);
    });
  });
}
