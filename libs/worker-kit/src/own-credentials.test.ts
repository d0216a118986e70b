import { expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import { messageCodec } from '@signalbox/contracts/load';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import { createOwnCredentials } from './own-credentials.js';

const settled = async (): Promise<void> => {
  for (let i = 0; i < 10; i += 1) await Promise.resolve();
};

async function world() {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const held = new Map<string, { accountId: string; secret: string; baseUrl: string }>([['cred_1', { accountId: 'acct_1', secret: 'sk-one', baseUrl: '' }]]);
  const state = { asked: 0, isAway: false, gate: undefined as Promise<void> | undefined };
  const accounts: RpcClient = {
    unary: async <Request extends object, Response>(_method: string, request: Request) => {
      state.asked += 1;
      const { accountId, handle } = request as { accountId: string; handle: string };
      const found = held.get(handle);
      await state.gate;
      if (state.isAway) throw new Fault('peer_unavailable', 'away');
      return (found === undefined || found.accountId !== accountId ? { found: false, secret: '', baseUrl: '' } : { found: true, secret: found.secret, baseUrl: found.baseUrl }) as Response;
    },
    stream: () => {
      throw new Error('no streams');
    },
    isConnected: () => true,
    close: () => Promise.resolve(),
  };
  const adapterAt = (baseUrl: string) => createOpenAiChatAdapter({ provider: 'openai', baseUrl });
  const own = createOwnCredentials({ accounts, bus, clock, adapter: adapterAt('https://api.example/v1'), adapterAt });
  await own.start();
  const tell = async (accountId: string, keyId = ''): Promise<void> => {
    bus.announce('keys.v1.revoked', messageCodec<object, object>('signalbox.events.v1.KeyInvalidated').encode({ keyId, accountId, reason: 'provider_key' }));
    await settled();
  };
  const secretOf = async (handle = 'cred_1', accountId = 'acct_1'): Promise<string | undefined> => {
    const taken = (await own.resolve(accountId, handle))?.pool.take('m');
    return taken?.ok === true ? taken.credential.secret?.unwrap() : undefined;
  };
  return { clock, bus, held, state, own, tell, secretOf };
}

test('asks accounts once, and answers further calls from the cache', async () => {
  const { own, state, secretOf } = await world();
  expect(await Promise.all([secretOf(), secretOf()])).toEqual(['sk-one', 'sk-one']);
  expect(await secretOf()).toBe('sk-one');
  expect([state.asked, own.size()]).toEqual([1, 1]);
});

test('a removed credential is dropped as soon as the event arrives; the event of an API key drops nothing', async () => {
  const { held, state, tell, secretOf } = await world();
  await secretOf();
  held.clear();
  await tell('acct_1', 'key_1');
  expect(await secretOf()).toBe('sk-one');
  await tell('acct_2');
  expect([await secretOf(), state.asked]).toEqual(['sk-one', 1]);
  await tell('acct_1');
  expect(await secretOf()).toBeUndefined();
});

test('an answer that was overtaken by an event is not cached', async () => {
  const { held, state, own, tell, secretOf } = await world();
  let open = (): void => undefined;
  state.gate = new Promise((resolve) => (open = resolve));
  const asking = secretOf();
  await settled();
  held.clear();
  await tell('acct_1');
  open();
  await asking;
  expect(own.size()).toBe(0);
  expect(await secretOf()).toBeUndefined();
});

test('without a live subscription a credential is fetched again each second', async () => {
  const { clock, bus, held, secretOf } = await world();
  await secretOf();
  bus.setConnected(false);
  held.clear();
  expect(await secretOf()).toBe('sk-one');
  clock.advance(1_000);
  expect(await secretOf()).toBeUndefined();
});

test('while accounts is away a cached credential works for ten minutes, and an unknown one is a fault', async () => {
  const { clock, state, own, secretOf } = await world();
  await secretOf();
  state.isAway = true;
  clock.advance(599_000);
  expect(await secretOf()).toBe('sk-one');
  await expect(own.resolve('acct_1', 'cred_2')).rejects.toThrow(/^peer_unavailable/);
  clock.advance(2_000);
  await expect(own.resolve('acct_1', 'cred_1')).rejects.toThrow(/^peer_unavailable/);
});

test('another account does not get a credential by its handle', async () => {
  const { secretOf } = await world();
  await secretOf();
  expect(await secretOf('cred_1', 'acct_2')).toBeUndefined();
});

test('the bench of a credential survives a new look-up, also at its own address', async () => {
  const { clock, held, own } = await world();
  held.set('cred_2', { accountId: 'acct_1', secret: 'sk-two', baseUrl: 'https://mine.example/v1' });
  const first = await own.resolve('acct_1', 'cred_2');
  if (first === undefined) throw new Error('not found');
  expect([first.isAtOwnAddress, first.adapter.origin]).toEqual([true, 'https://mine.example']);
  clock.advance(59_000);
  const taken = first.pool.take('m');
  if (taken.ok) first.pool.refused(taken.credential);
  clock.advance(2_000);
  const again = await own.resolve('acct_1', 'cred_2');
  expect(again?.pool.take('m').ok).toBe(false);
});
