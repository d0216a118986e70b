import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { quietPort } from '@signalbox/local-stores/ports';
import { ownNats } from '@signalbox/testkit/stores';
import { admin, expectBalancedBooks } from '../harness/books.js';
import { ask, until } from '../harness/client.js';
import { startGateway, type Gateway } from '../harness/gateway.js';

const EDGE = fileURLToPath(new URL('../../../services/edge/dist/main.js', import.meta.url));
/** An outcome that never comes is concluded after 30 s. */
const CONCLUDED_MS = 30_000;

/** One address in front of several replicas, as a Service of Kubernetes is: each new connection goes to the next of `targets`. */
async function startBalancer(targets: readonly number[]): Promise<{ readonly port: number; targets: readonly number[]; cut(): void; stop(): Promise<void> }> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((near) => {
    const far = connect(balancer.targets[connections++ % balancer.targets.length] ?? 0, '127.0.0.1');
    for (const [from, to] of [[near, far], [far, near]] as const) {
      sockets.add(from);
      from.on('data', (bytes) => to.write(bytes));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const balancer = {
    port: (server.address() as AddressInfo).port,
    targets,
    cut: (): void => {
      connections = 0;
      for (const socket of sockets) socket.destroy();
    },
    stop: async (): Promise<void> => {
      balancer.cut();
      server.close();
      await once(server, 'close');
    },
  };
  return balancer;
}

/** Replicas of the simulator's worker, with the attempts that each has under way. */
async function replicas(): Promise<readonly { readonly pid: number; readonly inFlight: number }[]> {
  return Promise.all(
    gateway.processes().filter(({ role }) => role === 'worker-simulator').map(async ({ pid, ports }) => {
      const text = await (await fetch(`http://127.0.0.1:${String(ports['metrics'])}/metrics`)).text();
      return { pid, inFlight: Number(/^signalbox_worker_in_flight(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1] ?? 0) };
    }),
  );
}

let nats: Awaited<ReturnType<typeof ownNats>>;
let gateway: Gateway;
let balancer: Awaited<ReturnType<typeof startBalancer>>;
/** Knows the workers by the balancer's address alone. */
let edge: ChildProcess;
let baseUrl: string;
const rpcPorts = (role: string): readonly number[] => gateway.processes().filter((one) => one.role === role).map(({ ports }) => ports['grpc'] ?? 0);

beforeAll(async () => {
  nats = await ownNats();
  const natsUrl = nats.url;
  gateway = await startGateway({ mode: 'split', replicas: 'worker-simulator=2', environment: { NATS_URL: natsUrl } });
  balancer = await startBalancer(rpcPorts('worker-simulator').slice(0, 1));
  const addresses = (role: string): string => rpcPorts(role).map((port) => `127.0.0.1:${String(port)}`).join(',');
  const port = await quietPort();
  baseUrl = `http://127.0.0.1:${String(port)}`;
  edge = spawn(process.execPath, [EDGE], {
    env: {
      PATH: process.env['PATH'] ?? '', HOST: '127.0.0.1', PORT: String(port), ADMIN_PORT: '0', LOG_LEVEL: 'error', QUOTA_DEADLINE_MS: '2500',
      ADMIN_TOKEN: gateway.adminToken, KEY_PEPPER: readFileSync(join(gateway.dataDir, 'key-pepper'), 'utf8').trim(),
      ACCOUNTS_ADDRS: addresses('accounts'), ROUTING_ADDRS: addresses('routing'), QUOTA_ADDRS: addresses('quota'), BILLING_ADDRS: addresses('billing'),
      NATS_URL: natsUrl, WORKERS: `simulator=127.0.0.1:${String(balancer.port)}`,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await until(async () => (await ask(baseUrl, gateway.key, { model: 'simulator/fast', messages: [{ role: 'user', content: 'hello' }] })).status === 200, 30_000, 100, 'an answer through the balancer');
}, 120_000);
afterAll(async () => {
  edge.kill('SIGKILL');
  await balancer.stop();
  await gateway.stop();
  await nats.stop();
});

test('an attempt whose connection broke is settled as its client left it, though the balancer leads to other replicas now', async () => {
  const { account, key } = await admin<{ account: { id: string }; key: { key: string } }>(gateway, '/accounts', 'POST', { name: 'capped', tier: 'enterprise', cost_cap_usd: '1', cost_cap_period: 'total' });
  const reserved = async (): Promise<string> => (await admin<{ reserved_nano_usd: string }>(gateway, `/quota?account=${account.id}`)).reserved_nano_usd;
  const response = await fetch(`${baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'simulator/fast', stream: true, max_tokens: 200, messages: [{ role: 'user', content: 'tell [sim:tokens=200,chunk-delay-ms=50]' }] }),
    signal: AbortSignal.timeout(60_000),
  });
  let text = '';
  let isCut = false;
  for await (const part of response.body ?? []) {
    text += Buffer.from(part as Uint8Array).toString();
    if (isCut || !text.includes('"content"')) continue;
    isCut = true;
    const [first = 0, second = 0] = rpcPorts('worker-simulator');
    // Both new links lead to the other, and so do the first connections beyond them.
    balancer.targets = [second, second, second, second, first];
    balancer.cut();
  }
  expect(text).toContain('"finish_reason":"error"');
  await until(async () => (await reserved()) === '0', CONCLUDED_MS / 3, 100, 'the hold to end');
  await expectBalancedBooks(gateway, account.id, []);
}, 120_000);

test('requests whose replica of a worker is killed before their first byte are answered by the other, and charged for that alone', async () => {
  const { account, key } = await admin<{ account: { id: string }; key: { key: string } }>(gateway, '/accounts', 'POST', { name: 'pinned', tier: 'enterprise' });
  const body = { model: 'simulator/fast', provider: { allow_fallbacks: false }, messages: [{ role: 'user', content: 'tell [sim:tokens=5,delay-ms=3000]' }] };
  const asked = Promise.all([true, false, true, false, true, false, true, false].map((stream) => ask(gateway.baseUrl, key.key, { ...body, stream })));
  const reserved = async (): Promise<string> => (await admin<{ reserved_nano_usd: string }>(gateway, `/quota?account=${account.id}`)).reserved_nano_usd;
  await until(async () => (await replicas()).reduce((sum, { inFlight }) => sum + inFlight, 0) === 8, 10_000, 50, 'the workers to have them');
  const [busiest] = [...(await replicas())].sort((one, other) => other.inFlight - one.inFlight);
  if (busiest === undefined) throw new Error('There is no worker.');
  process.kill(busiest.pid, 'SIGKILL');
  const answers = await asked;
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(answers.filter(({ text }) => text.includes('"finish_reason":"error"'))).toEqual([]);
  expect(answers.filter(({ headers }) => headers.get('x-router-attempts') === '2').length).toBe(busiest.inFlight);
  await until(async () => (await reserved()) === '0', CONCLUDED_MS, 100, 'the holds to end');
  await expectBalancedBooks(gateway, account.id, answers.map(({ headers }) => ({ requestId: headers.get('x-request-id') ?? '', costUsd: headers.get('x-router-cost-basis') === 'final' ? (headers.get('x-router-cost') ?? undefined) : undefined })));
}, 120_000);
