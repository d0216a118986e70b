/** Every refusal that a client can provoke, one case for each row of the table of errors. */
import { describe, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { errorOf, header, send, type Got } from './http.js';
import { answerToHead, exchange, parseAnswer, requestText } from './raw-socket.js';
import { problems } from './schemas.js';
import { HELLO, PINNED, type World } from './world.js';

interface Expected {
  readonly status: number;
  readonly type?: string;
  readonly code: string | null;
  readonly param?: string | null;
}

const TOOL = { type: 'function', function: { name: 'f' } };
const INVALID = 'invalid_request_error';

/** The wrong field beside a valid model and messages, the parameter in the error, and the code. */
const BAD_FIELDS: readonly (readonly [body: Record<string, unknown>, param: string, code: string])[] = [
  [{ model: undefined }, 'model', 'missing_required_parameter'],
  [{ model: null }, 'model', 'missing_required_parameter'],
  [{ model: 5 }, 'model', 'invalid_type'],
  [{ model: '' }, 'model', 'invalid_value'],
  [{ messages: undefined }, 'messages', 'missing_required_parameter'],
  [{ messages: 'hi' }, 'messages', 'invalid_type'],
  [{ messages: [] }, 'messages', 'invalid_value'],
  [{ messages: [{ role: 'wizard', content: 'x' }] }, 'messages.[0].role', 'invalid_value'],
  [{ messages: [{ content: 'x' }] }, 'messages.[0].role', 'missing_required_parameter'],
  [{ messages: [{ role: 'user' }] }, 'messages.[0].content', 'missing_required_parameter'],
  [{ messages: [{ role: 'user', content: [{ type: 'video' }] }] }, 'messages.[0].content.[0].type', 'invalid_value'],
  [{ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x/y.png' } }] }] }, 'messages.[0].content.[0].image_url.url', 'invalid_value'],
  [{ messages: [{ role: 'assistant', content: null }] }, 'messages.[0].content', 'missing_required_parameter'],
  [{ messages: [...HELLO, { role: 'tool', tool_call_id: 'call_x', content: '1' }] }, 'messages.[1].tool_call_id', 'invalid_value'],
  [{ messages: [...HELLO, { role: 'tool', content: '1' }] }, 'messages.[1].tool_call_id', 'missing_required_parameter'],
  [{ temperature: 2.1 }, 'temperature', 'invalid_value'],
  [{ temperature: -0.1 }, 'temperature', 'invalid_value'],
  [{ temperature: '0.5' }, 'temperature', 'invalid_type'],
  [{ max_tokens: 0 }, 'max_tokens', 'invalid_value'],
  [{ max_tokens: 1.5 }, 'max_tokens', 'invalid_type'],
  [{ max_tokens: '5' }, 'max_tokens', 'invalid_type'],
  [{ stream: 'yes' }, 'stream', 'invalid_type'],
  [{ stream_options: { include_usage: true } }, 'stream_options', 'invalid_value'],
  [{ top_p: 1.01 }, 'top_p', 'invalid_value'],
  [{ presence_penalty: 2.5 }, 'presence_penalty', 'invalid_value'],
  [{ frequency_penalty: -2.5 }, 'frequency_penalty', 'invalid_value'],
  [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop', 'invalid_value'],
  [{ stop: 5 }, 'stop', 'invalid_type'],
  [{ n: 0 }, 'n', 'invalid_value'],
  [{ seed: 'x' }, 'seed', 'invalid_type'],
  [{ logprobs: 1 }, 'logprobs', 'invalid_type'],
  [{ top_logprobs: 21 }, 'top_logprobs', 'invalid_value'],
  [{ tools: Array.from({ length: 129 }, () => TOOL) }, 'tools', 'invalid_value'],
  [{ tools: [{ type: 'magic' }] }, 'tools.[0].type', 'invalid_value'],
  [{ tools: [TOOL], tool_choice: 'sometimes' }, 'tool_choice', 'invalid_value'],
  [{ tools: [TOOL], tool_choice: { type: 'function', function: { name: 'g' } } }, 'tool_choice', 'invalid_value'],
  [{ response_format: { type: 'xml' } }, 'response_format.type', 'invalid_value'],
  [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema', 'missing_required_parameter'],
  [{ data_collection: 'maybe' }, 'data_collection', 'invalid_value'],
  [{ zdr: 'true' }, 'zdr', 'invalid_type'],
];

const BAD_FIELDS_A: typeof BAD_FIELDS = [
  [{ preferred_max_latency: 0 }, 'preferred_max_latency', 'invalid_value'],
  [{ preferred_min_throughput: 'fast' }, 'preferred_min_throughput', 'invalid_type'],
  [{ min_quantization: 'int3' }, 'min_quantization', 'invalid_value'],
  [{ max_quantization: 8 }, 'max_quantization', 'invalid_type'],
  [{ min_quantization: 'fp16', max_quantization: 'int8' }, 'min_quantization', 'invalid_value'],
  [{ plugins: ['time-travel'] }, 'plugins', 'unknown_plugin'],
  [{ plugins: 'web-search' }, 'plugins', 'invalid_type'],
];

export function describeErrors(world: () => World): void {
  const expectError = (got: Got, { status, type = INVALID, code, param = null }: Expected): void => {
    expect({ status: got.status, text: got.status === status ? '' : got.text }).toEqual({ status, text: '' });
    const error = errorOf(got);
    expect(error).toMatchObject({ type, code, param });
    expect(error.message.length).toBeGreaterThan(5);
    expect(problems('ErrorResponse', JSON.parse(got.text))).toEqual([]);
    expect(header(got, 'content-type')).toMatch(/^application\/json/);
    expect(header(got, 'x-request-id')).not.toBe('');
  };
  const bad = async (body: Record<string, unknown>, param: string, code: string): Promise<void> => {
    expectError(await world().chat({ model: PINNED, messages: HELLO, ...body }), { status: 400, code, param });
  };
  const isA = (): boolean => world().variant === 'A';

  describe('bad requests', () => {
    test.each(BAD_FIELDS)('refuses %j and names %s', bad);

    test('refuses both names of the token limit together', async () => {
      const got = await world().chat({ model: PINNED, messages: HELLO, max_tokens: 5, max_completion_tokens: 5 });
      expect([got.status, errorOf(got).code]).toEqual([400, 'invalid_value']);
    });

    test('names max_tokens for an answer longer than the model writes, not the conversation', async () => {
      await bad({ max_tokens: 50_000 }, 'max_tokens', 'invalid_value');
    });

    test.each(BAD_FIELDS_A)('refuses %j in variant A, and in variant B ignores and names it', async (body, param, code) => {
      if (isA()) await bad(body, param, code);
      else {
        const got = await world().chat({ model: PINNED, messages: HELLO, ...body });
        expect(got.status).toBe(200);
        expect(header(got, 'x-router-ignored-params').split(',')).toEqual(Object.keys(body));
      }
    });

    test('refuses a known plugin that is not installed, in variant A', async () => {
      const got = await world().chat({ model: PINNED, messages: HELLO, plugins: ['gutenberg'] });
      if (isA()) expectError(got, { status: 400, code: 'plugin_unavailable', param: 'plugins' });
      else expect(got.status).toBe(200);
    });

    test.each([
      ['no JSON', '{"model":'],
      ['an array', '[]'],
      ['a bare word', 'null'],
      ['nothing at all', ''],
      ['nesting beyond 32 levels', `{"model":"${PINNED}","messages":${'['.repeat(40)}${']'.repeat(40)}}`],
      ['100,000 levels', `{"model":${'['.repeat(100_000)}`],
      ['the same key twice', `{"model":"${PINNED}","model":"auto","messages":[]}`],
      ['__proto__', `{"model":"${PINNED}","__proto__":{"x":1},"messages":[]}`],
      ['more than 100,000 values', `{"model":"${PINNED}","messages":[${'1,'.repeat(100_001)}1]}`],
      ['bytes after the object', `{"model":"${PINNED}"}x`],
    ])('refuses %s as bad JSON, code null', async (_name, body) => {
      expectError(await world().call({ body, headers: { 'content-type': 'application/json' } }), { status: 400, code: null });
    });

    test('refuses bytes that are not UTF-8', async () => {
      expectError(await world().call({ body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) }), { status: 400, code: null });
    });

    test('refuses a number that is parsed as infinity', async () => {
      expectError(await world().call({ body: `{"model":"${PINNED}","messages":[{"role":"user","content":"x"}],"temperature":1e999}` }), { status: 400, code: 'invalid_value', param: 'temperature' });
    });

    test('passes on the context error of a provider if no larger context is left', async () => {
      const got = await world().chat({ model: PINNED, messages: [{ role: 'user', content: 'context please' }] });
      expect([got.status, errorOf(got).code]).toEqual([400, 'context_length_exceeded']);
    });

    test('leaves it to the provider whether a prompt is too long, where only the estimate says so', async () => {
      const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } };
      for (const content of ['Дождливая осень. '.repeat(18_000), [{ type: 'text', text: 'Which of these pictures shows a cat?' }, ...Array.from({ length: 150 }, () => image)]]) {
        expect((await world().chat({ model: PINNED, messages: [{ role: 'user', content }] })).status).toBe(200);
      }
      const far = await world().chat({ model: PINNED, messages: [{ role: 'user', content: 'x'.repeat(3_000_000) }] });
      expect([far.status, errorOf(far).code]).toEqual([400, 'context_length_exceeded']);
    });

    test('passes on a 400 of the provider, and names the parameter', async () => {
      const got = await world().chat({ model: PINNED, messages: [{ role: 'user', content: 'bad value please' }] });
      expect([got.status, errorOf(got).param]).toEqual([400, 'response_format']);
    });
  });

  describe('authentication', () => {
    const body = { model: PINNED, messages: HELLO };
    const anonymous = (headers: Record<string, string>): Promise<Got> => send(world().gateway.baseUrl, { body, headers });
    const expect401 = (got: Got, code: string | null): void => {
      expectError(got, { status: 401, code });
      expect(header(got, 'www-authenticate')).toBe('Bearer');
    };

    test('refuses a request without a key, code null', async () => expect401(await anonymous({}), null));

    test.each(['Basic dXNlcjpwYXNz', 'Bearer', 'Bearer  ', 'Bearer sk-not-ours', `Bearer sbx_live_${'a'.repeat(36)}`, 'sbx_live_x'])('refuses the header "%s"', async (authorization) => {
      const got = await anonymous({ authorization });
      expect([got.status, header(got, 'www-authenticate')]).toEqual([401, 'Bearer']);
    });

    test('refuses a key with one character changed', async () => {
      const { key } = world().account;
      expect401(await anonymous({ authorization: `Bearer ${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}` }), 'invalid_api_key');
    });

    test('refuses two Authorization headers, even when both are right', async () => {
      const line = `Authorization: Bearer ${world().account.key}`;
      const raw = await exchange(world().gateway.baseUrl, requestText('POST', '/v1/chat/completions', [line, line, 'Content-Type: application/json'], JSON.stringify(body)));
      expect(parseAnswer(raw).status).toBe(401);
    });

    test('accepts the scheme in any case', async () => {
      expect((await anonymous({ authorization: `bearer ${world().account.key}` })).status).toBe(200);
    });

    test('names a suspended account', async () => {
      const account = await world().newAccount({});
      expect((await send(world().gateway.baseUrl, { body, key: account.key })).status).toBe(200);
      await world().admin('POST', `/admin/accounts/${account.id}/suspend`);
      const got = await eventually('the suspension is seen', async () => {
        const answer = await send(world().gateway.baseUrl, { body, key: account.key });
        return answer.status === 200 ? undefined : answer;
      });
      expect401(got, 'account_suspended');
    });

    test('happens before the body is read', async () => expect401(await send(world().gateway.baseUrl, { body: '{', headers: { 'content-type': 'text/plain' } }), null));
  });

  describe('what does not exist', () => {
    test('an unknown model is 404 and names it', async () => expectError(await world().chat({ model: 'acme/none', messages: HELLO }), { status: 404, code: 'model_not_found', param: 'model' }));

    test.each([
      ['data_collection', 'deepseek/deepseek-v4-pro', { data_collection: 'deny' }],
      ['zdr', 'openai/gpt-4o-mini', { zdr: true }],
    ])('applies %s in both variants: no provider is eligible, and the reason is given', async (reason, model, wish) => {
      const got = await world().chat({ model, messages: HELLO, ...wish });
      expectError(got, { status: 404, code: 'no_eligible_provider', param: 'model' });
      expect(errorOf(got).metadata?.['excluded_by']).toContain(reason);
    });

    test('excludes by quantization in variant A', async () => {
      const got = await world().chat({ model: 'openai/gpt-oss-20b', messages: HELLO, min_quantization: 'fp32' });
      if (isA()) expectError(got, { status: 404, code: 'no_eligible_provider', param: 'model' });
    });

    test('a name with an ending of another gateway is 404 and says what to ask for', async () => {
      const got = await world().chat({ model: `${PINNED}:nitro`, messages: HELLO });
      expectError(got, { status: 404, code: 'model_not_found', param: 'model' });
      expect(errorOf(got).message).toContain(isA() ? `ask for '${PINNED}' with` : 'GET /v1/models');
    });

    test.each(['/none', '/v2/chat/completions', '/v1/chat/completion', '/v1/%00', '/%2e%2e/etc/passwd', '/v1/chat/completions/'])('an unknown address %s is 404 in the common format', async (path) => {
      const got = await world().call({ method: 'GET', path });
      expect([404, 405]).toContain(got.status);
      expect(problems('ErrorResponse', JSON.parse(got.text))).toEqual([]);
      if (got.status === 404) expect(errorOf(got).code).toBe('unknown_url');
    });

    test.each([
      ['GET', '/v1/chat/completions'],
      ['DELETE', '/v1/models'],
      ['POST', '/v1/models'],
    ])('%s %s is 405 and names the allowed methods', async (method, path) => {
      const got = await world().call({ method, path });
      expectError(got, { status: 405, code: 'method_not_allowed' });
      expect(header(got, 'allow')).not.toBe('');
    });

    test('an unknown HTTP method is refused, and the connection closed', async () => {
      expect(parseAnswer(await exchange(world().gateway.baseUrl, requestText('BREW', '/v1/models', []))).status).toBe(400);
    });
  });

  describe('sizes and types', () => {
    test('a body above 20 MiB is 413', async () => {
      const head = requestText('POST', '/v1/chat/completions', [`Authorization: Bearer ${world().account.key}`, 'Content-Type: application/json', `Content-Length: ${20 * 1_024 * 1_024 + 1}`]);
      const { status, chunks } = await answerToHead(world().gateway.baseUrl, head);
      expect(status).toBe(413);
      expect(JSON.parse(chunks.join(''))).toMatchObject({ error: { type: INVALID, code: 'payload_too_large' } });
    });

    test('a body of 5 MB with an image is accepted', async () => {
      const url = `data:image/png;base64,${'A'.repeat(5_000_000)}`;
      expect((await world().chat({ model: PINNED, messages: [{ role: 'user', content: [{ type: 'text', text: 'picture' }, { type: 'image_url', image_url: { url } }] }] })).status).toBe(200);
    });

    test('a body without the JSON content type is 415', async () => {
      expectError(await world().call({ body: JSON.stringify({ model: PINNED, messages: HELLO }), headers: { 'content-type': 'text/plain' } }), { status: 415, code: 'unsupported_media_type' });
    });

    test('headers above 16 KiB are 431', async () => {
      const got = parseAnswer(await exchange(world().gateway.baseUrl, requestText('GET', '/v1/models', [`X-Padding: ${'x'.repeat(17_000)}`])));
      expect(got.status).toBe(431);
      expect(JSON.parse(got.chunks.join(''))).toMatchObject({ error: { code: 'headers_too_large' } });
    });
  });

  describe('money and tiers', () => {
    const body = { model: 'openai/gpt-4o', messages: HELLO, max_tokens: 100 };
    const as = async (settings: Record<string, unknown>, more: object = {}): Promise<Got> => send(world().gateway.baseUrl, { key: (await world().newAccount(settings)).key, body: { ...body, ...more } });

    test('a cost cap is 402 in variant A and 429 insufficient_quota in variant B, and must not be retried', async () => {
      const got = await as({ cost_cap_usd: '0.000001', cost_cap_period: 'month' });
      if (isA()) {
        expectError(got, { status: 402, type: 'payment_required', code: 'cost_cap_exceeded' });
        expect(errorOf(got).metadata).toMatchObject({ limit_source: 'account', limit_usd: 0.000001, spend_usd: 0 });
      } else {
        expectError(got, { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' });
        expect(Number(header(got, 'retry-after'))).toBeGreaterThan(0);
      }
      expect(header(got, 'x-should-retry')).toBe('false');
    });

    test('a cap that is never reset has a wait of one day in variant B', async () => {
      const got = await as({ cost_cap_usd: '0', cost_cap_period: 'total' });
      if (isA()) expectError(got, { status: 402, type: 'payment_required', code: 'cost_cap_exceeded' });
      else expect([got.status, header(got, 'retry-after')]).toEqual([429, '86400']);
    });

    test('an empty trial credit is 402 in variant A and 429 in variant B', async () => {
      const got = await as({ tier: 'free', trial_credit_usd: '0' });
      if (isA()) expectError(got, { status: 402, type: 'payment_required', code: 'trial_credit_exhausted' });
      else expect([got.status, errorOf(got).code]).toEqual([429, 'insufficient_quota']);
    });

    test('a used-up allotment under a hard cap is 429 insufficient_quota until the period is reset', async () => {
      const got = await as({ tier: 'team', hard_cap: true, included_tokens: '5' });
      expectError(got, { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' });
      expect(header(got, 'x-should-retry')).toBe('false');
      expect(Number(header(got, 'retry-after'))).toBeGreaterThan(0);
      // A longer wait overflows the official client's timer.
      expect(Number(header(got, 'retry-after'))).toBeLessThan(2_147_483);
    });

    test.each(['image-gen', 'pdf-reader', 'memory'])('the paid plugin %s on a free account is 403 in variant A, ignored in variant B', async (plugin) => {
      const got = await as({ tier: 'free' }, { plugins: [plugin] });
      if (isA()) {
        expectError(got, { status: 403, type: 'permission_error', code: 'PLUGIN_REQUIRES_PAID', param: 'plugins' });
        expect(errorOf(got).metadata).toMatchObject({ plugin });
      } else expect(got.status).toBe(200);
    });

    test('a key without the scope is 403 in variant A, 401 in variant B', async () => {
      const made = JSON.parse((await world().admin('POST', '/admin/keys', { account_id: world().account.id, name: 'reader', scopes: ['models:read'] })).text) as { key: { key: string } };
      const got = await send(world().gateway.baseUrl, { key: made.key.key, body });
      if (isA()) expectError(got, { status: 403, type: 'permission_error', code: 'insufficient_scope' });
      else expectError(got, { status: 401, code: 'invalid_api_key' });
      expect((await send(world().gateway.baseUrl, { method: 'GET', path: '/v1/models', key: made.key.key })).status).toBe(200);
    });
  });
}
