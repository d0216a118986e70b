/** Answers that are not streamed. */
import { describe, expect, test } from '@jest/globals';
import { completionOf, header, type CompletionBody } from './http.js';
import { problems } from './schemas.js';
import { GREETING, TIME_CALL, USAGE, WEATHER_CALL } from './upstreams.js';
import { HELLO, PINNED, type World } from './world.js';

export const WEATHER_TOOL = { type: 'function', function: { name: 'get_weather', description: 'Weather of a city', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } } };
export const TIME_TOOL = { type: 'function', function: { name: 'get_time', parameters: { type: 'object', properties: { zone: { type: 'string' } } } } };
const PIXEL = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

interface Forwarded {
  readonly model?: string;
  readonly messages?: unknown;
  readonly [field: string]: unknown;
}

export function describeCompletions(world: () => World): void {
  const answer = async (body: object): Promise<CompletionBody> => {
    const got = await world().chat(body);
    expect({ status: got.status, text: got.status === 200 ? '' : got.text }).toEqual({ status: 200, text: '' });
    const completion = completionOf(got);
    expect(problems('CreateChatCompletionResponse', completion)).toEqual([]);
    return completion;
  };
  const forwarded = (): Forwarded => (world().upstreams.openai.getLastRequest()?.body ?? {}) as unknown as Forwarded;

  describe('completions', () => {
    test('answer a model by name in the common format, with their id as the request id', async () => {
      const got = await world().chat({ model: PINNED, messages: HELLO });
      const body = completionOf(got);
      expect(body.id).toMatch(/^chatcmpl-[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(header(got, 'x-request-id')).toBe(body.id);
      expect(header(got, 'content-type')).toMatch(/^application\/json/);
      expect(body).toMatchObject({ object: 'chat.completion', model: PINNED, usage: USAGE });
      expect(body.choices).toEqual([{ index: 0, message: { role: 'assistant', content: GREETING, refusal: null }, logprobs: null, finish_reason: 'stop' }]);
      expect(Number.isInteger(body.created) && Math.abs(body.created - Date.now() / 1_000) < 120).toBe(true);
      expect(problems('CreateChatCompletionResponse', body)).toEqual([]);
    });

    test('give provider, cost and savings in headers, and in x_router in variant A only', async () => {
      const got = await world().chat({ model: PINNED, messages: HELLO });
      expect(header(got, 'x-router-provider')).toBe('openai');
      expect(header(got, 'x-router-cost')).toMatch(/^\d+\.\d{9}$/);
      expect(header(got, 'x-router-savings')).toMatch(/^\d+\.\d{9}$/);
      expect(header(got, 'x-router-cost-basis')).toBe('final');
      const router = completionOf(got).x_router;
      if (world().variant === 'B') expect(router).toBeUndefined();
      else expect(Object.keys(router ?? {}).sort()).toEqual(['cost_usd', 'provider', 'routed_from', 'savings_usd']);
    });

    test.each(['auto', 'router-auto'])('route %s to a listed model and name it', async (model) => {
      const got = await world().chat({ model, messages: HELLO });
      expect(got.status).toBe(200);
      const body = completionOf(got);
      const listed = (JSON.parse((await world().call({ method: 'GET', path: '/v1/models' })).text) as { data: { id: string }[] }).data.map(({ id }) => id);
      expect(listed).toContain(body.model);
      if (world().variant === 'A') expect(body.x_router).toMatchObject({ routed_from: model, provider: header(got, 'x-router-provider') });
    });

    test('accept a model id without its maker if it is unique', async () => {
      expect((await answer({ model: 'gpt-4o-mini', messages: HELLO })).model).toBe(PINNED);
    });

    test('forward a conversation of several turns unchanged', async () => {
      const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'hello' }, { role: 'assistant', content: 'Hi.' }, { role: 'user', content: [{ type: 'text', text: 'hello again' }] }];
      await answer({ model: PINNED, messages });
      expect(forwarded().messages).toEqual(messages);
    });

    test('return tool calls with content null, and accept their results', async () => {
      const asked = await answer({ model: PINNED, tools: [WEATHER_TOOL, TIME_TOOL], messages: [{ role: 'user', content: 'two tools' }] });
      const [choice] = asked.choices;
      expect(choice?.finish_reason).toBe('tool_calls');
      expect(choice?.message.content).toBeNull();
      expect(choice?.message.tool_calls).toEqual([WEATHER_CALL, TIME_CALL].map(({ id, name, arguments: args }) => ({ id, type: 'function', function: { name, arguments: args } })));
      const told = await answer({
        model: PINNED,
        tools: [WEATHER_TOOL, TIME_TOOL],
        messages: [{ role: 'user', content: 'two tools' }, choice?.message, { role: 'tool', tool_call_id: WEATHER_CALL.id, content: '{"c":4}' }, { role: 'tool', tool_call_id: TIME_CALL.id, content: '12:00' }],
      });
      expect(told.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'It is 4 °C in Oslo.' } });
    });

    test.each(['none', 'auto', 'required', { type: 'function', function: { name: 'get_weather' } }])('forward tool_choice %j', async (choice) => {
      await answer({ model: PINNED, tools: [WEATHER_TOOL], tool_choice: choice, parallel_tool_calls: false, messages: HELLO });
      expect(forwarded()).toMatchObject({ tool_choice: choice, parallel_tool_calls: false });
    });

    test('forward images to a model with vision', async () => {
      const messages = [{ role: 'user', content: [{ type: 'text', text: 'picture' }, { type: 'image_url', image_url: { url: PIXEL, detail: 'low' } }] }];
      expect((await answer({ model: PINNED, messages })).choices[0]?.message.content).toBe('A cat.');
      expect(forwarded().messages).toEqual(messages);
    });

    test.each([{ type: 'json_object' }, { type: 'json_schema', json_schema: { name: 'weather', schema: { type: 'object', properties: { city: { type: 'string' } } } } }])('forward response_format $type, and return the JSON', async (format) => {
      const body = await answer({ model: PINNED, response_format: format, messages: [{ role: 'user', content: 'as json' }] });
      expect(JSON.parse(body.choices[0]?.message.content ?? '')).toEqual({ city: 'Oslo', celsius: 4 });
      expect(forwarded()['response_format']).toEqual(format);
    });

    test('forward sampling parameters exactly, and send no default of their own', async () => {
      const asked = { temperature: 0.25, top_p: 0.5, presence_penalty: -1, frequency_penalty: 1.5, stop: ['END', 'FIN'], seed: 7, user: 'u', logit_bias: { '50256': -100 }, max_tokens: 33 };
      await answer({ model: PINNED, messages: HELLO, ...asked });
      const { max_tokens: limit, ...sampling } = asked;
      expect(forwarded()).toMatchObject(sampling);
      expect(forwarded()['max_tokens'] ?? forwarded()['max_completion_tokens']).toBe(limit);
      await answer({ model: PINNED, messages: HELLO });
      expect(forwarded()['temperature']).toBeUndefined();
    });

    test('accept max_completion_tokens as the newer name', async () => {
      await answer({ model: PINNED, messages: HELLO, max_completion_tokens: 44 });
      expect(forwarded()['max_tokens'] ?? forwarded()['max_completion_tokens']).toBe(44);
    });

    test('report an answer cut by its limit as length', async () => {
      expect((await answer({ model: PINNED, max_tokens: 3, messages: [{ role: 'user', content: 'cut short' }] })).choices[0]?.finish_reason).toBe('length');
    });

    test('return every choice that n asks for', async () => {
      const body = await answer({ model: 'simulator/fast', n: 3, messages: HELLO });
      expect(body.choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    });

    test('stop before a stop sequence', async () => {
      const body = await answer({ model: 'simulator/fast', stop: 'simulator', messages: HELLO });
      expect(body.choices[0]?.message.content).not.toContain('simulator');
    });

    test('treat null as absent for every optional field', async () => {
      const nulls = Object.fromEntries(['temperature', 'max_tokens', 'stream', 'stream_options', 'top_p', 'stop', 'n', 'seed', 'tools', 'tool_choice', 'response_format', 'data_collection', 'zdr', 'user', 'plugins', 'models'].map((name) => [name, null]));
      await answer({ model: PINNED, messages: HELLO, ...nulls });
    });

    test('ignore unknown fields, do not forward them, and name them in a header', async () => {
      const got = await world().chat({ model: PINNED, messages: HELLO, frobnicate: 1, store: true });
      expect(got.status).toBe(200);
      expect(header(got, 'x-router-ignored-params').split(',').sort()).toEqual(['frobnicate', 'store']);
      expect(forwarded()['frobnicate']).toBeUndefined();
    });

    test('name the fields that the endpoint does not take, and do not send them', async () => {
      const got = await world().chat({ model: PINNED, messages: HELLO, reasoning_effort: 'low', service_tier: 'flex', metadata: { team: 'a' }, verbosity: 'low', temperature: 0.5 });
      expect(got.status).toBe(200);
      expect(header(got, 'x-router-ignored-params').split(',').sort()).toEqual(['metadata', 'reasoning_effort', 'service_tier', 'verbosity']);
      expect([forwarded()['reasoning_effort'], forwarded()['metadata'], forwarded()['verbosity'], forwarded()['temperature']]).toEqual([undefined, undefined, undefined, 0.5]);
    });

    test('have router_metadata only if a client asks for it', async () => {
      const asked = await world().chat({ model: PINNED, messages: HELLO }, { headers: { 'x-router-metadata': 'enabled' } });
      expect(JSON.parse(asked.text)).toMatchObject({ router_metadata: { attempts: [{ provider: 'openai' }] } });
      expect((await world().chat({ model: PINNED, messages: HELLO })).text).not.toContain('router_metadata');
    });

    test('never send the client’s credential to a provider', () => {
      const [last] = world().upstreams.openai.getRequests().slice(-1);
      expect(JSON.stringify(last)).not.toContain(world().account.key);
    });
  });

  describe('models', () => {
    test('list the automatic model first, with exactly the fields of the variant', async () => {
      const got = await world().call({ method: 'GET', path: '/v1/models' });
      const list = JSON.parse(got.text) as { object: string; data: Record<string, unknown>[] };
      expect(got.status).toBe(200);
      expect(problems('ListModelsResponse', list)).toEqual([]);
      const isA = world().variant === 'A';
      expect(list.data[0]).toMatchObject({ id: isA ? 'auto' : 'router-auto', object: 'model' });
      for (const record of list.data) {
        expect(Object.keys(record).sort()).toEqual(isA ? ['id', 'object', 'owned_by'] : ['id', 'object', 'owned_by', 'parent', 'permission', 'root']);
        if (!isA) expect(record).toMatchObject({ permission: [], root: record['id'], parent: null });
      }
      expect(list.data.map(({ id }) => id)).toContain(PINNED);
    });

    test('can be read one by one, by ids with a slash', async () => {
      expect(JSON.parse((await world().call({ method: 'GET', path: `/v1/models/${PINNED}` })).text)).toMatchObject({ id: PINNED, object: 'model', owned_by: 'openai' });
    });

    test('have prices only if details are asked for', async () => {
      const { data } = JSON.parse((await world().call({ method: 'GET', path: '/v1/models?detail=full' })).text) as { data: Record<string, unknown>[] };
      expect(Object.keys(data.find(({ id }) => id === PINNED) ?? {}).length).toBeGreaterThan(6);
    });

    test('have prices and context also under OpenRouter’s names and units', async () => {
      interface Detailed {
        readonly context_window?: number;
        readonly context_length: unknown;
        readonly pricing: Readonly<Record<string, unknown>>;
      }
      const read = async (path: string): Promise<Detailed & { readonly data: readonly Detailed[] }> => JSON.parse((await world().call({ method: 'GET', path: `/v1/models${path}?detail=full` })).text) as Detailed & { readonly data: readonly Detailed[] };
      const [auto, ...models] = (await read('')).data;
      // The catalog's prices: 0.15 and 0.6 dollars for a million tokens.
      expect(await read(`/${PINNED}`)).toMatchObject({ context_length: 128_000, pricing: { input: 0.15, output: 0.6, prompt: '0.00000015', completion: '0.0000006', input_cache_read: '0.000000075', request: '0' } });
      for (const { pricing, context_length: length, context_window: window } of models) {
        expect(length).toBe(window);
        expect([pricing['prompt'], pricing['completion']].map((price) => Number(price) * 1e6)).toEqual([pricing['input'], pricing['output']].map((price) => expect.closeTo(Number(price), 9)));
      }
      expect(auto).toMatchObject({ pricing: { prompt: '-1', completion: '-1' }, context_length: Math.max(...models.map(({ context_length: length }) => Number(length))) });
      expect(await read('/auto')).toEqual(auto);
    });
  });
}
