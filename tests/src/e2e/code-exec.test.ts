/** A model that computes: its programs run in the sandbox of a running gateway, through the official client. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startOtlpCollector, type OtlpCollector } from '@signalbox/testkit/otlp-collector';
import OpenAI from 'openai';
import { admin, ledgerOf } from '../harness/books.js';
import { until } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';
import { expectOneTraceWithoutContent, pathOf, traceOf } from '../harness/traces.js';

const SQUARES = 'Add the squares up to a hundred.\n```js\nlet sum = 0;\nfor (let i = 1; i <= 100; i += 1) sum += i * i;\nsum\n```';
const PLUGINS = { plugins: ['code-exec'] };

let collector: OtlpCollector;
let gateway: Gateway;
let client: OpenAI;
let accountId: string;
let key: string;

beforeAll(async () => {
  collector = await startOtlpCollector();
  gateway = await startGateway({ mode: 'standalone', environment: { SIMULATOR: 'on', PLUGIN_FEES: 'code-exec=0.000000123', OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint } });
  const made = await admin<{ account: { id: string }; key: { key: string } }>(gateway, '/accounts', 'POST', { name: 'computes', tier: 'free' });
  accountId = made.account.id;
  key = made.key.key;
  client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: key, maxRetries: 0, timeout: 120_000, defaultHeaders: { 'X-Router-Metadata': 'enabled' } });
}, 120_000);
afterAll(async () => {
  await gateway.stop();
  await collector.stop();
}, 60_000);

interface Figures {
  readonly x_router: { readonly cost_usd: number };
  readonly router_metadata: { readonly attempts: readonly { readonly round: number }[]; readonly pipeline: readonly { readonly stage: string; readonly status: string; readonly fee_usd: number; readonly detail: Readonly<Record<string, unknown>> }[] };
}
const ask = async (content: string, more: object = {}): Promise<OpenAI.ChatCompletion & Figures> =>
  (await client.chat.completions.create({ model: 'simulator/fast', messages: [{ role: 'user', content }], ...PLUGINS, ...more } as OpenAI.ChatCompletionCreateParamsNonStreaming)) as OpenAI.ChatCompletion & Figures;

async function chargeOf(requestId: string): Promise<readonly [number, number]> {
  const rows = async () => (await ledgerOf(gateway, accountId)).filter((row) => row.request_id === requestId);
  await until(async () => (await rows()).some(({ kind }) => kind === 'charge') && (await rows()).filter(({ kind }) => kind === 'attempt').length === 2, 20_000, 100, 'the request to be booked');
  const sum = (kinds: readonly string[], found: Awaited<ReturnType<typeof rows>>): number => found.filter(({ kind }) => kinds.includes(kind)).reduce((total, row) => total + Number(row.amount_nano_usd), 0);
  const found = await rows();
  return [sum(['charge', 'adjustment'], found), sum(['attempt'], found)];
}

test('a sum is computed by a program, and its two rounds and its fee are in the cost and in the ledger to the nano', async () => {
  const answer = await ask(SQUARES);
  expect(answer.choices[0]?.message.content).toContain('338350');
  expect(answer.choices[0]?.message.tool_calls).toBeUndefined();
  expect(answer.router_metadata.attempts.map(({ round }) => round)).toEqual([1, 2]);
  expect(answer.router_metadata.pipeline).toMatchObject([{ stage: 'code-exec', status: 'completed', fee_usd: 0.000000123, detail: { round: 1 } }]);
  const cost = Math.round(answer.x_router.cost_usd * 1e9);
  expect(cost % 50).toBe(123 % 50);
  expect(await chargeOf(answer.id)).toEqual([cost, cost]);

  // The same request as its trace shows it: every hop, each under the one that called it.
  const trace = await traceOf(collector, answer.id);
  const edge = 'edge completions';
  expect(trace.map((span) => pathOf(span, trace)).filter((path) => !path.endsWith('Outcome')).sort()).toEqual(
    [
      edge,
      `${edge} > accounts Authenticate`,
      `${edge} > plugins Prepare`,
      `${edge} > routing Decide`,
      `${edge} > quota Admit`,
      `${edge} > quota Admit > billing Totals`,
      `${edge} > quota Heartbeat`,
      `${edge} > worker-sim fast`,
      // As each of the two rounds begins, and while the tool runs between them.
      ...Array.from({ length: 3 }, () => `${edge} > worker-sim Tend`),
      `${edge} > plugins RunTool`,
      `${edge} > plugins RunTool > sandbox Run`,
      `${edge} > worker-sim fast`,
      `${edge} > worker-sim fast > billing book usage`,
      `${edge} > worker-sim fast > billing book usage`,
    ].sort(),
  );
  const attempts = trace.filter(({ name }) => name === 'chat simulator/fast');
  expect(attempts.map(({ attributes }) => attributes['signalbox.attempt'])).toEqual(['1', '2']);
  expect(attempts.reduce((sum, { attributes }) => sum + Number(attributes['signalbox.cost_nano_usd']), 0)).toBe(cost);
  expect(attempts[1]?.attributes).toMatchObject({ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'simulator', 'gen_ai.request.model': 'simulator/fast', 'gen_ai.usage.output_tokens': expect.stringMatching(/^[1-9]/) });
  expectOneTraceWithoutContent(collector, trace, ['Add the squares', '338350', 'sum += i', key, accountId]);
}, 60_000);

test('a stream is one stream: nothing of the calls, the words, one end with the figures of both rounds', async () => {
  const stream = await client.chat.completions.create({ model: 'simulator/fast', stream: true, messages: [{ role: 'user', content: SQUARES }], ...PLUGINS } as OpenAI.ChatCompletionCreateParamsStreaming);
  let text = '';
  let last: (OpenAI.ChatCompletionChunk & Partial<Figures>) | undefined;
  for await (const chunk of stream) {
    expect(chunk.choices[0]?.delta.tool_calls).toBeUndefined();
    text += chunk.choices[0]?.delta.content ?? '';
    last = chunk;
  }
  expect(text).toContain('338350');
  expect(last?.choices[0]?.finish_reason).toBe('stop');
  const cost = Math.round((last?.x_router?.cost_usd ?? 0) * 1e9);
  expect(await chargeOf(last?.id ?? '')).toEqual([cost, cost]);
}, 60_000);

test('a program that never ends is stopped in its time, and the model is told', async () => {
  const answer = await ask('Loop.\n```js\nfor (;;);\n```', { plugin_options: { 'code-exec': { timeout_ms: 200 } } });
  expect(answer.choices[0]?.message.content).toContain('it ran for longer than 200 ms');
  expect(answer.router_metadata.pipeline).toMatchObject([{ status: 'failed', fee_usd: 0, detail: { status: 'timed_out' } }]);
}, 60_000);

test("the client's own tools stay the client's", async () => {
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } } }];
  const answer = await ask('What is the weather?', { tools });
  expect(answer.choices[0]?.finish_reason).toBe('tool_calls');
  expect(answer.choices[0]?.message.tool_calls).toMatchObject([{ type: 'function', function: { name: 'get_weather' } }]);
}, 60_000);

test.each([
  ['an unknown option', { plugin_options: { 'code-exec': { network: true } } }, 'plugin_options.code-exec.network'],
  ['a language that there is not', { plugin_options: { 'code-exec': { language: 'python' } } }, 'plugin_options.code-exec.language'],
  ['several answers', { n: 2 }, 'n'],
  ['a tool of the same name', { tools: [{ type: 'function', function: { name: 'code_exec' } }] }, 'tools.[0].function.name'],
])('%s is 400 and named', async (_what, more, param) => {
  await expect(ask('hi', more)).rejects.toMatchObject({ status: 400, param });
});
