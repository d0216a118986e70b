/** Each plugin doing its job over a running gateway, through the official client: a mock of a provider and the simulator, both answering only from what they are given. */
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { admin, ledgerOf } from '../harness/books.js';
import { until } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';
import { readPng } from '../harness/png.js';

const MODEL = 'openai/gpt-4o-mini';
const SIMULATOR = 'simulator/fast';
const MODELS = [MODEL, SIMULATOR];
/** Of either model, nano-USD a token. */
const PRICES = { prompt: 150, completion: 600 };
/** One pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const FEES = { search: 123, images: 77 };
/** A PDF of one page; readers mend the missing table of offsets. */
const pdfOf = (text: string): string => {
  const content = `BT /F1 12 Tf 20 200 Td (${text}) Tj ET`;
  const file = [
    '%PDF-1.4', '1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj', '2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj',
    '3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >> endobj', '4 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj',
    `5 0 obj << /Length ${content.length} >> stream\n${content}\nendstream endobj`, 'trailer << /Root 1 0 R >>', '%%EOF',
  ].join('\n');
  return `data:application/pdf;base64,${Buffer.from(file).toString('base64')}`;
};

interface Said {
  readonly role: string;
  readonly content?: unknown;
}
const textOf = (content: unknown): string => (typeof content === 'string' ? content : Array.isArray(content) ? (content as readonly { readonly text?: string }[]).map(({ text }) => text ?? '').join('\n') : '');
const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/\p{L}{4,}/gu) ?? [];

/** The line given to the model that shares most words with the question, with the number of its source where it has one. */
function answerFrom(messages: readonly Said[]): string {
  const question = textOf(messages.findLast(({ role }) => role === 'user')?.content).split('\n')[0] ?? '';
  const asked = new Set(wordsOf(question));
  let best = { score: 0, line: 'I do not know.' };
  for (const { content } of messages) {
    let mark = '';
    for (const line of textOf(content).split('\n')) {
      mark = /^\[G?\d+\]/.exec(line)?.[0] ?? mark;
      const score = line === question || line.startsWith('The following') ? 0 : wordsOf(line).filter((word) => asked.has(word)).length;
      if (score > best.score) best = { score, line: `${line} ${mark}`.trim() };
    }
  }
  return best.line;
}

