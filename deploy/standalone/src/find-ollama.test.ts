import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { findOllama, offeredModels } from './find-ollama.js';

const held = (...names: readonly string[]): object => ({ models: names.map((name) => ({ name, model: name, digest: 'sha256:1', details: {} })) });

let server: FakeProvider;
beforeEach(async () => {
  server = await startFakeProvider();
});
afterEach(() => server.stop());

test.each([
  ['holds', { body: held('gpt-oss:20b', 'mistral-nemo:latest') }, ['gpt-oss:20b', 'mistral-nemo']],
  ['holds nothing', { body: held() }, []],
  ['does not say', { body: { models: [{ name: 'gpt-4', digest: '' }] } }, undefined],
  ['is something else', { body: { hello: 'there' } }, undefined],
])('on the usual port it joins with what it %s', async (_what, answer, models) => {
  server.enqueue(answer);
  expect(await findOllama({}, { usualUrl: server.baseUrl, answerMs: 10_000 })).toEqual({ baseUrl: server.baseUrl, models });
  expect(server.requests[0]?.path).toBe('/v1/api/tags');
});

test.each([
  ['an error', { status: 500, body: {} }],
  ['no JSON', { body: '<html>' }],
  ['nothing', { hang: true }],
])('on the usual port %s is no Ollama', async (_what, answer) => {
  server.enqueue(answer);
  expect(await findOllama({}, { usualUrl: server.baseUrl, answerMs: 50 })).toBeUndefined();
});

test.each([
  ['answers', { body: held('qwen3:32b') }, ['qwen3:32b'], 10_000],
  ['holds nothing that it says', { body: held() }, undefined, 10_000],
  ['is not up yet', { hang: true }, undefined, 50],
])('where the operator says it is, it joins when it %s', async (_what, answer, models, answerMs) => {
  server.enqueue(answer);
  expect(await findOllama({ OLLAMA_BASE_URL: server.baseUrl }, { answerMs })).toEqual({ baseUrl: server.baseUrl, models });
});

test('it is not looked for on request, and joins all the same where the operator says it is', async () => {
  expect(await findOllama({ OLLAMA: 'off' }, { usualUrl: server.baseUrl })).toBeUndefined();
  expect(server.requests).toHaveLength(0);
  expect(await findOllama({ OLLAMA: 'off', OLLAMA_BASE_URL: server.baseUrl })).toMatchObject({ baseUrl: server.baseUrl });
});

test.each([
  [undefined, ''],
  [{ baseUrl: 'x', models: undefined }, ''],
  [{ baseUrl: 'x', models: [] }, 'ollama/'],
  [{ baseUrl: 'x', models: ['a:1', 'b'] }, 'ollama/a:1,ollama/b'],
])('routing is told of %j: %j', (found, offered) => {
  expect(offeredModels(found)).toBe(offered);
});
