/** One client block, run once for each provider wire: what a client asks and reads is the same, whatever the provider speaks. */
import { describe, expect, test } from '@jest/globals';
import { admin, ledgerOf } from '../harness/books.js';
import { sse, type FakeProvider, type ScriptedAnswer } from '@signalbox/testkit/fake-provider';
import { TIME_TOOL, WEATHER_TOOL } from './completions-suite.js';
import { eventually } from './eventually.js';
import { completionOf, contentOf, errorOf, header, streamOf, type ChunkBody, type CompletionBody, type Got, type ToolCallBody } from './http.js';
import { problems } from './schemas.js';
import { GREETING, TIME_CALL, USAGE, WEATHER_CALL } from './upstreams.js';
import { UPSTREAM_WORDS, type Wire } from './wires.js';
import { IMAGE_ANSWER, JSON_ANSWER, PIXEL, RESULT_ANSWER, type WiresWorld } from './wires-world.js';
import { HELLO } from './world.js';

const FALLBACK = { model: 'simulator/fast', provider: 'simulator' } as const;
const TOOLS = [WEATHER_TOOL, TIME_TOOL];
const CALLS = [WEATHER_CALL, TIME_CALL];
const SCHEMA_FORMAT = { type: 'json_schema', json_schema: { name: 'weather', schema: { type: 'object', properties: { city: { type: 'string' }, celsius: { type: 'number' } }, required: ['city', 'celsius'], additionalProperties: false } } };
const READS_CACHE_KEYS = ['openai', 'azure-openai'];
const READS_CACHE_MARKS = ['anthropic', 'amazon-bedrock'];
const ask = (content: unknown): object[] => [{ role: 'user', content }];

interface Streamed {
  readonly got: Got;
  readonly chunks: readonly ChunkBody[];
  readonly calls: readonly ToolCallBody[];
  readonly reasons: readonly string[];
}

/** Calls as a client puts them together by index. */
function gatherCalls(chunks: readonly ChunkBody[]): readonly ToolCallBody[] {
  const calls: { id: string; type: string; function: { name: string; arguments: string } }[] = [];
  for (const { choices } of chunks) {
    for (const { delta } of choices) {
      for (const part of delta.tool_calls ?? []) {
        const call = (calls[part.index ?? -1] ??= { id: '', type: '', function: { name: '', arguments: '' } });
        call.id += part.id ?? '';
        call.type ||= part.type ?? '';
        call.function.name += part.function?.name ?? '';
        call.function.arguments += part.function?.arguments ?? '';
      }
    }
  }
  return calls;
}

