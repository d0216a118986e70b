import { expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import { messageCodec } from '@signalbox/contracts/load';
import type { RpcClient } from '@signalbox/rpc/call';
import { silentLog } from '@signalbox/runtime/log';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createLateWorkers } from './late-workers.js';

const settled = async (): Promise<void> => {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
};

function world(providers: readonly string[], held: { accountId: string; provider: string }[]) {
  const bus = createMemoryBus({ clock: createFakeClock() });
  const started: string[] = [];
  let refusals = 0;
  const accounts: RpcClient = {
    unary: <Request extends object, Response>(_method: string, request: Request) => {
      const { accountId } = request as { accountId?: string };
      return Promise.resolve({ providerKeys: held.filter((key) => accountId === '' || key.accountId === accountId), hasMore: false } as Response);
    },
    stream: () => {
      throw new Error('no streams');
    },
    isConnected: () => true,
    close: () => Promise.resolve(),
  };
  const late = createLateWorkers({
    accounts, bus, log: silentLog, providers: new Set(providers),
    start: (provider) => {
      started.push(provider);
      return refusals-- > 0 ? Promise.reject(new Error('taken')) : Promise.resolve();
    },
  });
  const tell = (accountId: string, reason: string): void => bus.announce('keys.v1.revoked', messageCodec<object, object>('signalbox.events.v1.KeyInvalidated').encode({ keyId: '', accountId, reason }));
  return { late, started, held, tell, refuse: (times: number) => void (refusals = times) };
}

test('starts what is needed already, then what an account brings, each once and none that was not named', async () => {
  const { late, started, held, tell } = world(['groq', 'cohere'], [{ accountId: 'a', provider: 'groq' }, { accountId: 'b', provider: 'groq' }, { accountId: 'b', provider: 'vllm' }]);
  await late.begin();
  expect(started).toEqual(['groq']);
  held.push({ accountId: 'a', provider: 'cohere' });
  tell('a', 'updated');
  await settled();
  expect(started).toEqual(['groq']);
  tell('a', 'provider_key');
  tell('a', 'provider_key');
  await settled();
  expect(started).toEqual(['groq', 'cohere']);
});

test('one that could not be started is tried again at the next word, and none after the stop', async () => {
  const { late, started, tell, refuse } = world(['groq'], [{ accountId: 'a', provider: 'groq' }]);
  refuse(1);
  await late.begin();
  tell('a', 'provider_key');
  await settled();
  expect(started).toEqual(['groq', 'groq']);
  await late.stop();
  tell('a', 'provider_key');
  await settled();
  expect(started).toEqual(['groq', 'groq']);
});
