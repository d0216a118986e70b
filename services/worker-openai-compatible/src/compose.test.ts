import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { sse, startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { answerOf, NO_NEIGHBOURS, startAskedWorker, type AskedWorker } from '@signalbox/worker-kit/testing/asked-worker';
import { composeWorkerOpenaiCompatible } from './compose.js';
import { loadWorkerOpenaiCompatibleConfig } from './config.js';

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUg==', 'base64');
const ANSWER = { chunks: [sse({ choices: [{ index: 0, delta: { role: 'assistant', content: 'A cat.' }, finish_reason: null }] }), sse({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }), sse('[DONE]')] };

let provider: FakeProvider;
let pictures: Server;
let at: string;
let worker: AskedWorker;
let others: AskedWorker;

const start = (environment: Readonly<Record<string, string>>): Promise<AskedWorker> =>
  startAskedWorker(({ surroundings, options }) => composeWorkerOpenaiCompatible(loadWorkerOpenaiCompatibleConfig({ ...NO_NEIGHBOURS, ...environment }), surroundings, options));
const asked = (url: string) => ({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] });

beforeAll(async () => {
  provider = await startFakeProvider();
  pictures = createServer((_request, response) => void response.writeHead(200, { 'content-type': 'image/png' }).end(PNG));
  await new Promise<void>((resolve) => pictures.listen(0, '127.0.0.1', resolve));
  const address = pictures.address();
  at = `127.0.0.1:${String(typeof address === 'object' && address !== null ? address.port : 0)}`;
  [worker, others] = await Promise.all([start({ PROVIDER: 'vllm', VLLM_BASE_URL: provider.baseUrl, FETCH_ALLOW: at }), start({ PROVIDER: 'fireworks', FIREWORKS_API_KEY: 'fw-one', FIREWORKS_BASE_URL: provider.baseUrl })]);
});
afterAll(async () => {
  await Promise.all([worker.stop(), others.stop()]);
  await provider.stop();
  await new Promise((resolve) => pictures.close(resolve));
});

test('a host inside the operator’s network gets the image, not its URL', async () => {
  provider.enqueue(ANSWER);
  expect(answerOf(await worker.ask(asked(`http://${at}/a.png`)))).toMatchObject({ content: 'A cat.', finish_reason: 'stop' });
  expect(JSON.parse(provider.requests.at(-1)?.body ?? '')).toMatchObject(asked(`data:image/png;base64,${PNG.toString('base64')}`));
  expect(provider.requests.at(-1)?.headers.authorization).toBeUndefined();
});

test('a URL that leads to an internal address is refused by its name, and is neither fetched nor sent', async () => {
  const before = provider.requests.length;
  const events = await worker.ask(asked('http://10.0.0.1/a.png'));
  expect(events).toMatchObject([{ failed: { class: 'BAD_REQUEST', publicParam: 'messages.[0].content.[0].image_url.url', publicMessage: 'The URL does not lead to a public address.' } }]);
  expect(provider.requests).toHaveLength(before);
});

test('a host on the public internet fetches the URL itself', async () => {
  provider.enqueue(ANSWER);
  await others.ask(asked('https://x.example/a.png'));
  expect(JSON.parse(provider.requests.at(-1)?.body ?? '')).toMatchObject(asked('https://x.example/a.png'));
  expect(provider.requests.at(-1)?.headers.authorization).toBe('Bearer fw-one');
});
