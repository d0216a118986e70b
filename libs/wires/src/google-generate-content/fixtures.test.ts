/** The fixtures are proven by Google's own client: what it reads of them is what the wire makes of them. */
import { readdirSync, readFileSync } from 'node:fs';
import { GoogleGenAI, type GenerateContentResponse, type Part } from '@google/genai';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { Agent, setGlobalDispatcher } from 'undici';
import { gather, replay } from '../testing/replay.js';
import { readGenerateContentAnswer } from './response.js';
import { createGenerateContentTransducer } from './stream.js';

const directory = new URL('./testdata/', import.meta.url);
const names = readdirSync(directory).sort();
const bytesOf = (name: string): Buffer => readFileSync(new URL(name, directory));

let provider: FakeProvider;
let client: GoogleGenAI;

beforeAll(async () => {
  // The client reaches for the dispatcher behind the platform's fetch, which jest's own global object lacks.
  setGlobalDispatcher(new Agent());
  provider = await startFakeProvider();
  client = new GoogleGenAI({ apiKey: 'test', httpOptions: { baseUrl: provider.baseUrl.replace(/\/v1$/, '') } });
});
afterAll(() => provider.stop());

interface Read {
  content: string;
  reasoning: string;
  readonly calls: { readonly name: string; readonly arguments: string; readonly signature: string | undefined }[];
}

/** By candidate, as the client gives it. */
function readByClient(responses: readonly GenerateContentResponse[]): ReadonlyMap<number, Read> {
  const read = new Map<number, Read>();
  for (const candidate of responses.flatMap((response) => response.candidates ?? [])) {
    const index = candidate.index ?? 0;
    const of = read.get(index) ?? { content: '', reasoning: '', calls: [] };
    read.set(index, of);
    for (const part of candidate.content?.parts ?? ([] as Part[])) {
      if (part.functionCall !== undefined) of.calls.push({ name: part.functionCall.name ?? '', arguments: JSON.stringify(part.functionCall.args), signature: part.thoughtSignature });
      else if (part.thought === true) of.reasoning += part.text ?? '';
      else of.content += part.text ?? '';
    }
  }
  return read;
}

const countsOf = (response: GenerateContentResponse | undefined): object => {
  const { promptTokenCount = 0, candidatesTokenCount = 0, thoughtsTokenCount = 0, cachedContentTokenCount = 0 } = response?.usageMetadata ?? {};
  return { input: promptTokenCount - cachedContentTokenCount, cacheRead: cachedContentTokenCount, outputText: candidatesTokenCount, outputReasoning: thoughtsTokenCount };
};

test.each(names.filter((name) => name.endsWith('.sse')))('%s, streamed', async (name) => {
  provider.enqueue({ chunks: [bytesOf(name)] });
  const responses: GenerateContentResponse[] = [];
  for await (const response of await client.models.generateContentStream({ model: 'gemini-3.8-flash', contents: 'x' })) responses.push(response);
  const { events, summary } = replay(() => createGenerateContentTransducer('seed'), [bytesOf(name)]);
  const ours = new Map([...gather(events)].map(([index, choice]) => [index, { content: choice.content, reasoning: choice.reasoning, calls: choice.calls.map((call) => ({ name: call.name, arguments: call.arguments, signature: (call.extra as { google: { thought_signature: string } } | undefined)?.google.thought_signature })) }]));
  expect(readByClient(responses)).toEqual(ours);
  const { inputUncached = 0, audio = 0, image = 0, cacheRead, outputText, outputReasoning } = summary.usage?.tokens ?? {};
  expect({ input: inputUncached + audio + image, cacheRead, outputText, outputReasoning }).toEqual(countsOf(responses.at(-1)));
});

test.each(names.filter((name) => name.endsWith('.json')))('%s, whole', async (name) => {
  provider.enqueue({ body: JSON.parse(bytesOf(name).toString('utf8')) as object });
  const response = await client.models.generateContent({ model: 'gemini-3.8-flash', contents: 'x' });
  const result = readGenerateContentAnswer(bytesOf(name), 'seed');
  if (!result.ok) throw new Error('no answer');
  const [choice] = JSON.parse(Buffer.from(result.answer.choices).toString('utf8')) as [{ message: { content: string | null; reasoning_content?: string; tool_calls?: { function: { name: string; arguments: string } }[] } }];
  const theirs = readByClient([response]).get(0);
  expect([choice.message.content ?? '', choice.message.reasoning_content ?? '']).toEqual([theirs?.content, theirs?.reasoning]);
  expect((choice.message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments])).toEqual(theirs?.calls.map((call) => [call.name, call.arguments]));
  const { inputUncached = 0, audio = 0, image = 0, cacheRead, outputText, outputReasoning } = result.answer.usage?.tokens ?? {};
  expect({ input: inputUncached + audio + image, cacheRead, outputText, outputReasoning }).toEqual(countsOf(response));
});
