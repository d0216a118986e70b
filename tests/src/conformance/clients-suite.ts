/** The API through third-party clients. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { describe, expect, test } from '@jest/globals';
import { HumanMessage, ToolMessage, type AIMessageChunk } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { WEATHER_TOOL } from './completions-suite.js';
import { delta, GREETING, USAGE } from './upstreams.js';
import { HELLO, PINNED, type World } from './world.js';

const MESSAGES = HELLO.map((message) => ({ ...message }));
const WEATHER = WEATHER_TOOL as OpenAI.Chat.Completions.ChatCompletionTool;

export function describeClients(world: () => World): void {
  describe('the official client', () => {
    const client = (apiKey = world().account.key): OpenAI => new OpenAI({ baseURL: `${world().gateway.baseUrl}/v1`, apiKey, maxRetries: 0 });

    test('reads a completion, its request id and the headers', async () => {
      const { data, response, request_id: requestId } = await client().chat.completions.create({ model: PINNED, messages: MESSAGES }).withResponse();
      expect(data.choices[0]?.message.content).toBe(GREETING);
      expect(data.usage).toMatchObject(USAGE);
      expect(requestId).toBe(data.id);
      expect(response.headers.get('x-router-provider')).toBe('openai');
    });

    test('reads a stream, and its helper assembles the whole completion', async () => {
      const stream = client().chat.completions.stream({ model: PINNED, messages: MESSAGES, stream_options: { include_usage: true } });
      let text = '';
      stream.on('content', (part) => (text += part));
      const whole = await stream.finalChatCompletion();
      expect([text, whole.choices[0]?.message.content]).toEqual([GREETING, GREETING]);
      expect(whole.usage).toMatchObject(USAGE);
    });

    test('gets the usage of a stream without asking for it', async () => {
      const whole = await client().chat.completions.stream({ model: PINNED, messages: MESSAGES }).finalChatCompletion();
      expect(whole.usage).toMatchObject(USAGE);
      expect('x_router' in whole).toBe(world().variant === 'A');
    });

    test('runs tools by itself until there is an answer', async () => {
      const cities: string[] = [];
      const runner = client().chat.completions.runTools({
        model: PINNED,
        messages: [{ role: 'user', content: 'Weather in Oslo?' }],
        tools: [{ type: 'function', function: { name: 'get_weather', description: 'Weather', parameters: { type: 'object', properties: { city: { type: 'string' } } }, parse: (text: string) => JSON.parse(text) as { city: string }, function: ({ city }: { city: string }) => { cities.push(city); return '4'; } } }],
      });
      expect(await runner.finalContent()).toBe('It is 4 °C in Oslo.');
      expect(cities).toEqual(['Oslo']);
    });

    test.each([false, true])('reads an answer by the schema that it asked for (streaming: %s)', async (isStream) => {
      const format = { type: 'json_schema' as const, json_schema: { name: 'weather', strict: true, schema: { type: 'object', properties: { city: { type: 'string' }, celsius: { type: 'integer' } }, required: ['city', 'celsius'], additionalProperties: false } } };
      const body = { model: PINNED, messages: [{ role: 'user' as const, content: 'Oslo as json' }], response_format: format };
      const whole = isStream ? await client().chat.completions.stream(body).finalChatCompletion() : await client().chat.completions.parse(body);
      expect(JSON.parse(whole.choices[0]?.message.content ?? '')).toEqual({ city: 'Oslo', celsius: 4 });
    });

    test('is told that it stopped reading its stream', async () => {
      const stream = client().chat.completions.stream({ model: 'simulator/fast', messages: [{ role: 'user', content: '[sim:chunk-delay-ms=20] one two three four five six seven' }] });
      stream.on('content', () => stream.abort());
      await expect(stream.done()).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    });

    test('assembles streamed tool calls', async () => {
      const whole = await client().chat.completions.stream({ model: PINNED, messages: [{ role: 'user', content: 'Weather in Oslo?' }], tools: [WEATHER] }).finalChatCompletion();
      expect(whole.choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { tool_calls: [{ id: 'call_a1', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }] } });
    });

    test('lists the models', async () => {
      const ids: string[] = [];
      for await (const { id } of client().models.list()) ids.push(id);
      expect(ids).toContain(PINNED);
    });

    test('raises the right error for each refusal', async () => {
      const create = (body: object, key?: string): Promise<unknown> => client(key).chat.completions.create({ model: PINNED, messages: MESSAGES, ...body } as OpenAI.Chat.Completions.ChatCompletionCreateParamsNonStreaming);
      await expect(create({}, 'sk-wrong')).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
      await expect(create({ temperature: 3 })).rejects.toMatchObject({ status: 400, code: 'invalid_value', param: 'temperature' });
      await expect(create({ model: 'no/such' })).rejects.toBeInstanceOf(OpenAI.NotFoundError);
      const limited = await world().newAccount({ requests_per_minute: 1, burst_per_second: 5 });
      await create({}, limited.key);
      await expect(create({}, limited.key)).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    });

    test('raises our error code when a stream breaks in the middle', async () => {
      world().upstreams.single.enqueue({ chunks: [delta('half')], cut: true });
      const stream = await client().chat.completions.create({ model: 'mistralai/ministral-3b-2512', messages: MESSAGES, stream: true });
      const read = async (): Promise<void> => {
        for await (const chunk of stream) void chunk;
      };
      await expect(read()).rejects.toMatchObject({ code: 'provider_disconnected' });
    });
  });

  describe('the AI SDK', () => {
    const model = () => createOpenAICompatible({ name: 'signalbox', baseURL: `${world().gateway.baseUrl}/v1`, apiKey: world().account.key, includeUsage: true })(PINNED);

    test('generates text with usage', async () => {
      const { text, usage, finishReason } = await generateText({ model: model(), prompt: 'hello' });
      expect([text, finishReason]).toEqual([GREETING, 'stop']);
      expect([usage.inputTokens, usage.outputTokens]).toEqual([USAGE.prompt_tokens, USAGE.completion_tokens]);
    });

    test('streams text with usage', async () => {
      const result = streamText({ model: model(), prompt: 'hello' });
      let text = '';
      for await (const part of result.textStream) text += part;
      expect(text).toBe(GREETING);
      expect((await result.usage).outputTokens).toBe(USAGE.completion_tokens);
    });

    test.each([false, true])('calls a tool and continues to the answer (streaming: %s)', async (isStream) => {
      const options = {
        model: model(),
        prompt: 'Weather in Oslo?',
        stopWhen: stepCountIs(3),
        tools: { get_weather: tool({ description: 'Weather', inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }), execute: ({ city }) => Promise.resolve(`4 in ${city}`) }) },
      };
      const text = isStream ? await streamText(options).text : (await generateText(options)).text;
      expect(text).toBe('It is 4 °C in Oslo.');
    });

    test('raises an error for a stream that breaks in the middle', async () => {
      world().upstreams.single.enqueue({ chunks: [delta('half')], cut: true });
      const raised: unknown[] = [];
      const single = createOpenAICompatible({ name: 'signalbox', baseURL: `${world().gateway.baseUrl}/v1`, apiKey: world().account.key })('mistralai/ministral-3b-2512');
      const result = streamText({ model: single, prompt: 'hello', maxRetries: 0, onError: ({ error }) => void raised.push(error) });
      await result.consumeStream();
      expect(raised).toMatchObject([{ message: 'The provider closed the stream before finishing.' }]);
      expect(await result.finishReason).toBe('error');
    });

    test('raises the status and message of a refusal', async () => {
      const refused = generateText({ model: createOpenAICompatible({ name: 'signalbox', baseURL: `${world().gateway.baseUrl}/v1`, apiKey: world().account.key })('no/such'), prompt: 'hello', maxRetries: 0 });
      const error: unknown = await refused.catch((caught: unknown) => caught);
      expect(APICallError.isInstance(error) && error.statusCode).toBe(404);
    });
  });

  describe('LangChain', () => {
    const chat = (): ChatOpenAI => new ChatOpenAI({ model: PINNED, apiKey: world().account.key, maxRetries: 0, configuration: { baseURL: `${world().gateway.baseUrl}/v1` } });

    test('invokes a model, with usage', async () => {
      const message = await chat().invoke('hello');
      expect(message.content).toBe(GREETING);
      expect(message.usage_metadata).toMatchObject({ input_tokens: USAGE.prompt_tokens, output_tokens: USAGE.completion_tokens });
    });

    test('streams, with usage on the sum of the chunks', async () => {
      const chunks: AIMessageChunk[] = [];
      for await (const chunk of await chat().stream('hello')) chunks.push(chunk);
      const whole = chunks.reduce((sum, chunk) => sum.concat(chunk));
      expect(whole.content).toBe(GREETING);
      expect(whole.usage_metadata).toMatchObject({ output_tokens: USAGE.completion_tokens });
    });

    test('binds tools, and takes their results back', async () => {
      const bound = chat().bindTools([WEATHER_TOOL]);
      const asked = await bound.invoke('Weather in Oslo?');
      expect(asked.tool_calls).toMatchObject([{ name: 'get_weather', args: { city: 'Oslo' }, id: 'call_a1' }]);
      const told = await bound.invoke([new HumanMessage('Weather in Oslo?'), asked, new ToolMessage({ tool_call_id: 'call_a1', content: '4' })]);
      expect(told.content).toBe('It is 4 °C in Oslo.');
    });
  });
}
