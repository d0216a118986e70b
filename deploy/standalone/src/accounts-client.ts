/** The start's own client of accounts. */
import type { Clock } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import type { ProcessDoors } from '@signalbox/runtime/lifecycle';
import { randomBytes } from '@signalbox/runtime/random';

const DEADLINE_MS = 10_000;
/** A call waits a second for a connection: less than a busy machine may need, or a process that still compiles its code, and a call that fails here ends the start. */
const CONNECT_MS = 30_000;
const LOOK_MS = 10;

/** Resolves once the client is connected. After CONNECT_MS it resolves too: the next call then says why there is no connection. */
export function untilConnected(client: Pick<RpcClient, 'isConnected'>, clock: Clock): Promise<void> {
  const endMs = clock.monotonicMs() + CONNECT_MS;
  return new Promise((resolve) => {
    const look = (): void => {
      if (client.isConnected() || clock.monotonicMs() >= endMs) resolve();
      else clock.setTimer(LOOK_MS, look);
    };
    look();
  });
}

/** `addresses` are `host:port`, separated by commas; accounts in this process is found in `doors` and called in memory. */
export async function openAccountsClient(addresses: string, doors?: ProcessDoors): Promise<RpcClient> {
  const client = createRpcClient({ area: 'accounts', addresses: addresses.split(','), door: 'unary', clock: systemClock, randomBytes, defaultDeadlineMs: DEADLINE_MS, doors });
  await untilConnected(client, systemClock);
  return client;
}