export function describeWire(wire: Wire, world: () => WiresWorld): void {
  const [model] = wire.models;
  const seeing = wire.seeing ?? model;
  const door = (): FakeProvider => world().door(wire.provider);
  /** Only this wire's provider, and for what fails the simulator. */
  const provider = { only: [wire.provider, FALLBACK.provider] };
  const chat = (body: object): Promise<Got> => world().chat({ model, messages: HELLO, provider, ...body });
  const plain = async (body: object): Promise<CompletionBody> => {
    const got = await chat(body);
    expect({ status: got.status, text: got.status === 200 ? '' : got.text }).toEqual({ status: 200, text: '' });
    expect([header(got, 'x-router-provider'), header(got, 'x-router-attempts') || '1']).toEqual([wire.provider, '1']);
    const completion = completionOf(got);
    expect(problems('CreateChatCompletionResponse', completion)).toEqual([]);
    return completion;
  };
  const stream = async (body: object): Promise<Streamed> => {
    const got = await chat({ stream: true, stream_options: { include_usage: true }, ...body });
    expect({ status: got.status, text: got.status === 200 ? '' : got.text }).toEqual({ status: 200, text: '' });
    expect(header(got, 'x-router-provider')).toBe(wire.provider);
    const { chunks, isDone } = streamOf(got.text);
    expect(isDone).toBe(true);
    for (const chunk of chunks) expect(problems('CreateChatCompletionStreamResponse', chunk)).toEqual([]);
    const reasons = chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason: reason }) => (reason === null ? [] : [reason])));
    return { got, chunks, calls: gatherCalls(chunks), reasons };
  };
  const expectCalls = (calls: readonly ToolCallBody[] | undefined, expected: readonly { readonly name: string; readonly arguments: string }[]): void => {
    expect((calls ?? []).map((call) => [call.type, call.function?.name, JSON.parse(call.function?.arguments ?? '') as unknown])).toEqual(expected.map(({ name, arguments: text }) => ['function', name, JSON.parse(text) as unknown]));
    const ids = (calls ?? []).map(({ id }) => id ?? '');
    expect(ids.every((id) => id !== '') && new Set(ids).size === ids.length).toBe(true);
  };
  const expectUsage = (usage: CompletionBody['usage'] | null | undefined): void => {
    if (wire.isUncounted !== true) expect(usage).toMatchObject(USAGE);
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? NaN) + (usage?.completion_tokens ?? NaN));
  };
  const asked = (): string => door().requests.at(-1)?.body ?? '';

  describe(`the ${wire.name} wire`, () => {
    test('plain: text, finish and usage', async () => {
      const body = await plain({});
      expect(body).toMatchObject({ object: 'chat.completion', model, choices: [{ index: 0, message: { role: 'assistant', content: GREETING }, finish_reason: 'stop' }] });
      expectUsage(body.usage);
      expect(door().requests.at(-1)?.path.startsWith(wire.path)).toBe(true);
    });

    test('stream: the same text in pieces, one finish, usage last', async () => {
      const { chunks, reasons } = await stream({});
      expect(contentOf(chunks)).toBe(GREETING);
      expect(reasons).toEqual(['stop']);
      expect(chunks.filter(({ choices }) => choices.some(({ delta }) => delta.role !== undefined))).toHaveLength(1);
      expect(chunks.at(-1)?.choices).toEqual([]);
      expectUsage(chunks.at(-1)?.usage);
    });

    test('a tool call, plain and streamed', async () => {
      const options = { tools: [WEATHER_TOOL], messages: ask('Weather in Oslo?') };
      const { choices } = await plain(options);
      expect([choices[0]?.finish_reason, choices[0]?.message.content]).toEqual(['tool_calls', null]);
      expectCalls(choices[0]?.message.tool_calls, [WEATHER_CALL]);
      const { calls, reasons } = await stream(options);
      expect(reasons).toEqual(['tool_calls']);
      expectCalls(calls, [WEATHER_CALL]);
    });

    test('parallel tool calls, plain and streamed: numbered from 0 without gaps', async () => {
      const options = { tools: TOOLS, messages: ask('two tools') };
      const { choices } = await plain(options);
      expect(choices[0]?.finish_reason).toBe('tool_calls');
      expectCalls(choices[0]?.message.tool_calls, CALLS);
      const { calls, reasons } = await stream(options);
      expect(reasons).toEqual(['tool_calls']);
      expectCalls(calls, CALLS);
    });

    test('a number beyond 2^53 in a tool is sent with every digit, and wishes for the cache only where they are read', async () => {
      const pick = { type: 'function', function: { name: 'pick', parameters: { type: 'object', properties: { id: { type: 'integer', enum: ['$ID'] } }, required: ['id'] } } };
      const text = JSON.stringify({ model, provider, messages: HELLO, tools: [pick], prompt_cache_key: 'agent-7', cache_control: { type: 'ephemeral' } });
      const got = await world().chat(Buffer.from(text.replace('"$ID"', '9007199254740993')));
      expect([got.status, header(got, 'x-router-provider'), header(got, 'x-router-ignored-params')]).toEqual([200, wire.provider, '']);
      expect(asked()).toContain('[9007199254740993]');
      expect([asked().includes('"prompt_cache_key":"agent-7"'), /"cache_control"|"cachePoint"/.test(asked())]).toEqual([READS_CACHE_KEYS.includes(wire.provider), READS_CACHE_MARKS.includes(wire.provider)]);
    });

    test('tool results are sent back', async () => {
      const { choices } = await plain({ tools: TOOLS, messages: ask('two tools') });
      const message = choices[0]?.message;
      const results = (message?.tool_calls ?? []).map(({ id }, at) => ({ role: 'tool', tool_call_id: id, content: at === 0 ? '{"celsius":4}' : 'noon' }));
      const messages = [...ask('two tools'), message, ...results];
      const { choices: told } = await plain({ tools: TOOLS, messages });
      expect(told[0]).toMatchObject({ finish_reason: 'stop', message: { content: RESULT_ANSWER } });
      expect(asked()).toContain('celsius');
      expect(asked()).toContain('noon');
      expect(contentOf((await stream({ tools: TOOLS, messages })).chunks)).toBe(RESULT_ANSWER);
    });

    test.each([SCHEMA_FORMAT, { type: 'json_object' }])('JSON by $type, plain and streamed: only content, no tool call of ours', async (format) => {
      const options = { response_format: format, messages: ask('Oslo as json') };
      const { choices } = await plain(options);
      expect(choices[0]).toMatchObject({ finish_reason: 'stop' });
      expect(choices[0]?.message.tool_calls).toBeUndefined();
      expect(JSON.parse(choices[0]?.message.content ?? '')).toEqual(JSON.parse(JSON_ANSWER));
      const { chunks, calls, reasons } = await stream(options);
      expect([calls, reasons]).toEqual([[], ['stop']]);
      expect(JSON.parse(contentOf(chunks))).toEqual(JSON.parse(JSON_ANSWER));
    });

    const picture = (url: string): object => ({ model: seeing, messages: ask([{ type: 'text', text: 'picture' }, { type: 'image_url', image_url: { url } }]) });

    test('an image in the message', async () => {
      const { choices } = await plain(picture(PIXEL.dataUrl));
      expect(choices[0]?.message.content).toBe(IMAGE_ANSWER);
      expect(asked()).toContain(PIXEL.base64);
    });

    if (wire.takesUrls) {
      test('an image by URL is sent as a URL', async () => {
        const url = 'https://images.example.com/pixel.png';
        const { choices } = await plain(picture(url));
        expect(choices[0]?.message.content).toBe(IMAGE_ANSWER);
        expect(asked()).toContain(url);
      });
    } else {
      test('an image at a URL that must not be fetched is a 400 that names the part, and no provider is asked', async () => {
        const before = door().requests.length;
        const got = await chat(picture('https://127.0.0.1/pixel.png'));
        expect([got.status, errorOf(got).param]).toEqual([400, 'messages.[0].content.[1].image_url.url']);
        expect(door().requests.length).toBe(before);
      });
    }

    describe('faults', () => {
      const streamed = (chunks: ScriptedAnswer['chunks'], more: Partial<ScriptedAnswer> = {}): ScriptedAnswer => ({ headers: { 'content-type': wire.streamType }, chunks: chunks ?? [], ...more });
      const html: ScriptedAnswer = { body: `<html><body>${UPSTREAM_WORDS}</body></html>` };
      const faults: readonly { readonly name: string; readonly whole?: ScriptedAnswer; readonly isReset?: boolean; readonly inStream: ScriptedAnswer }[] = [
        { name: '500', whole: wire.refusal(500), inStream: wire.refusal(500) },
        { name: '529', whole: wire.refusal(529), inStream: wire.refusal(529) },
        { name: 'a reset', whole: { drop: true }, isReset: true, inStream: streamed(wire.opening, { cut: true }) },
        { name: 'a page of HTML', whole: html, inStream: html },
        { name: 'nothing', whole: { headers: { 'content-type': 'application/json' }, chunks: [] }, inStream: streamed([]) },
        { name: 'garbage', whole: { headers: { 'content-type': 'application/json' }, chunks: ['{"id":"x","cho'] }, inStream: streamed([...wire.opening, wire.garbage]) },
        { name: 'an error event first', inStream: streamed([...wire.opening, wire.error]) },
        { name: 'a silent end before a word', inStream: streamed(wire.opening) },
      ];

      const expectFallback = (got: Got): void => {
        expect({ status: got.status, provider: header(got, 'x-router-provider') }).toEqual({ status: 200, provider: FALLBACK.provider });
        expect(got.text).not.toContain(UPSTREAM_WORDS);
      };
      /** The same endpoint again, twice: a fault is no reason to leave it alone, more failures than answers would be. */
      const expectRecovered = async (of: string): Promise<void> => {
        for (const isStream of [false, true]) {
          const got = await chat({ model: of, stream: isStream });
          expect([got.status, header(got, 'x-router-provider')]).toEqual([200, wire.provider]);
        }
      };

      test.each(faults.map((fault, at) => ({ ...fault, of: wire.models[at % wire.models.length] ?? model })))('$name: another provider answers, and the client sees nothing of it', async ({ whole, isReset, inStream, of }) => {
        // The loss of a kept connection before the answer says only that this one was closed: the provider is asked again on another.
        const enqueue = (answer: ScriptedAnswer): void => door().enqueue(...(isReset === true ? [answer, answer] : [answer]));
        if (whole !== undefined) {
          enqueue(whole);
          expectFallback(await chat({ model: of, models: [FALLBACK.model] }));
          door().clear();
          await expectRecovered(of);
        }
        enqueue(inStream);
        const got = await chat({ model: of, models: [FALLBACK.model], stream: true });
        expectFallback(got);
        door().clear();
        const { chunks, isDone } = streamOf(got.text);
        expect([isDone, chunks.filter(({ choices }) => choices.some(({ finish_reason: reason }) => reason !== null)).length]).toEqual([true, 1]);
        expect(chunks.every(({ model: told }) => told === FALLBACK.model)).toBe(true);
        await expectRecovered(of);
      });

      test.each([
        ['a cut', streamed([...wire.opening, wire.text('half an '), wire.text('answer')], { cut: true })],
        ['a silent end', streamed([...wire.opening, wire.text('half an '), wire.text('answer')])],
        ['an error event', streamed([...wire.opening, wire.text('half an '), wire.text('answer'), wire.error])],
        ['garbage', streamed([...wire.opening, wire.text('half an '), wire.text('answer'), wire.garbage])],
      ] as const)('%s after content: one error chunk, no second attempt', async (_name, answer) => {
        const of = wire.models[1];
        const before = door().requests.length;
        door().enqueue(answer);
        const got = await chat({ model: of, models: [FALLBACK.model], stream: true });
        const { chunks, isDone } = streamOf(got.text);
        expect([got.status, isDone, contentOf(chunks)]).toEqual([200, true, 'half an answer']);
        expect(chunks.filter(({ error }) => error !== undefined)).toHaveLength(1);
        const last = chunks.at(-1);
        expect(last?.error?.code).toMatch(/^provider_/);
        expect(last?.choices[0]?.finish_reason).toBe('error');
        expect(last?.usage?.completion_tokens).toBeGreaterThan(0);
        expect(got.text).not.toContain(UPSTREAM_WORDS);
        expect(door().requests.length).toBe(before + 1);
        await expectRecovered(of);
      });

      /** A provider that needs no credential has one, which stands for none. */
      const hasOthers = wire.provider !== 'ollama';
      const expectOtherCredential = (got: Got): void => {
        expect({ status: got.status, provider: header(got, 'x-router-provider'), attempts: header(got, 'x-router-attempts') }).toEqual({ status: 200, provider: wire.provider, attempts: '2' });
        expect(got.text).not.toContain(UPSTREAM_WORDS);
      };

      test('429: another credential answers, else another provider; without either it is 503, never the provider’s 429', async () => {
        const [, first, second] = wire.models;
        if (hasOthers) {
          door().enqueue(wire.refusal(429));
          expectOtherCredential(await chat({ model: first, models: [FALLBACK.model], stream: true }));
          door().enqueue(wire.refusal(429));
        }
        door().enqueue(wire.refusal(429));
        expectFallback(await chat({ model: second, models: [FALLBACK.model], stream: true }));
        const hinted = { ...wire.refusal(429), headers: { ...wire.refusal(429).headers, 'retry-after': '7' } };
        door().enqueue(...(hasOthers ? [hinted, hinted] : [hinted]));
        const before = door().requests.length;
        const got = await chat({ model: model });
        expect([got.status, errorOf(got).code, door().requests.length - before]).toEqual([503, 'all_models_unavailable', hasOthers ? 2 : 1]);
        // A hint is for its credential: where others are free, nobody has to wait for as long.
        expect(header(got, 'retry-after')).toBe(hasOthers ? '5' : '7');
        expect(got.text).not.toContain(UPSTREAM_WORDS);
      });

      test('a refused credential: the next one is used at once and from then on, and no client gets 401', async () => {
        door().enqueue(wire.refusal(401));
        const got = await chat({ model: wire.models[1], models: [FALLBACK.model] });
        if (hasOthers) expectOtherCredential(got);
        else expectFallback(got);
        // A provider’s only credential cannot be taken out of use in favour of another.
        if (hasOthers) await expectRecovered(wire.models[1]);
      });
    });
  });
}

