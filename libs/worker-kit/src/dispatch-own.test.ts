/** Attempts on an account's own credential, and what they say to others. */
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

/** With a pool of its own for each attempt: what a refusal does to that is told elsewhere. */
function useOwn(isAtOwnAddress: boolean, over: Partial<DispatchOptions> = {}): void {
  const adapter = createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl });
  rig.use(rig.clock, { ...over, ownCredentials: { resolve: () => ({ adapter, pool: createCredentialPool([new Secret('sk-own')], rig.clock), isAtOwnAddress }) } });
}

test('what they fail at is told to nobody, and closes the endpoint for nobody', async () => {
  rig.provider.enqueue(FAILS, { status: 401, body: {} }, { status: 429, headers: { 'retry-after': '60' }, body: {} }, { chunks: [text('half')], cut: true }, FAILS, FAILS, WHOLE);
  for (let n = 0; n < 6; n += 1) await rig.run(requestOf(OWN));
  expect(rig.observed).toEqual([]);
  expect((await rig.run(requestOf())).at(-1)?.end).toMatchObject({ finishReason: 'stop' });
  expect(rig.provider.requests.map(({ headers }) => headers.authorization)).toEqual([...Array<string>(6).fill('Bearer sk-own'), 'Bearer sk-secret-one']);
});

test('they go where the operator’s own may not, whose breaker is open', async () => {
  rig.provider.enqueue(...Array<object>(5).fill(FAILS), WHOLE);
  for (let n = 0; n < 5; n += 1) await rig.run(requestOf());
  expect(await rig.run(requestOf())).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0 } }]);
  expect((await rig.run(requestOf(OWN))).at(-1)?.end).toMatchObject({ finishReason: 'stop' });
});

test('how fast they are answered is told to routing, and to no breaker; at an address of the account’s own it says nothing of the provider', async () => {
  rig.provider.enqueue(WHOLE, WHOLE);
  await rig.run(requestOf(OWN));
  expect(rig.observed).toMatchObject([{ ok: true, benchedMs: 0, forBreakers: false }]);
  const upstream = createUpstream(rig.provider.origin, createDialer({ allow: createAllowList([new URL(rig.provider.origin).host]) }));
  useOwn(true, { upstream });
  expect((await rig.run(requestOf(OWN))).at(-1)?.end).toMatchObject({ finishReason: 'stop' });
  expect(rig.observed).toHaveLength(1);
  await upstream.close();
});

test('at an address of the account’s own a server that tells no tokens draws on the allotment by what was seen; on the provider itself it is believed', async () => {
  const long = 'word '.repeat(400);
  const silent = { chunks: [text(long), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }), sse('[DONE]')] };
  const upstream = createUpstream(rig.provider.origin, createDialer({ allow: createAllowList([new URL(rig.provider.origin).host]) }));
  rig.provider.enqueue(silent, silent);
  expect((await rig.run(requestOf({ ...OWN, promptTokens: 300 }))).at(-1)?.end).toMatchObject({ source: 'PROVIDER', flags: ['suspect'], tokens: { inputUncached: 0, outputText: 0 } });
  useOwn(true, { upstream });
  expect((await rig.run(requestOf({ ...OWN, promptTokens: 300 }))).at(-1)?.end).toMatchObject({ source: 'ESTIMATED', flags: ['estimated', 'suspect'], tokens: { inputUncached: 300, outputText: 500 } });
  await upstream.close();
});

test('one that is not known, or that rests, is told to nobody either', async () => {
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

test('one that accounts cannot tell now is no refusal of it: ours, told to nobody, and nothing is sent', async () => {
  rig.use(rig.clock, { ownCredentials: { resolve: () => Promise.reject(new Fault('peer_unavailable', 'away')) } });
  expect(await rig.run(requestOf(OWN))).toMatchObject([{ failed: { class: 'ACCOUNTS_AWAY', status: 0, retryable: true } }]);
  expect([rig.observed, rig.provider.requests.length, rig.log.filter((line) => line.startsWith('start'))]).toEqual([[], 0, []]);
});

test('whose credential the provider refused is told to the adapter, which may have fetched something for it: no other', async () => {
  const told: string[] = [];
  const adapter = { ...createOpenAiChatAdapter({ provider: 'fake', baseUrl: rig.provider.baseUrl }), onCredentialRefused: (secret: Secret) => void told.push(secret.unwrap()) };
  rig.use(rig.clock, { adapter, ownCredentials: { resolve: () => ({ adapter, pool: createCredentialPool([new Secret('sk-own')], rig.clock), isAtOwnAddress: false }) } });
  rig.provider.enqueue({ status: 401, body: {} }, { status: 403, body: {} }, { status: 429, body: {} }, WHOLE, { status: 401, body: {} });
  for (let n = 0; n < 4; n += 1) await rig.run(requestOf(OWN));
  expect(told).toEqual(['sk-own']);
  await rig.run(requestOf());
  expect(told).toEqual(['sk-own', 'sk-secret-one']);
});
