/** The admin port on a free loopback port, with one fake in memory for all other services. */
import type { RpcClient } from '@signalbox/rpc/call';
import { Secret } from '@signalbox/runtime/secret';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdminApp } from '../routes/admin/handler.js';

export const ADMIN_TOKEN = 'an admin token';

export interface AdminDoor {
  /** As the operator, unless `headers` say otherwise; `body` is sent as JSON. */
  call(method: string, path: string, options?: { readonly body?: string | undefined; readonly headers?: Readonly<Record<string, string>> }): Promise<Response>;
  stop(): Promise<void>;
}

/** `unary` answers for all services, and throws their failures. */
export async function startAdmin(unary: (method: string, message: object) => object, { nowMs = Date.UTC(2026, 10, 21), periodSeconds, variant = 'A' }: { readonly nowMs?: number; readonly periodSeconds?: number | undefined; readonly variant?: 'A' | 'B' } = {}): Promise<AdminDoor> {
  const neighbour = { unary: (method: string, message: object) => new Promise<object>((resolve) => resolve(unary(method, message))) } as unknown as RpcClient;
  const server = createServer(createAdminApp({ accounts: neighbour, quota: neighbour, billing: neighbour, routing: neighbour, plugins: neighbour, adminToken: new Secret(ADMIN_TOKEN), clock: { nowMs: () => nowMs, monotonicMs: () => 0, setTimer: () => ({ cancel: () => undefined }) }, periodSeconds, variant, isServed: () => true }));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    call: (method, path, { body, headers = { authorization: `Bearer ${ADMIN_TOKEN}` } } = {}) =>
      fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { 'content-type': 'application/json', ...headers }, ...(body === undefined ? {} : { body }) }),
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