/** Sent on every wire at once, before all other tests: each takes as long as the provider has for its first byte. */
export function describeHanging(wires: readonly Wire[], world: () => WiresWorld, others: () => void): void {
  const hanging = new Map<string, Promise<Got>>();

  test('(requests to providers that hang are under way)', async () => {
    for (const { name, provider, models, thinksUnasked = false } of wires) {
      const door = world().door(provider);
      const before = door.requests.length;
      door.enqueue({ hang: true });
      const going = world().chat({ model: models[2], models: [FALLBACK.model], messages: HELLO, provider: { only: [provider, FALLBACK.provider] }, stream: true, ...(thinksUnasked ? { reasoning_effort: 'low' } : {}) });
      going.catch(() => undefined);
      hanging.set(name, going);
      await eventually(`${name} is asked`, () => (door.requests.length > before ? true : undefined));
    }
  });

  others();

  test.each(wires)('a provider that hangs on the $name wire: another one answers', async ({ name }) => {
    const got = await hanging.get(name);
    const { chunks, isDone } = streamOf(got?.text ?? '');
    expect([got?.status, isDone, chunks.at(-1)?.x_router?.provider]).toEqual([200, true, FALLBACK.provider]);
  });
}

/** The provider has the prompt and has not answered yet. */
export function describeLeaving(wires: readonly Wire[], world: () => WiresWorld): void {
  test.each(wires)('a client that leaves before an answer on the $name wire begins pays only for its prompt', async ({ provider, models }) => {
    const { gateway } = world();
    const { account, key } = await admin<{ readonly account: { readonly id: string }; readonly key: { readonly key: string } }>(gateway, '/accounts', 'POST', { name: `leaves ${provider}`, tier: 'enterprise' });
    const door = world().door(provider);
    const before = door.requests.length;
    door.enqueue({ hang: true });
    const abort = new AbortController();
    const headers = { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: models[0], messages: HELLO, provider: { only: [provider] }, stream: true });
    fetch(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', headers, body, signal: abort.signal }).catch(() => undefined);
    const asked = await eventually('the provider is asked', () => door.requests[before]);
    abort.abort();
    await eventually('the provider sees the connection break', () => (asked.wasAborted() ? true : undefined));
    const rows = await eventually('the charge is booked', async () => {
      const booked = await ledgerOf(gateway, account.id);
      return booked.some(({ kind }) => kind === 'charge') ? booked : undefined;
    });
    expect(rows.map(({ kind, source, flags }) => [kind, source, flags])).toEqual([['attempt', 'estimated', ['estimated']], ['charge', 'estimated', []]]);
    const [attempt, charge] = rows;
    expect([charge?.amount_nano_usd, charge?.tokens]).toEqual([attempt?.amount_nano_usd, attempt?.tokens]);
    // One word and the overhead of a message.
    expect(attempt?.tokens).toBeGreaterThan(0);
    expect(attempt?.tokens).toBeLessThan(64);
  });
}

