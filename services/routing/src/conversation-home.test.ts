import { afterEach, expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import type { Service } from '@signalbox/runtime/lifecycle';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeRouting } from './compose.js';
import { loadRoutingConfig } from './config.js';

let service: Service;
let client: RpcClient;
afterEach(async () => {
  await client.close();
  await service.stop();
});

test('a conversation stays with who answered it, where another had been planned', async () => {
  service = composeRouting(loadRoutingConfig({ PROVIDERS: 'openai,azure-openai', EXPLORATION: 'off' }), { clock: systemClock, randomBytes, log: silentLog, withProcessMetrics: false }, { bus: createMemoryBus({ clock: systemClock }) });
  await service.start();
  client = createRpcClient({ area: 'routing', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 5_000 });
  const firstOf = async (request: DecideRequest): Promise<string> => {
    const { attempts } = await client.unary<DecideRequest, DecideResponse__Output>('Decide', { accountId: 'acct_1', model: 'auto', promptText: 'Say this in French: good morning', promptTokens: 20_000, seed: 7, ...request });
    return attempts[0]?.endpointId ?? '';
  };
  for (const session of ['s', 't', 'u']) {
    const planned = await firstOf({ session });
    const other = planned.startsWith('openai:') ? planned.replace('openai:', 'azure-openai:') : planned.replace('azure-openai:', 'openai:');
    expect(await firstOf({ session })).toBe(planned);
    expect(await firstOf({ session, homeEndpointId: other })).toBe(other);
  }
});
