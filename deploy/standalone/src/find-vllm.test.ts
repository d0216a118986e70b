import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { findVllmModels, offeredByVllm } from './find-vllm.js';

let server: FakeProvider;
beforeEach(async () => {
  server = await startFakeProvider();
});
afterEach(() => server.stop());

test('only what the server holds is offered, and it is asked with its key', async () => {
  server.enqueue({ body: { object: 'list', data: [{ id: 'Qwen/Qwen3-32B', object: 'model' }, { id: 'openai/gpt-oss-20b' }] } });
  const models = await findVllmModels({ VLLM_BASE_URL: server.baseUrl, VLLM_API_KEY: 'one, two' });
  expect(offeredByVllm(models)).toBe('vllm/Qwen/Qwen3-32B,vllm/openai/gpt-oss-20b');
  expect([server.requests[0]?.path, server.requests[0]?.headers.authorization]).toEqual(['/v1/models', 'Bearer one']);
});

test.each([
  ['an error', { status: 500, body: {} }],
  ['a page', { body: '<html>' }],
  ['an empty list', { body: { data: [] } }],
  ['something else', { body: { models: 1 } }],
  ['nothing', { hang: true }],
])('a server that answers %s is taken at the operator’s word: all its models are offered', async (_what, answer) => {
  server.enqueue(answer);
  expect(offeredByVllm(await findVllmModels({ VLLM_BASE_URL: server.baseUrl }, { answerMs: 200 }))).toBe('');
});

test('without an address nobody is asked', async () => {
  expect(await findVllmModels({})).toBeUndefined();
  expect(server.requests).toHaveLength(0);
});