/** Larger than one read, one message between services, and any piece of a text model. */
const IMAGE_BYTES = 3 * 1_048_576;

/** An image that a model draws is one event of its stream. */
export function describeDrawnImages(world: () => WiresWorld): void {
  test('an image of several megabytes in one event of a stream reaches the client whole', async () => {
    const base64 = Buffer.alloc(IMAGE_BYTES, 7).toString('base64');
    world()
      .door('google-ai-studio')
      .enqueue({
        chunks: [
          sse({ candidates: [{ content: { role: 'model', parts: [{ inlineData: { mimeType: 'image/png', data: base64 } }] }, index: 0 }] }),
          sse({ candidates: [{ content: { role: 'model', parts: [{ text: 'Here.' }] }, finishReason: 'STOP', index: 0 }], usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1_290, totalTokenCount: 1_293 } }),
        ],
      });
    const got = await world().chat({ model: 'google/gemini-3.5-flash-lite', messages: HELLO, provider: { only: ['google-ai-studio'] }, stream: true });
    expect({ status: got.status, text: got.status === 200 ? '' : got.text }).toEqual({ status: 200, text: '' });
    const { chunks, isDone } = streamOf(got.text);
    expect([isDone, contentOf(chunks), chunks.some(({ error }) => error !== undefined)]).toEqual([true, 'Here.', false]);
    expect(got.text).toContain(base64);
  });
}

