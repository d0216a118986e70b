/**
 * Accounts is told of a revocation and cannot say so: its connection to the bus moves no byte, and neither side has
 * noticed yet. Edges keep theirs.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startNats } from '@signalbox/local-stores/nats';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { eventually } from '../conformance/eventually.js';
import { readUntil } from '../conformance/http.js';
import { admin } from '../harness/books.js';
import { startGateway, type Gateway } from '../harness/gateway.js';

interface BusProxy {
  readonly url: string;
  /** From now on nothing that clients of this name send arrives; connections stay open. Answers how many there are. */
  mute(name: string): number;
  close(): Promise<void>;
}

/** Passes everything to a NATS server, each connection known by the name that its client gives. */
async function createBusProxy(port: number): Promise<BusProxy> {
  const open = new Map<Socket, { name: string; isMuted: boolean; readonly upstream: Socket }>();
  const server = createServer((client) => {
    const connection = { name: '', isMuted: false, upstream: connect(port, '127.0.0.1') };
    const { upstream } = connection;
    open.set(client, connection);
    client.on('data', (chunk) => {
      if (connection.name === '') connection.name = /"name":"([^"]+)"/.exec(chunk.toString('latin1'))?.[1] ?? '';
      if (!connection.isMuted) upstream.write(chunk);
    });
    upstream.on('data', (chunk) => client.write(chunk));
    for (const [socket, other] of [[client, upstream], [upstream, client]] as const) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(client);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mute: (name) => {
      const chosen = [...open.values()].filter((connection) => connection.name === name);
      for (const connection of chosen) connection.isMuted = true;
      return chosen.length;
    },
    close: async () => {
      for (const client of open.keys()) client.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

let nats: Awaited<ReturnType<typeof startNats>>;
let proxy: BusProxy;
let gateway: Gateway;
beforeAll(async () => {
  nats = await startNats({ path: process.env['PATH'] ?? '' });
  proxy = await createBusProxy(nats.port);
  gateway = await startGateway({ mode: 'split', environment: { NATS_URL: proxy.url, SIMULATOR: 'on' }, replicas: 'edge=2' });
  expect(proxy.mute('accounts')).toBe(1);
}, 120_000);
afterAll(async () => {
  await gateway.stop();
  await proxy.close();
  await nats.stop();
});

/** The first one is the one that the operator talks to. */
const edges = (): readonly string[] => gateway.processes().filter(({ role }) => role === 'edge').sort((one, other) => one.replica - other.replica).map(({ ports }) => `http://127.0.0.1:${ports['http'] ?? 0}`);
const statusAt = async (edge: string, key: string): Promise<number> => (await fetch(`${edge}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
/** A key that every edge has just let in, and again a little later: none of them has reason to look it up anew. */
async function warmKey(): Promise<{ readonly id: string; readonly accountId: string; readonly key: string }> {
  const { account, key } = await admin<{ account: { id: string }; key: { id: string; key: string } }>(gateway, '/accounts', 'POST', { name: 'a', tier: 'enterprise' });
  for (let round = 0; round < 3; round += 1) {
    for (const edge of edges()) expect(await statusAt(edge, key.key)).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return { id: key.id, accountId: account.id, key: key.key };
}
const refusedWithinASecond = (key: string): Promise<unknown> => Promise.all(edges().map((edge) => eventually(`${edge} refuses`, async () => ((await statusAt(edge, key)) === 401 ? true : undefined), 1_000)));

test('a key that was revoked is refused by every edge within a second', async () => {
  const { id, key } = await warmKey();
  await admin(gateway, `/keys/${id}`, 'DELETE');
  await refusedWithinASecond(key);
}, 30_000);

test('so are the keys of an account that was suspended', async () => {
  const { accountId, key } = await warmKey();
  await admin(gateway, `/accounts/${accountId}/suspend`, 'POST');
  await refusedWithinASecond(key);
}, 30_000);

test('what runs with a compromised key at another edge is cut', async () => {
  const { id, key } = await warmKey();
  const response = await fetch(`${edges()[1] ?? ''}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'simulator/fast', stream: true, messages: [{ role: 'user', content: 'tell [sim:tokens=400,chunk-delay-ms=50]' }] }),
    signal: AbortSignal.timeout(15_000),
  });
  expect(response.status).toBe(200);
  const reader = response.body?.getReader();
  if (reader === undefined) throw new Error('expected a body');
  await readUntil(reader, '"content"');
  await admin(gateway, `/keys/${id}?compromised=true`, 'DELETE');
  const toldAtMs = performance.now();
  const rest = async (): Promise<void> => {
    for (let part = await reader.read(); !part.done; part = await reader.read());
  };
  await expect(rest()).rejects.toThrow();
  expect(performance.now() - toldAtMs).toBeLessThan(1_000);
}, 30_000);
