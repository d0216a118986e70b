import { expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock } from '@signalbox/testkit/clock';
import { randomBytes } from 'node:crypto';
import { createFakeAccounts, PEPPER } from '../testing/accounts.js';
import { accountWith, keyWith } from '../testing/callers.js';
import { createAuthenticator } from './authenticator.js';
import { watchAccounts } from './watched-accounts.js';

/** A cached key, a connected bus, and an accounts service that sends no events. */
async function bench(isLost = false, isFound = true) {
  const clock = createFakeClock();
  const fake = createFakeAccounts();
  const key = makeApiKey(randomBytes);
  fake.add(key, { key: keyWith(), account: accountWith() });
  const cut: string[] = [];
  const authenticator = createAuthenticator({ accounts: fake, bus: createMemoryBus({ clock }), clock, pepper: new Secret(PEPPER), variant: 'A', onCompromised: (keyId) => void cut.push(keyId) });
  await authenticator.start();
  const changing: RpcClient = {
    ...fake,
    unary: <Asked extends object, Answer>(_method: string, _request: Asked): Promise<Answer> => {
      fake.add(key, { key: keyWith({ status: 'revoked' }), account: accountWith() });
      return isLost ? Promise.reject(new Fault('peer_unavailable', 'no answer')) : Promise.resolve({ found: isFound } as Answer);
    },
  };
  const ask = async (): Promise<string> => (await authenticator.authenticate(key)).kind;
  expect(await ask()).toBe('caller');
  return { watched: watchAccounts(changing, authenticator), ask, cut };
}

test.each<[string, object]>([
  ['RevokeKey', { ref: { accountId: 'acct_1', keyId: 'key_1' } }],
  ['UpdateKey', { ref: { accountId: 'acct_1', keyId: 'key_1' } }],
  ['RotateKey', { ref: { accountId: 'acct_1', keyId: 'key_1' } }],
  ['SetAccount', { account: { id: 'acct_1' } }],
  ['SetProviderKey', { accountId: 'acct_1' }],
  ['RemoveProviderKey', { accountId: 'acct_1' }],
])('%s takes effect at the edge that asked for it, without an event', async (method, request) => {
  const { watched, ask, cut } = await bench();
  await watched.unary(method, request);
  expect([await ask(), cut]).toEqual(['refused', []]);
});

test('a change whose answer was lost may have been made: the key is looked up again', async () => {
  const { watched, ask, cut } = await bench(true);
  await expect(watched.unary('RevokeKey', { ref: { keyId: 'key_1' }, compromised: true })).rejects.toThrow('no answer');
  expect([await ask(), cut]).toEqual(['refused', []]);
});

test('a compromised key is cut only by a request that says so, and reads drop nothing', async () => {
  const { watched, ask, cut } = await bench();
  await watched.unary('GetKey', { accountId: 'acct_1', keyId: 'key_1' });
  expect(await ask()).toBe('caller');
  await watched.unary('RevokeKey', { ref: { keyId: 'key_1' }, compromised: true });
  expect([await ask(), cut]).toEqual(['refused', ['key_1']]);
});

test('a change that names no existing key cuts nothing', async () => {
  const { watched, cut } = await bench(false, false);
  await watched.unary('RevokeKey', { ref: { keyId: 'key_unknown' }, compromised: true });
  expect(cut).toEqual([]);
});
