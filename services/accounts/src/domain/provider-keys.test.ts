import { expect, test } from '@jest/globals';
import { createIdSource } from '@signalbox/kernel/ids';
import { randomBytes } from '@signalbox/runtime/random';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createMemoryStore } from '../adapters/memory-store.js';
import { createEnvelope } from './envelope.js';
import { createProviderKeys, type ProviderKeys } from './provider-keys.js';
import type { AccountRecord } from './records.js';

const ACCOUNT: AccountRecord = {
  id: 'acct_1', name: 'one', tier: 'team', variant: '', suspended: false, requestsPerMinute: null, burstPerSecond: null, includedTokens: null, overageNanoUsdPerMillion: null, trialCreditNanoUsd: null, keptCreditNanoUsd: null, byokTokens: null,
  hardCap: false, costCaps: [], policyCostCaps: [], policyHardCap: false, costWeight: null, policyBaselineModel: '', storeAnswers: false, policyStoreAnswers: null, baselineModel: '', allowModels: [], denyModels: [], allowProviders: [], denyProviders: [], routingMode: '', billingAnchorDay: 0, createdAt: 0,
};
const wanted = (over: object = {}): Parameters<ProviderKeys['set']>[0] => ({ accountId: 'acct_1', provider: 'openai', secret: new Secret('sk-0123456789-last'), zdr: true, baseUrl: '', ...over });

async function world() {
  const clock = createFakeClock();
  const store = createMemoryStore();
  await store.insertAccount(ACCOUNT);
  const told: object[] = [];
  const keysUnder = (current: string, ...older: string[]): ProviderKeys =>
    createProviderKeys({
      store, clock, ids: createIdSource(clock, randomBytes), announcer: { invalidated: (event) => void told.push(event) },
      envelope: createEnvelope(new Secret(current), older.map((text) => new Secret(text)), randomBytes),
      addressProblem: (url) => (url.includes('inside') ? 'does not lead to a public address.' : undefined),
    });
  return { store, told, keysUnder, keys: keysUnder('key one') };
}

test('keeps a credential, tells its end only, and everybody drops what they cached', async () => {
  const { keys, told } = await world();
  const set = await keys.set(wanted());
  expect(set).toEqual({ handle: expect.stringMatching(/^cred_/), accountId: 'acct_1', provider: 'openai', last4: 'last', zdr: true, baseUrl: '', createdAt: expect.any(Number) });
  expect(told).toEqual([{ keyId: '', accountId: 'acct_1', reason: 'provider_key' }]);
  expect(JSON.stringify((await keys.list('acct_1', 5, '')).providerKeys)).not.toContain('0123456789');
});

test('resolves by its handle for its own account and provider; another credential has another handle', async () => {
  const { keys } = await world();
  const first = await keys.set(wanted());
  const second = await keys.set(wanted({ secret: new Secret(' sk-second-0123\n'), baseUrl: 'https://mine.example/v1' }));
  if (first === undefined || second === undefined || 'problem' in first || 'problem' in second) throw new Error('not set');
  expect(await keys.resolve('acct_1', 'openai', second.handle)).toEqual({ secret: 'sk-second-0123', baseUrl: 'https://mine.example/v1' });
  expect(await keys.resolve('acct_1', 'openai', first.handle)).toBeUndefined();
  expect(await keys.resolve('acct_2', 'openai', second.handle)).toBeUndefined();
  expect(await keys.resolve('acct_1', 'groq', second.handle)).toBeUndefined();
  expect(await keys.remove('acct_1', 'openai')).toMatchObject({ handle: second.handle });
  expect(await keys.resolve('acct_1', 'openai', second.handle)).toBeUndefined();
});

test.each([
  ['provider', { provider: '../x' }],
  ['secret', { secret: new Secret('  ') }],
  ['secret', { secret: new Secret('two words') }],
  ['secret', { secret: new Secret('line\r\nx-injected: 1') }],
  ['secret', { secret: new Secret('{line\r\nx-injected: 1}') }],
  ['secret', { provider: 'google-vertex', secret: new Secret('{"private_key": "a line\n"}') }],
  ['secret', { secret: new Secret('x'.repeat(16_385)) }],
  ['base_url', { baseUrl: 'https://inside.example' }],
])('refuses by the name of %s: %#', async (field, over) => {
  const { keys, told } = await world();
  expect(await keys.set(wanted(over))).toEqual({ problem: expect.stringMatching(new RegExp(`^${field} `)) });
  expect(told).toEqual([]);
});

test('an unknown account has none; a short secret and a key file show no end', async () => {
  const { keys } = await world();
  expect(await keys.set(wanted({ accountId: 'acct_x' }))).toBeUndefined();
  expect(await keys.set(wanted({ secret: new Secret('short-one') }))).toMatchObject({ last4: '' });
  expect(await keys.set(wanted({ secret: new Secret('{"private_key":"abc"}') }))).toMatchObject({ last4: '' });
});

test('a key file is kept as one line that a header can hold, and says what it said', async () => {
  const { keys } = await world();
  const set = await keys.set(wanted({ secret: new Secret('{\n  "private_key": "-----BEGIN\\nabc",\r\n\t"name": "Jürgen 𝄞"\n}\n') }));
  if (set === undefined || 'problem' in set) throw new Error('not set');
  const { secret = '' } = (await keys.resolve('acct_1', 'openai', set.handle)) ?? {};
  expect(secret).toMatch(/^[\x20-\x7e]+$/);
  expect(JSON.parse(secret)).toEqual({ private_key: '-----BEGIN\nabc', name: 'Jürgen 𝄞' });
});

test('turning SECRETS_KEY round: read under the old one, re-wrapped once, then the old one can go', async () => {
  const { keys, keysUnder } = await world();
  expect(await keysUnder('whatever it will be').isSecretsKeyTheirs()).toBe(true);
  const set = await keys.set(wanted());
  if (set === undefined || 'problem' in set) throw new Error('not set');
  expect([await keys.isSecretsKeyTheirs(), await keysUnder('key two').isSecretsKeyTheirs()]).toEqual([true, false]);
  const resolve = (under: ProviderKeys) => under.resolve('acct_1', 'openai', set.handle);
  await expect(resolve(keysUnder('key two'))).rejects.toThrow(/^internal_error/);
  expect(await keysUnder('key two').rewrap()).toEqual({ rewrapped: 0, unreadable: 1 });
  const turning = keysUnder('key two', 'key one');
  expect(await resolve(turning)).toMatchObject({ secret: 'sk-0123456789-last' });
  expect(await turning.rewrap()).toEqual({ rewrapped: 1, unreadable: 0 });
  expect(await turning.rewrap()).toEqual({ rewrapped: 0, unreadable: 0 });
  expect([await keysUnder('key two').isSecretsKeyTheirs(), await keys.isSecretsKeyTheirs()]).toEqual([true, false]);
  expect(await resolve(keysUnder('key two'))).toMatchObject({ secret: 'sk-0123456789-last' });
});
