/** Attempts on an account's own credential, and what others learn from them. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { createAllowList } from '@signalbox/net-guard/allow-list';
import { createDialer } from '@signalbox/net-guard/dialer';
import { Secret } from '@signalbox/runtime/secret';
import { sse } from '@signalbox/testkit/fake-provider';
import { createCredentialPool } from './credentials.js';
import type { DispatchOptions } from './dispatch.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import { chunk, requestOf, startDispatchRig, text, type DispatchRig, USAGE } from './testing/dispatch-rig.js';
import { createUpstream } from './upstream.js';

const WHOLE = { chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] };
const FAILS = { status: 500, body: {} };
const OWN = { byok: true, byokHandle: 'cred_1' };

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
  useOwn(false);
});
afterEach(() => rig.stop());

/** With a new pool for each attempt; what a refusal does to a pool is tested elsewhere. */
function useOwn(isAtOwnAddress: boolean, over: Partial<DispatchOptions> = {}): void {
  const adapter = createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl });
  rig.use(rig.clock, { ...over, ownCredentials: { resolve: () => ({ adapter, pool: createCredentialPool([new Secret('sk-own')], rig.clock), isAtOwnAddress }) } });
}

test('their failures are not observed, and do not close the endpoint for others', async () => {
  rig.provider.enqueue(FAILS, { status: 401, body: {} }, { status: 429, headers: { 'retry-after': '60' }, body: {} }, { chunks: [text('half')], cut: true }, FAILS, FAILS, WHOLE);
  for (let n = 0; n < 6; n += 1) await rig.run(requestOf(OWN));
  expect(rig.observed).toEqual([]);
  expect((await rig.run(requestOf())).at(-1)?.end).toMatchObject({ finishReason: 'stop' });
  expect(rig.provider.requests.map(({ headers }) => headers.authorization)).toEqual([...Array<string>(6).fill('Bearer sk-own'), 'Bearer sk-secret-one']);
});

test('they are sent even if the operator’s breaker for the endpoint is open', async () => {
  rig.provider.enqueue(...Array<object>(5).fill(FAILS), WHOLE);
  for (let n = 0; n < 5; n += 1) await rig.run(requestOf());
  expect(await rig.run(requestOf())).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0 } }]);
  expect((await rig.run(requestOf(OWN))).at(-1)?.end).toMatchObject({ finishReason: 'stop' });
});

test('their latency is reported to routing but to no breaker, and not at all for an account’s own address', async () => {
  rig.provider.enqueue(WHOLE, WHOLE);
  await rig.run(requestOf(OWN));
  expect(rig.observed).toMatchObject([{ ok: true, benchedMs: 0, forBreakers: false }]);
  const upstream = createUpstream(rig.provider.origin, createDialer({ allow: createAllowList([new URL(rig.provider.origin).host]) }));
  useOwn(true, { upstream });
  expect((await rig.run(requestOf(OWN))).at(-1)?.end).toMatchObject({ finishReason: 'stop' });
  expect(rig.observed).toHaveLength(1);
  await upstream.close();
});

test('zero tokens reported by an account’s own server are replaced by our count; those of the provider itself are believed', async () => {
  const long = 'word '.repeat(400);
  const silent = { chunks: [text(long), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }), sse('[DONE]')] };
  const upstream = createUpstream(rig.provider.origin, createDialer({ allow: createAllowList([new URL(rig.provider.origin).host]) }));
  rig.provider.enqueue(silent, silent);
  expect((await rig.run(requestOf({ ...OWN, promptTokens: 300 }))).at(-1)?.end).toMatchObject({ source: 'PROVIDER', flags: ['suspect'], tokens: { inputUncached: 0, outputText: 0 } });
  useOwn(true, { upstream });
  expect((await rig.run(requestOf({ ...OWN, promptTokens: 300 }))).at(-1)?.end).toMatchObject({ source: 'ESTIMATED', flags: ['estimated', 'suspect'], tokens: { inputUncached: 300, outputText: 500 } });
  await upstream.close();
});

test('an unknown or resting credential is not observed either', async () => {
  rig.use(rig.clock, { ownCredentials: { resolve: () => undefined } });
  expect(await rig.run(requestOf(OWN))).toMatchObject([{ failed: { class: 'NO_CREDENTIAL', status: 0 } }]);
  const adapter = createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl });
  const pool = createCredentialPool([new Secret('sk-own')], rig.clock);
  rig.use(rig.clock, { ownCredentials: { resolve: () => ({ adapter, pool, isAtOwnAddress: false }) } });
  rig.provider.enqueue({ status: 429, headers: { 'retry-after': '60' }, body: {} });
  await rig.run(requestOf(OWN));
  expect(await rig.run(requestOf(OWN))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0, retryAfterMs: 60_000 } }]);
  expect([rig.observed, rig.provider.requests.length]).toEqual([[], 1]);
});

test('if accounts is away, the attempt fails as our fault: not observed, and nothing is sent', async () => {
  rig.use(rig.clock, { ownCredentials: { resolve: () => Promise.reject(new Fault('peer_unavailable', 'away')) } });
  expect(await rig.run(requestOf(OWN))).toMatchObject([{ failed: { class: 'ACCOUNTS_AWAY', status: 0, retryable: true } }]);
  expect([rig.observed, rig.provider.requests.length, rig.log.filter((line) => line.startsWith('start'))]).toEqual([[], 0, []]);
});

test('the adapter is told which credential the provider refused, since it may hold an access token for it', async () => {
  const told: string[] = [];
  const adapter = { ...createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl }), onCredentialRefused: (secret: Secret) => void told.push(secret.unwrap()) };
  rig.use(rig.clock, { adapter, ownCredentials: { resolve: () => ({ adapter, pool: createCredentialPool([new Secret('sk-own')], rig.clock), isAtOwnAddress: false }) } });
  rig.provider.enqueue({ status: 401, body: {} }, { status: 403, body: {} }, { status: 429, body: {} }, WHOLE, { status: 401, body: {} });
  for (let n = 0; n < 4; n += 1) await rig.run(requestOf(OWN));
  expect(told).toEqual(['sk-own']);
  await rig.run(requestOf());
  expect(told).toEqual(['sk-own', 'sk-secret-one']);
});
