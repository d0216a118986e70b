/** Third-party clients that make objects of answers: their schemas, calls of their functions, any text. */
import { isDeepStrictEqual } from 'node:util';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { describe, expect, test } from '@jest/globals';
import type { AIMessageChunk } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, Output, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { WEATHER_TOOL } from './completions-suite.js';
import { eventually } from './eventually.js';
import { HELLO, type World } from './world.js';

const MODEL = 'simulator/fast';
const MESSAGES = HELLO.map((message) => ({ ...message }));
/** A schema; the simulator's answers match it, and each client checks that itself. */
const PLACE = z.object({ city: z.string(), celsius: z.int(), kind: z.enum(['land', 'sea']), seen: z.string().nullable(), near: z.array(z.object({ km: z.number() })) });
const OSLO = { city: 'simulated', celsius: 1, kind: 'land', seen: 'simulated', near: [{ km: 1 }] };
const CITY = z.object({ city: z.string() });
/** Text that the simulator repeats after its own: emoji sequences, combining accents, both writing directions, all line breaks, control characters, quotes, escapes. */
const ODD = '👩‍👩‍👧‍👦 e\u0301 𝒳 ﷽ \u2028\u2029 \u0000\u007f \u202eabc\u202c \ufeff. "q" \\u0041 \\n \r\n\tends';
const asks = (content: string): { role: 'user'; content: string }[] => [{ role: 'user', content }];