/** Calls a tool that it is offered, says what that gave, and else answers from what it was given. */
function respond(request: { readonly messages: readonly unknown[]; readonly tools?: readonly { readonly function?: { readonly name?: string } }[] | undefined }) {
  const messages = request.messages as readonly Said[];
  const question = textOf(messages.findLast(({ role }) => role === 'user')?.content);
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
  const last = messages.at(-1);
  if (last?.role === 'tool') return { content: `The tool says: ${textOf(last.content)}`, usage };
  const name = request.tools?.[0]?.function?.name;
  if (name === undefined) return { content: answerFrom(messages), usage };
  return { toolCalls: [{ id: 'call_1', name, arguments: JSON.stringify(name === 'code_exec' ? { code: /```js\n([^`]*)```/.exec(question)?.[1] } : { prompt: question }) }], usage };
}

let upstream: LLMock;
let gateway: Gateway;
let account: { readonly id: string; readonly key: string };

beforeAll(async () => {
  upstream = new LLMock({ port: 0 });
  upstream.onImage(/./, { image: { b64Json: PIXEL } });
  upstream.on({ predicate: () => true }, respond);
  await upstream.start();
  gateway = await startGateway({
    mode: 'standalone',
    environment: { OPENAI_API_KEY: 'sk-upstream', OPENAI_BASE_URL: `${upstream.url}/v1`, SIMULATOR: 'on', PLUGIN_FEES: 'web-search=0.000000123,pdf-reader=0.001,image-gen=0.000000077', PDF_TIMEOUT_MS: '60000', PLUGINS_DEADLINE_MS: '90000' },
  });
  account = await newAccount('team');
  await admin(gateway, '/sources', 'POST', { corpus: 'web', url: 'https://intranet.example/canteen', title: 'Canteen', text: 'The canteen of Nordlys opens at half past eleven.\n\nFish soup is served on Thursdays.' });
}, 120_000);
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
}, 60_000);

async function newAccount(tier: string, limits: object = {}): Promise<{ readonly id: string; readonly key: string }> {
  const made = await admin<{ account: { id: string }; key: { key: string } }>(gateway, '/accounts', 'POST', { name: tier, tier, ...limits });
  return { id: made.account.id, key: made.key.key };
}
const clientOf = (apiKey: string): OpenAI => new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey, maxRetries: 0, timeout: 120_000, defaultHeaders: { 'X-Router-Metadata': 'enabled' } });

interface Answered extends OpenAI.ChatCompletion {
  readonly x_router: { readonly cost_usd: number };
  readonly router_metadata: { readonly pipeline: readonly { readonly stage: string; readonly status: string; readonly fee_usd: number; readonly detail?: Readonly<Record<string, unknown>> }[] };
}
interface Annotation {
  readonly type: string;
  readonly url_citation?: { readonly url: string; readonly title: string; readonly start_index: number; readonly end_index: number };
  readonly file?: { readonly name: string; readonly hash: string };
}
const annotationsOf = (message: unknown): readonly Annotation[] => (message as { readonly annotations?: readonly Annotation[] }).annotations ?? [];

const imagesOf = (message: unknown): readonly string[] => ((message as { readonly images?: readonly { readonly type: string; readonly image_url: { readonly url: string } }[] } | undefined)?.images ?? []).map(({ image_url: { url } }) => url);
function pngOf(url: string): { readonly width: number; readonly height: number } {
  const [, base64 = ''] = /^data:image\/png;base64,(.+)$/.exec(url) ?? [];
  return readPng(Buffer.from(base64, 'base64'));
}

/** Fields that the official client's types do not know are sent all the same. */
async function ask(content: unknown, plugins: readonly unknown[], more: object = {}, key = account.key): Promise<Answered> {
  const body = { model: MODEL, messages: [{ role: 'user', content }], plugins, ...more } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming;
  return (await clientOf(key).chat.completions.create(body)) as Answered;
}
const said = (answer: Answered): string => answer.choices[0]?.message.content ?? '';
const nanoOf = (usd: number): number => Math.round(usd * 1e9);
/** What tokens and fees come to, in nano-USD. */
const costOf = ({ usage, router_metadata: { pipeline } }: Answered): number =>
  (usage?.prompt_tokens ?? 0) * PRICES.prompt + (usage?.completion_tokens ?? 0) * PRICES.completion + pipeline.reduce((sum, { fee_usd: fee }) => sum + nanoOf(fee), 0);

/** What is charged for a request, and what its attempts cost, as the ledger has it. */
async function bookedFor(requestId: string, attempts: number, of = account): Promise<readonly [number, number]> {
  const rows = async () => (await ledgerOf(gateway, of.id)).filter((row) => row.request_id === requestId);
  await until(async () => (await rows()).some(({ kind }) => kind === 'charge') && (await rows()).filter(({ kind }) => kind === 'attempt').length === attempts, 20_000, 100, 'the request to be booked');
  const found = await rows();
  const sum = (...kinds: readonly string[]): number => found.filter(({ kind }) => kinds.includes(kind)).reduce((total, row) => total + Number(row.amount_nano_usd), 0);
  return [sum('charge', 'adjustment'), sum('attempt')];
}
/** An account's memory endpoint. */
const memory = async (method: 'GET' | 'DELETE', user: string): Promise<{ readonly data?: readonly { readonly text: string }[]; readonly count?: number }> =>
  (await (await fetch(`${gateway.baseUrl}/api/memory?user=${user}`, { method, headers: { authorization: `Bearer ${account.key}` } })).json()) as { data?: { text: string }[]; count?: number };

describe.each(MODELS)('plugins, with %s', (model) => {
  const at = { model };

  test('a question is answered from an indexed document, cited at its place, and costs its fee to the nano', async () => {
    const question = '[sim:quote] When does the canteen of Nordlys open?';
    const [plain, answer] = [await ask(question, [], at), await ask(question, ['web-search'], at)];
    expect(said(plain)).not.toContain('half past eleven');
    if (model === MODEL) expect(said(plain)).toBe('I do not know.');
    expect(said(answer)).toContain('half past eleven');
    const [cited] = annotationsOf(answer.choices[0]?.message);
    expect(cited?.url_citation).toMatchObject({ url: 'https://intranet.example/canteen', title: 'Canteen' });
    expect(said(answer).slice(cited?.url_citation?.start_index, cited?.url_citation?.end_index)).toBe('[1]');
    expect(answer.router_metadata.pipeline).toMatchObject([{ stage: 'web-search', status: 'completed', fee_usd: 0.000000123, detail: { backend: 'local', results: 1 } }]);
    const cost = nanoOf(answer.x_router.cost_usd);
    expect(cost).toBe(costOf(answer));
    expect((cost - FEES.search) % PRICES.prompt).toBe(0);
    expect(await bookedFor(answer.id, 1)).toEqual([cost, cost]);
  }, 120_000);

  test('a stream carries annotations before its end, and its helper still reads it', async () => {
    const body = { model, stream: true, messages: [{ role: 'user', content: '[sim:quote] When does the canteen of Nordlys open?' }], plugins: ['web-search'] } as unknown as OpenAI.ChatCompletionCreateParamsStreaming;
    let text = '';
    const annotations: Annotation[] = [];
    for await (const { choices } of await clientOf(account.key).chat.completions.create(body)) {
      text += choices[0]?.delta.content ?? '';
      annotations.push(...annotationsOf(choices[0]?.delta ?? {}));
    }
    expect(text).toContain('half past eleven');
    expect(text.slice(annotations[0]?.url_citation?.start_index, annotations[0]?.url_citation?.end_index)).toBe('[1]');
  }, 120_000);

  test('a question is answered from a passage of a book, with author and chapter', async () => {
    const answer = await ask('[sim:quote] Which creature was the rabbit with pink eyes, and where was the watch?', ['gutenberg'], at);
    expect(said(answer)).toMatch(/pink eyes|waistcoat-pocket/);
    expect(annotationsOf(answer.choices[0]?.message)[0]?.url_citation).toMatchObject({ url: 'https://www.gutenberg.org/ebooks/11', title: expect.stringContaining('Lewis Carroll, CHAPTER I') });
  }, 120_000);

  test('a question is answered from the page of a PDF by a model that reads none; again, it is read from the cache', async () => {
    const content = [{ type: 'text', text: '[sim:quote] What is the tower height stated?' }, { type: 'file', file: { filename: 'tower.pdf', file_data: pdfOf(`The stated height of the tower is 42 metres. ${model}`) } }];
    const answer = await ask(content, ['pdf-reader'], at);
    expect(said(answer)).toContain('42 metres');
    expect(annotationsOf(answer.choices[0]?.message)).toMatchObject([{ type: 'file', file: { name: 'tower.pdf' } }]);
    expect(answer.router_metadata.pipeline).toMatchObject([{ stage: 'pdf-reader', status: 'completed', fee_usd: 0.001, detail: { pages: 1, cached: 0 } }]);
    expect((await ask(content, ['pdf-reader'], at)).router_metadata.pipeline[0]?.detail).toMatchObject({ cached: 1 });
  }, 180_000);

  test('a fact is remembered in a later conversation of the same user alone, listed, and gone after deletion', async () => {
    const [ada, bob] = [`ada-${MODELS.indexOf(model)}`, `bob-${MODELS.indexOf(model)}`];
    const told = await ask('My favourite colour is emerald green.', ['memory'], { ...at, user: ada });
    expect(told.router_metadata.pipeline).toMatchObject([{ stage: 'memory-read', status: 'completed' }, { stage: 'memory-write', status: 'scheduled' }]);
    await until(async () => ((await memory('GET', ada)).data ?? []).length === 1, 20_000, 100, 'the fact to be kept');
    const question = '[sim:quote] Which favourite colour did somebody mention?';
    expect(said(await ask(question, ['memory'], { ...at, user: ada }))).toContain('emerald green');
    expect(said(await ask(question, ['memory'], { ...at, user: bob }))).not.toContain('emerald');
    expect((await memory('GET', bob)).data).toEqual([]);
    expect((await memory('GET', ada)).data?.map(({ text }) => text)).toEqual(['My favourite colour is emerald green.']);
    expect((await memory('DELETE', ada)).count).toBe(1);
    expect(said(await ask(question, ['memory'], { ...at, user: ada }))).not.toContain('emerald');
  }, 180_000);

  test('a sum is computed by a program, and its two rounds are in the cost and in the ledger to the nano', async () => {
    const answer = await ask('Add the squares up to a hundred.\n```js\nlet sum = 0;\nfor (let i = 1; i <= 100; i += 1) sum += i * i;\nsum\n```', ['code-exec'], at);
    expect(said(answer)).toContain('338350');
    expect(answer.router_metadata.pipeline).toMatchObject([{ stage: 'code-exec', status: 'completed', detail: { round: 1 } }]);
    const cost = nanoOf(answer.x_router.cost_usd);
    expect([cost, cost]).toEqual([costOf(answer), (await bookedFor(answer.id, 2))[0]]);
  }, 60_000);

  test('an image comes with the answer and decodes; its price by the catalog and its fee are in the cost and in the ledger to the nano', async () => {
    const prompt = 'A red fox in the snow';
    const [options, sizePixels, unitNanoUsd, tokenNanoUsd] = model === SIMULATOR ? ([{ model: 'simulator/painter', size: '256x256' }, 256, 2_000_000, 150] as const) : ([{}, 1, 42_240_000, 5_000] as const);
    const answer = await ask(prompt, ['image-gen'], { ...at, plugin_options: { 'image-gen': options } });
    expect(imagesOf(answer.choices[0]?.message).map(pngOf)).toEqual([{ width: sizePixels, height: sizePixels }]);
    expect(answer.choices[0]?.message.tool_calls).toBeUndefined();
    const fee = unitNanoUsd + Math.ceil(prompt.length / 4) * tokenNanoUsd + FEES.images;
    expect(answer.router_metadata.pipeline).toMatchObject([{ stage: 'image-gen', status: 'completed', detail: { images: 1, round: 1 } }]);
    expect(nanoOf(answer.router_metadata.pipeline[0]?.fee_usd ?? 0)).toBe(fee);
    const cost = nanoOf(answer.x_router.cost_usd);
    expect(cost).toBe(costOf(answer));
    expect(await bookedFor(answer.id, 2)).toEqual([cost, cost]);
  }, 60_000);
});

describe('images', () => {
  const painter = (more: object = {}) => ({ model: SIMULATOR, plugin_options: { 'image-gen': { model: 'simulator/painter', ...more } } });

  test('a stream is one stream, with the images before its end', async () => {
    const body = { stream: true, messages: [{ role: 'user', content: 'Two owls' }], plugins: ['image-gen'], ...painter({ n: 2, size: '256x256' }) } as unknown as OpenAI.ChatCompletionCreateParamsStreaming;
    const images: string[] = [];
    const reasons: string[] = [];
    for await (const { choices } of await clientOf(account.key).chat.completions.create(body)) {
      expect(reasons).toEqual([]);
      expect(choices[0]?.delta.tool_calls).toBeUndefined();
      images.push(...imagesOf(choices[0]?.delta));
      if (typeof choices[0]?.finish_reason === 'string') reasons.push(choices[0].finish_reason);
    }
    expect(images.map(pngOf)).toEqual([{ width: 256, height: 256 }, { width: 256, height: 256 }]);
    expect([new Set(images).size, reasons]).toEqual([2, ['stop']]);
  }, 60_000);

  test('a bill tells fees and images from what models cost, and no provider is taken for who made the image', async () => {
    const buyer = await newAccount('business');
    const answer = await ask('A red fox in the snow', ['image-gen'], { ...painter({ size: '256x256' }), model: MODEL }, buyer.key);
    const cost = nanoOf(answer.x_router.cost_usd);
    const fee = nanoOf(answer.router_metadata.pipeline[0]?.fee_usd ?? 0);
    expect(await bookedFor(answer.id, 2, buyer)).toEqual([cost, cost]);
    const period = new Date().toISOString().slice(0, 7);
    const bill = await admin<{ model_spend_usd: number; plugins_usd: number; lines: readonly { kind: string; model: string; amount_usd: number }[] }>(gateway, `/statement?account=${buyer.id}&period=${period}`);
    expect([nanoOf(bill.model_spend_usd), nanoOf(bill.plugins_usd)]).toEqual([cost - fee, fee]);
    const list = (await (await fetch(`${gateway.baseUrl}/api/statements`, { headers: { authorization: `Bearer ${buyer.key}` } })).json()) as { data: readonly { period: string; model_spend_usd: number; charge_usd: number }[] };
    expect(list.data.filter((row) => row.period === period).map((row) => [nanoOf(row.model_spend_usd), nanoOf(row.charge_usd)])).toEqual([[cost - fee, cost]]);
    expect(bill.lines.filter(({ kind }) => kind === 'plugin')).toMatchObject([{ amount_usd: fee / 1e9 }]);
    const cards = (await ledgerOf(gateway, buyer.id)).filter(({ kind, request_id: id }) => kind === 'attempt' && id === answer.id).map(({ card_id: card }) => String(card));
    expect(cards.filter((card) => card.endsWith(`+plugins.${fee}+bought.simulator.${fee - FEES.images}`))).toHaveLength(1);
  }, 60_000);

  test('an image that cannot be made is told to the model, and costs nothing', async () => {
    const answer = await ask('A storm [sim:image-status=500]', ['image-gen'], painter());
    expect(imagesOf(answer.choices[0]?.message)).toEqual([]);
    expect(answer.router_metadata.pipeline).toMatchObject([{ stage: 'image-gen', status: 'failed', fee_usd: 0, detail: { reason: 'provider_error' } }]);
    expect(nanoOf(answer.x_router.cost_usd)).toBe(costOf(answer));
  }, 60_000);

  test('a cap without room for an image lets none be bought', async () => {
    const poor = await newAccount('team', { cost_cap_usd: '0.005', cost_cap_period: 'month' });
    const bought = (): number => upstream.getRequests().filter(({ path }) => path.endsWith('/images/generations')).length;
    const before = bought();
    const answer = await ask('A red fox', ['image-gen'], { max_tokens: 64 }, poor.key);
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'length' });
    expect(answer.router_metadata).toMatchObject({ stopped_by: 'cost_cap', pipeline: [] });
    expect(bought()).toBe(before);
  }, 60_000);

  test('zero data retention is met by a model that keeps nothing, or refused', async () => {
    const keeping = { model: SIMULATOR, zdr: true, plugin_options: { 'image-gen': { model: 'openai/gpt-image-1' } } };
    await expect(ask('A red fox', ['image-gen'], keeping)).rejects.toMatchObject({ status: 400, code: 'plugin_conflicts_with_policy' });
    const answer = await ask('A red fox', ['image-gen'], { model: SIMULATOR, zdr: true });
    expect(answer.router_metadata.pipeline).toMatchObject([{ detail: { model: 'simulator/painter' } }]);
  }, 60_000);

  test('a provider that the request leaves out makes no image either', async () => {
    const without = { model: SIMULATOR, provider: { ignore: ['OpenAI'] } };
    await expect(ask('A red fox', ['image-gen'], { ...without, plugin_options: { 'image-gen': { model: 'openai/gpt-image-1' } } })).rejects.toMatchObject({ status: 400, code: 'plugin_conflicts_with_policy' });
    const answer = await ask('A red fox', ['image-gen'], without);
    expect(answer.router_metadata.pipeline).toMatchObject([{ detail: { model: 'simulator/painter' } }]);
  }, 60_000);
});

describe('a model that the lists of the account or the key leave out makes no image', () => {
  const call = async (key: string, method: string, path: string, body?: object): Promise<{ readonly status: number; readonly json: Readonly<Record<string, unknown>> }> => {
    const answer = await fetch(`${gateway.baseUrl}${path}`, { method, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: answer.status, json: (await answer.json()) as Readonly<Record<string, unknown>> };
  };
  const bought = (): number => upstream.getRequests().filter(({ path }) => path.endsWith('/images/generations')).length;
  const modelsTold = async (key: string): Promise<unknown> => ((await call(key, 'GET', '/api/plugins')).json['data'] as readonly { readonly id: string; readonly models?: unknown }[]).find(({ id }) => id === 'image-gen')?.models;
  /** A policy is seen by edge a moment after it is set. */
  const under = async (policy: object, models: readonly string[]): Promise<string> => {
    const { key } = await newAccount('team');
    expect(await call(key, 'PUT', '/api/policy', policy)).toMatchObject({ status: 200 });
    await until(async () => JSON.stringify(await modelsTold(key)) === JSON.stringify(models), 10_000, 50, 'the policy to be seen');
    return key;
  };
  const named = { model: SIMULATOR, plugin_options: { 'image-gen': { model: 'openai/gpt-image-1' } } };
  const REFUSED = { status: 400, code: 'plugin_conflicts_with_policy', message: expect.stringContaining('left out by: lists of models.') };

  test('denied: another one makes it, or none does', async () => {
    const before = bought();
    const key = await under({ deny_models: ['openai/gpt-image-1', 'GPT-image-1-mini'] }, ['simulator/painter']);
    await expect(ask('A red fox', ['image-gen'], named, key)).rejects.toMatchObject(REFUSED);
    expect((await ask('A red fox', ['image-gen'], { model: SIMULATOR }, key)).router_metadata.pipeline).toMatchObject([{ detail: { model: 'simulator/painter' } }]);
    expect(bought()).toBe(before);
  }, 60_000);

  test('not among those that are allowed, by the account or by the key', async () => {
    const before = bought();
    const chatAlone = await under({ allow_models: [SIMULATOR] }, []);
    await expect(ask('A red fox', ['image-gen'], { model: SIMULATOR }, chatAlone)).rejects.toMatchObject(REFUSED);
    expect((await ask('A red fox', [], { model: SIMULATOR }, chatAlone)).choices).toHaveLength(1);
    const made = await call(account.key, 'POST', '/api/auth', { name: 'pictures', scopes: ['inference'], limits: { allowed_models: [SIMULATOR, 'simulator/painter'] } });
    const key = String(made.json['key']);
    await expect(ask('A red fox', ['image-gen'], named, key)).rejects.toMatchObject(REFUSED);
    expect((await ask('A red fox', ['image-gen'], { model: SIMULATOR }, key)).router_metadata.pipeline).toMatchObject([{ detail: { model: 'simulator/painter' } }]);
    expect(bought()).toBe(before);
  }, 60_000);
});

test.each([
  ['an unknown option', { plugins: [{ id: 'web-search', results: 3 }] }, 'plugin_options.web-search.results', 'invalid_value'],
  ['a value out of bounds', { plugins: ['pdf-reader'], plugin_options: { 'pdf-reader': { max_pages: 0 } } }, 'plugin_options.pdf-reader.max_pages', 'invalid_value'],
  ['a value of another type', { plugins: ['memory'], plugin_options: { memory: { write: 'yes' } } }, 'plugin_options.memory.write', 'invalid_type'],
  ['options of an unknown plugin', { plugin_options: { oracle: {} } }, 'plugin_options.oracle', 'unknown_plugin'],
  ['a size that the chosen image model has not', { plugins: ['image-gen'], plugin_options: { 'image-gen': { model: 'openai/gpt-image-1', size: '256x256' } } }, 'plugin_options.image-gen.size', 'invalid_value'],
  ['a tool of the name of ours', { plugins: ['image-gen'], tools: [{ type: 'function', function: { name: 'generate_image' } }] }, 'tools.[0].function.name', 'invalid_value'],
  ['memory under zero data retention', { plugins: ['memory'], zdr: true }, 'plugins', 'plugin_conflicts_with_policy'],
])('%s is 400 and names it', async (_what, more, param, code) => {
  await expect(ask('hello', [], more)).rejects.toMatchObject({ status: 400, param, code });
}, 60_000);

test('a file that cannot be read is 400 and says where and why; nothing is charged', async () => {
  const content = [{ type: 'text', text: 'Read it' }, { type: 'file', file: { filename: 'x.pdf', file_data: `data:application/pdf;base64,${Buffer.from('%PDF-1.4 broken').toString('base64')}` } }];
  await expect(ask(content, ['pdf-reader'])).rejects.toMatchObject({ status: 400, param: 'messages.[0].content.[1].file.file_data', message: expect.stringContaining('damaged') });
  const inside = [{ type: 'file', file: { filename: 'x.pdf', file_data: 'http://169.254.169.254/latest.pdf' } }];
  await expect(ask(inside, ['pdf-reader'])).rejects.toMatchObject({ status: 400, param: 'messages.[0].content.[0].file.file_data' });
}, 120_000);

test('free plugins are for free accounts, paid ones are not; the list tells them apart', async () => {
  const free = await newAccount('free');
  await expect(ask('hello', ['web-search', 'memory'], {}, free.key)).rejects.toMatchObject({ status: 403, code: 'PLUGIN_REQUIRES_PAID' });
  expect((await ask('hello', ['gutenberg'], {}, free.key)).choices).toHaveLength(1);
  const { data } = (await (await fetch(`${gateway.baseUrl}/api/plugins`, { headers: { authorization: `Bearer ${free.key}` } })).json()) as { data: readonly { readonly id: string; readonly paid: boolean; readonly fee_usd: number }[] };
  expect(data.filter(({ id }) => ['memory', 'pdf-reader', 'web-search', 'gutenberg'].includes(id)).map(({ id, paid, fee_usd: fee }) => [id, paid, fee])).toEqual([['memory', true, 0], ['pdf-reader', true, 0.001], ['web-search', false, 0.000000123], ['gutenberg', false, 0]]);
}, 60_000);
