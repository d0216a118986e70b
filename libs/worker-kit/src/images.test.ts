import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { GenerateImagesRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { silentLog } from '@signalbox/runtime/log';
import { createMetrics } from '@signalbox/runtime/metrics';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { oneTurn } from '@signalbox/testkit/until';
import { createCredentialPool } from './credentials.js';
import { createImageMaker, type MakeImages } from './images.js';
import { createWorkerMetrics } from './metrics.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import { createUpstream, type Upstream } from './upstream.js';

const PICTURE = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1');
const ANSWER = { body: { created: 1, data: [{ b64_json: PICTURE.toString('base64') }], usage: { input_tokens: 9 } } };
const asked = (over: Partial<GenerateImagesRequest__Output> = {}): GenerateImagesRequest__Output => ({
  requestId: 'chatcmpl-1', accountId: 'acct_1', providerModelId: 'gpt-image-1', prompt: 'A red fox', count: 1, size: '1024x1024', parameters: Buffer.from('{"quality":"medium"}'), byok: false, byokHandle: '', ...over,
});

let provider: FakeProvider;
let upstream: Upstream;
let clock: FakeClock;
let make: MakeImages;
const { signal } = new AbortController();

beforeEach(async () => {
  provider = await startFakeProvider();
  clock = createFakeClock();
  const adapter = createOpenAiChatAdapter({ provider: 'openai', baseUrl: provider.baseUrl });
  upstream = createUpstream(adapter.origin);
  make = createImageMaker({
    adapter, upstream, clock, log: silentLog, credentials: createCredentialPool([new Secret('sk-operators')], clock), metrics: createWorkerMetrics(createMetrics({ service: 'worker-openai', withProcessMetrics: false })),
    ownCredentials: { resolve: (accountId, handle) => (accountId === 'acct_1' && handle === 'cred_1' ? { pool: createCredentialPool([new Secret('sk-own')], clock), adapter, isAtOwnAddress: false } : handle === 'cred_away' ? Promise.reject(new Fault('peer_unavailable', 'away')) : undefined) },
  });
});
afterEach(async () => {
  await upstream.close();
  await provider.stop();
});

test('asks the image API with the model, the size and the parameters of the operator, and returns the files and the reported tokens', async () => {
  provider.enqueue(ANSWER);
  expect(await make(asked(), signal)).toEqual({ images: [PICTURE], promptTokens: 9 });
  expect(provider.requests[0]).toMatchObject({ path: '/v1/images/generations', headers: { authorization: 'Bearer sk-operators', 'x-request-id': 'chatcmpl-1/image' } });
  expect(JSON.parse(provider.requests[0]?.body ?? '')).toEqual({ model: 'gpt-image-1', prompt: 'A red fox', n: 1, size: '1024x1024', quality: 'medium' });
});

test("an account's own credential is used alone, and without it nothing is called", async () => {
  provider.enqueue(ANSWER);
  await make(asked({ byok: true, byokHandle: 'cred_1' }), signal);
  expect(provider.requests[0]?.headers.authorization).toBe('Bearer sk-own');
  expect(await make(asked({ byok: true, byokHandle: 'cred_9' }), signal)).toMatchObject({ failed: { class: 'NO_CREDENTIAL' } });
  expect(await make(asked({ byok: true }), signal)).toMatchObject({ failed: { class: 'NO_CREDENTIAL' } });
  expect(await make(asked({ byok: true, byokHandle: 'cred_away' }), signal)).toMatchObject({ failed: { class: 'ACCOUNTS_AWAY' } });
  expect(provider.requests).toHaveLength(1);
});

test('a kept connection that turns out to be closed is followed by one more call, on a new one', async () => {
  provider.enqueue(ANSWER, { drop: true }, { drop: true }, ANSWER);
  const made = async (): Promise<unknown> => {
    const response = await make(asked(), signal);
    // undici frees the connection a turn after the answer.
    await oneTurn();
    await oneTurn();
    return response.failed?.class ?? response.images?.length;
  };
  expect([await made(), await made(), await made()]).toEqual([1, 'DISCONNECTED', 1]);
  expect(provider.requests.map(({ clientPort }, at, all) => clientPort === all[at - 1]?.clientPort)).toEqual([false, true, false, false]);
});

test('an answer with far more JSON values than images have is GARBAGE', async () => {
  provider.enqueue({ body: { ...ANSWER.body, x: Array.from({ length: 410_000 }, () => 0) } });
  expect(await make(asked(), signal)).toMatchObject({ failed: { class: 'GARBAGE' } });
});

test('an answer that arrives byte by byte is not kept as single bytes', async () => {
  provider.enqueue({ chunks: [...JSON.stringify({ created: 1, x: 'x'.repeat(30_000), data: ANSWER.body.data })] });
  const join = jest.spyOn(Buffer, 'concat');
  expect(await make(asked(), signal)).toEqual({ images: [PICTURE] });
  const kept = join.mock.calls.map(([parts]) => parts.length);
  join.mockRestore();
  expect(Math.max(...kept)).toBeLessThan(100);
});

test('a credential that was refused or told to wait is not used again', async () => {
  provider.enqueue({ status: 429, headers: { 'retry-after': '7' }, body: { error: { message: 'Rate limit reached' } } });
  expect(await make(asked(), signal)).toMatchObject({ failed: { class: 'RATE_LIMITED', retryAfterMs: 7_000 } });
  expect(await make(asked(), signal)).toMatchObject({ failed: { class: 'RATE_LIMITED' } });
  provider.enqueue({ status: 401, body: { error: { message: 'Incorrect API key provided: sk-operators' } } });
  const refused = await make(asked({ providerModelId: 'gpt-image-1-mini' }), signal);
  expect(refused).toMatchObject({ failed: { class: 'CREDENTIAL', publicMessage: '' } });
  expect(await make(asked({ providerModelId: 'gpt-image-1-mini' }), signal)).toMatchObject({ failed: { class: 'NO_CREDENTIAL' } });
  expect(provider.requests).toHaveLength(2);
});

test.each([
  ['a refusal by policy', { status: 400, body: { error: { message: 'Your request was rejected by the safety system.', code: 'moderation_blocked' } } }, 'CONTENT_POLICY'],
  ['an error of the provider', { status: 500, body: 'oops' }, 'PROVIDER_ERROR'],
  ['an answer without an image', { body: { data: [] } }, 'EMPTY'],
  ['a broken answer', { chunks: ['{"data":['], cut: true }, 'DISCONNECTED'],
])('%s fails with the right class', async (_what, answer, failureClass) => {
  provider.enqueue(answer);
  expect(await make(asked(), signal)).toMatchObject({ failed: { class: failureClass } });
});

test('a call without an answer ends after its time-out, and one whose caller has left at once', async () => {
  provider.enqueue({ hang: true }, { hang: true });
  const waiting = make(asked(), signal);
  clock.advance(110_000);
  expect(await waiting).toMatchObject({ failed: { class: 'TIMEOUT_FIRST_BYTE' } });
  const left = new AbortController();
  const leaving = make(asked(), left.signal);
  left.abort();
  expect(await leaving).toMatchObject({ failed: { class: 'DISCONNECTED' } });
});