export function describeClientObjects(world: () => World): void {
  const address = (): { readonly baseURL: string; readonly apiKey: string } => ({ baseURL: `${world().gateway.baseUrl}/v1`, apiKey: world().account.key });

  describe('the official client', () => {
    const client = (options: object = {}): OpenAI => new OpenAI({ ...address(), maxRetries: 0, ...options });

    test.each([false, true])('makes an object by a schema of zod (streaming: %s)', async (isStream) => {
      const body = { model: MODEL, messages: MESSAGES, response_format: zodResponseFormat(PLACE, 'place') };
      const whole = isStream ? await client().chat.completions.stream(body).finalChatCompletion() : await client().chat.completions.parse(body);
      expect(whole.choices[0]?.message.parsed).toEqual(OSLO);
    });

    test.each([false, true])('reads the arguments of three calls in one turn (streaming: %s)', async (isStream) => {
      const body = { model: MODEL, messages: asks('[sim:calls=3] hello'), tools: [zodFunction({ name: 'get_weather', parameters: CITY })] };
      const whole = isStream ? await client().chat.completions.stream(body).finalChatCompletion() : await client().chat.completions.parse(body);
      const calls = whole.choices[0]?.message.tool_calls ?? [];
      expect(calls.map((call) => call.function.parsed_arguments)).toEqual(Array(3).fill({ city: 'simulated' }));
      expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
    });

    test('runs functions of a stream by itself, and counts the tokens of all turns', async () => {
      const given: unknown[] = [];
      const sums: number[] = [];
      const weather = zodFunction({ name: 'get_weather', parameters: CITY, function: (input) => given.push(input) });
      const runner = client().chat.completions.runTools({ model: MODEL, stream: true, stream_options: { include_usage: true }, messages: asks('[sim:calls=2] hello'), tools: [weather] });
      runner.on('chatCompletion', ({ usage }) => sums.push(usage?.total_tokens ?? 0));
      expect(await runner.finalContent()).toContain('I have read the tool result.');
      expect(given).toEqual(Array(2).fill({ city: 'simulated' }));
      expect(sums).toEqual([expect.any(Number), expect.any(Number)]);
      expect((await runner.totalUsage()).total_tokens).toBe(sums.reduce((sum, tokens) => sum + tokens));
    });

    test('sends a turn of the model back unchanged, with results in parts', async () => {
      const ask = { model: MODEL, tools: [WEATHER_TOOL as OpenAI.Chat.Completions.ChatCompletionTool] };
      const asked = (await client().chat.completions.create({ ...ask, messages: MESSAGES })).choices[0]?.message;
      expect(asked?.tool_calls).toHaveLength(1);
      const results = (asked?.tool_calls ?? []).map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: [{ type: 'text' as const, text: '4' }] }));
      const told = (await client().chat.completions.create({ ...ask, messages: [...MESSAGES, ...(asked === undefined ? [] : [asked]), ...results] })).choices[0]?.message;
      expect(told?.content).toContain('I have read the tool result.');
      const again = await client().chat.completions.create({ ...ask, messages: [...MESSAGES, ...(asked === undefined ? [] : [asked]), ...results, ...(told === undefined ? [] : [told]), ...MESSAGES], tool_choice: 'none' });
      expect(again.choices[0]?.finish_reason).toBe('stop');
    });

    test.each([false, true])('gets any text back unchanged (streaming: %s)', async (isStream) => {
      const body = { model: MODEL, messages: asks(ODD) };
      const whole = isStream ? await client().chat.completions.stream(body).finalChatCompletion() : await client().chat.completions.create(body);
      expect(JSON.stringify(whole.choices[0]?.message.content?.slice(-ODD.length))).toBe(JSON.stringify(ODD));
    });

    test('can read a stream twice, and pass it on to a browser', async () => {
      const stream = await client().chat.completions.create({ model: MODEL, messages: MESSAGES, stream: true });
      const [first, second] = stream.tee();
      const read: OpenAI.ChatCompletionChunk[] = [];
      for await (const chunk of first) read.push(chunk);
      const lines = (await new Response(second.toReadableStream()).text()).trim().split('\n');
      expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(read);
      expect(read.at(-1)?.choices[0]?.finish_reason).toBe('stop');
    });

    test('may send a query of its own with every call, which adds prices to the list of models and changes nothing else', async () => {
      const detailed = client({ defaultQuery: { detail: 'full' } });
      const { data } = await detailed.models.list();
      for (const model of data) expect(model).toMatchObject({ pricing: { prompt: expect.any(String), completion: expect.any(String) }, context_length: expect.any(Number) });
      const listed = async (): Promise<OpenAI.Model | undefined> => (await detailed.models.list()).data.find(({ id }) => id === MODEL);
      // Measurements of earlier answers arrive a little later: both lists are read while none arrives.
      const { alone, among } = await eventually('no figure of the model moves', async () => {
        const [before, retrieved, after] = [await listed(), await detailed.models.retrieve(MODEL), await listed()];
        return isDeepStrictEqual(before, after) ? { alone: retrieved, among: after } : undefined;
      });
      expect(alone).toEqual(among);
      expect((await detailed.chat.completions.create({ model: MODEL, messages: MESSAGES })).model).toBe(MODEL);
    });
  });

  describe('the AI SDK', () => {
    const model = (): ReturnType<ReturnType<typeof createOpenAICompatible>> => createOpenAICompatible({ name: 'signalbox', ...address(), includeUsage: true, supportsStructuredOutputs: true })(MODEL);
    const tools = { get_weather: tool({ description: 'Weather', inputSchema: CITY, execute: ({ city }) => Promise.resolve(`4 in ${city}`) }) };

    test.each([false, true])('makes an object by a schema (streaming: %s)', async (isStream) => {
      const options = { model: model(), output: Output.object({ schema: PLACE }), prompt: 'hello' };
      expect(isStream ? await streamText(options).output : (await generateText(options)).output).toEqual(OSLO);
    });

    test.each([false, true])('needs one step for two calls and one for the answer, and sums the tokens of both (streaming: %s)', async (isStream) => {
      const options = { model: model(), prompt: '[sim:calls=2] hello', stopWhen: stepCountIs(4), tools };
      const streamed = isStream ? streamText(options) : undefined;
      const [steps, total] = streamed === undefined ? await generateText(options).then((result) => [result.steps, result.totalUsage] as const) : await Promise.all([streamed.steps, streamed.totalUsage]);
      expect(steps.map(({ finishReason, toolResults }) => [finishReason, toolResults.map(({ output }) => output)])).toEqual([['tool-calls', ['4 in simulated', '4 in simulated']], ['stop', []]]);
      expect(total.totalTokens).toBe(steps.reduce((sum, { usage }) => sum + (usage.totalTokens ?? 0), 0));
    });

    test.each([['required', 'required'], ['by its name', { type: 'tool', toolName: 'get_weather' }]] as const)('calls a function that is %s', async (_how, toolChoice) => {
      const { toolCalls } = await generateText({ model: model(), prompt: 'hello', tools, toolChoice });
      expect(toolCalls).toMatchObject([{ toolName: 'get_weather', input: { city: 'simulated' } }]);
    });

    test('stops in the middle of a stream when told to, without an error', async () => {
      const given = new AbortController();
      const told: string[] = [];
      const result = streamText({ model: model(), prompt: '[sim:chunk-delay-ms=20 tokens=500] hello', abortSignal: given.signal, onAbort: () => void told.push('aborted'), onError: () => void told.push('failed') });
      for await (const part of result.textStream) if (part !== '') given.abort();
      expect(told).toEqual(['aborted']);
    });
  });

  describe('LangChain', () => {
    const chat = (): ChatOpenAI => new ChatOpenAI({ model: MODEL, apiKey: address().apiKey, maxRetries: 0, configuration: { baseURL: address().baseURL } });

    test.each(['jsonSchema', 'functionCalling'] as const)('makes an object by %s', async (method) => {
      expect(await chat().withStructuredOutput(PLACE, { method }).invoke('hello')).toEqual(OSLO);
    });

    test('puts three streamed calls together, with usage', async () => {
      const chunks: AIMessageChunk[] = [];
      for await (const chunk of await chat().bindTools([WEATHER_TOOL]).stream('[sim:calls=3] hello')) chunks.push(chunk);
      const whole = chunks.reduce((sum, chunk) => sum.concat(chunk));
      expect(whole.tool_calls?.map(({ name, args }) => [name, args])).toEqual(Array(3).fill(['get_weather', { city: 'simulated' }]));
      expect(whole.invalid_tool_calls).toEqual([]);
      expect(whole.usage_metadata).toMatchObject({ total_tokens: expect.any(Number) });
    });
  });
}