/** A model that comes to its end without a word may say more when it is asked again, or mean it. */
export function describeNothingSaid(world: () => WiresWorld): void {
  const nothing = { candidates: [{ content: { role: 'model' }, finishReason: 'STOP', index: 0 }], usageMetadata: { promptTokenCount: 40, thoughtsTokenCount: 60, totalTokenCount: 100 } };

  test.each([false, true])('an answer of nothing gives way to that of another host, and is the answer where there is none, charged by its usage (streamed: %s)', async (stream) => {
    const { gateway } = world();
    const { account, key } = await admin<{ readonly account: { readonly id: string }; readonly key: { readonly key: string } }>(gateway, '/accounts', 'POST', { name: `nothing ${String(stream)}`, tier: 'enterprise' });
    const door = world().door('google-ai-studio');
    const before = door.requests.length;
    const ask = async (body: object): Promise<{ readonly status: number; readonly text: string }> => {
      door.enqueue(stream ? { chunks: [sse(nothing)] } : { body: nothing });
      const answer = await fetch(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' }, body: JSON.stringify({ model: 'google/gemini-3.5-flash-lite', messages: HELLO, stream, ...body }) });
      return { status: answer.status, text: await answer.text() };
    };
    const other = await ask({ models: [FALLBACK.model], provider: { only: ['google-ai-studio', FALLBACK.provider] } });
    const alone = await ask({ provider: { only: ['google-ai-studio'] } });
    expect([other.status, other.text.includes(`"provider":"${FALLBACK.provider}"`), alone.status, door.requests.length - before]).toEqual([200, true, 200, 2]);
    if (stream) expect([contentOf(streamOf(alone.text).chunks), streamOf(alone.text).isDone]).toEqual(['', true]);
    else expect(JSON.parse(alone.text)).toMatchObject({ choices: [{ message: { content: '' }, finish_reason: 'stop' }], usage: { prompt_tokens: 40, completion_tokens: 60 } });
    const rows = await eventually('both requests are booked', async () => {
      const booked = await ledgerOf(gateway, account.id);
      return booked.filter(({ kind }) => kind === 'attempt').length === 3 && booked.filter(({ kind }) => kind === 'charge').length === 2 ? booked : undefined;
    });
    const amounts = (of: string): readonly string[] => rows.filter(({ kind }) => kind === of).map(({ amount_nano_usd: amount }) => String(amount));
    // Each attempt costs us, and each request is charged one of its own.
    expect(amounts('attempt').filter((amount) => amounts('charge').includes(amount)).length).toBeGreaterThanOrEqual(2);
    expect(rows.filter(({ kind, tokens }) => kind === 'charge' && tokens === 100)).toHaveLength(1);
    expect(rows.filter(({ kind, tokens }) => kind === 'attempt' && tokens === 100)).toHaveLength(2);
  });
}
