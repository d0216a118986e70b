import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { ServiceArea } from '@signalbox/contracts/load';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { openRpcTls, type RpcTls } from '@signalbox/runtime/tls-files';
import { createAuthority, type Authority } from '@signalbox/testkit/certificates';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect, createServer, Socket, type AddressInfo } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Handlers, RpcClient } from './call.js';
import { linkPath, methodsOf } from './channel.js';
import { createRpcClient } from './client.js';
import { greeting } from './frames.js';
import { createRpcServer } from './server.js';
import { CALLERS, callersOf, clientCredentials, identitiesOf } from './tls.js';

const AREAS: readonly ServiceArea[] = ['accounts', 'billing', 'plugins', 'quota', 'routing', 'sandbox', 'worker'];
const root = mkdtempSync(join(tmpdir(), 'signalbox-tls-'));
const open: (() => Promise<void>)[] = [];
let ours: Authority;
let strangers: Authority;

beforeAll(() => {
  ours = createAuthority('ours');
  strangers = createAuthority('strangers');
  for (const service of ['quota', 'edge', 'worker-openai', 'plugins', 'localhost']) ours.issue(join(root, service), service);
  strangers.issue(join(root, 'stranger'), 'edge');
});
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const tlsOf = (service: string, clock: FakeClock = createFakeClock()): RpcTls => openRpcTls({ RPC_TLS_DIR: join(root, service) }, { clock, log: silentLog });

const handlers: Handlers = { unary: { Admit: () => ({}), Finish: () => ({}) } };

async function serve(tls: RpcTls): Promise<string> {
  const server = createRpcServer({ area: 'quota', handlers, host: '127.0.0.1', port: 0, clock: systemClock, log: silentLog, tls });
  const port = await server.start();
  open.push(() => server.stop(0));
  return `127.0.0.1:${String(port)}`;
}

function clientOf(address: string, door: 'link' | 'unary', tls: RpcTls): RpcClient {
  const client = createRpcClient({ area: 'quota', addresses: [address], door, clock: systemClock, randomBytes, defaultDeadlineMs: 5_000, links: 1, tls });
  open.push(() => client.close());
  return client;
}

test('a refused certificate is logged where it was refused, with the reason, once a minute', async () => {
  const clock = createFakeClock();
  const heeded = (service: string): { readonly tls: RpcTls; readonly said: object[] } => {
    const said: object[] = [];
    return { tls: openRpcTls({ RPC_TLS_DIR: join(root, service) }, { clock, log: { ...silentLog, warn: (text, fields) => void said.push({ text, ...fields }) } }), said };
  };
  const fails = async (address: string, tls: RpcTls): Promise<void> => void (await expect(clientOf(address, 'link', tls).unary('Admit', {})).rejects.toMatchObject({ code: 'peer_unavailable' }));

  strangers.issue(join(root, 'unknown'), 'edge');
  copyFileSync(join(root, 'edge', 'ca.crt'), join(root, 'unknown', 'ca.crt'));
  const quota = heeded('quota');
  await fails(await serve(quota.tls), tlsOf('unknown'));
  expect(quota.said).toEqual([{ text: 'The certificate of a caller was refused.', reason: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }]);

  const edge = heeded('edge');
  const text = 'The certificate of a called service was refused.';
  const impostor = await serve(tlsOf('stranger'));
  await fails(impostor, edge.tls);
  await fails(impostor, edge.tls);
  expect(edge.said).toEqual([{ text, address: impostor, reason: 'SELF_SIGNED_CERT_IN_CHAIN' }]);

  // The certificate names the address of loopback, and no other name for it.
  const other = heeded('edge');
  const misnamed = (await serve(tlsOf('quota'))).replace('127.0.0.1', 'localhost');
  await fails(misnamed, other.tls);
  expect(other.said).toEqual([{ text, address: misnamed, reason: 'ERR_TLS_CERT_ALTNAME_INVALID' }]);
});

test('a connection whose handshake ends after its server began to stop is closed: nobody would wait for its calls', async () => {
  const server = createRpcServer({ area: 'quota', handlers, host: '127.0.0.1', port: 0, clock: systemClock, log: silentLog, tls: tlsOf('quota') });
  const port = await server.start();
  const early = connect(port, '127.0.0.1');
  await once(early, 'connect');
  // The server has taken the earlier connection once it answers a later one.
  await clientOf(`127.0.0.1:${String(port)}`, 'link', tlsOf('edge')).unary('Admit', {});
  const stopped = server.stop(60_000);
  const files = (name: string): Buffer => readFileSync(join(root, 'edge', name));
  const late = connectTls({ socket: early, ca: files('ca.crt'), cert: files('tls.crt'), key: files('tls.key'), checkServerIdentity: () => undefined });
  const heard: Buffer[] = [];
  late.on('data', (bytes: Buffer) => heard.push(bytes)).on('error', () => undefined);
  late.once('secureConnect', () => late.write(greeting(linkPath('quota'))));
  await once(late, 'close');
  expect(heard).toEqual([]);
  await stopped;
});

describe.each(['link', 'unary'] as const)('through the %s door', (door) => {
  test('a service calls what its certificate entitles it to, and nothing else', async () => {
    const address = await serve(tlsOf('quota'));
    const edge = clientOf(address, door, tlsOf('edge'));
    const worker = clientOf(address, door, tlsOf('worker-openai'));
    const plugins = clientOf(address, door, tlsOf('plugins'));
    await expect(edge.unary('Admit', {})).resolves.toMatchObject({ decision: 'DECISION_UNSPECIFIED' });
    await expect(edge.unary('Finish', {})).rejects.toMatchObject({ code: 'caller_refused' });
    await expect(worker.unary('Finish', {})).resolves.toEqual({});
    await expect(worker.unary('Admit', {})).rejects.toMatchObject({ code: 'caller_refused' });
    await expect(plugins.unary('Admit', {})).rejects.toMatchObject({ code: 'caller_refused' });
  });

  test('a caller of another authority, one without a certificate, and a server of another authority: no call gets through', async () => {
    const address = await serve(tlsOf('quota'));
    const impostor = await serve(tlsOf('stranger'));
    const refused = { code: 'peer_unavailable' };
    await Promise.all([
      expect(clientOf(address, door, tlsOf('stranger')).unary('Admit', {})).rejects.toMatchObject(refused),
      expect(clientOf(address, door, undefined).unary('Admit', {})).rejects.toMatchObject(refused),
      expect(clientOf(impostor, door, tlsOf('edge')).unary('Admit', {})).rejects.toMatchObject(refused),
    ]);
  });
});

// RFC 6066, section 3. Node 26 does not even connect.
test.each([
  ['127.0.0.1', 'link', false],
  ['127.0.0.1', 'unary', false],
  ['localhost', 'link', 'localhost'],
  ['localhost', 'unary', 'localhost'],
] as const)('a service at %s, called by %s, is told %s as its name in the handshake', async (host, door, told) => {
  const names: (string | false | null)[] = [];
  const read = (file: string): Buffer => readFileSync(join(root, 'localhost', file));
  const server = createTlsServer({ cert: read('tls.crt'), key: read('tls.key') }, (socket) => {
    names.push(socket.servername);
    socket.on('error', () => undefined).destroy();
  });
  server.listen(0, host);
  await once(server, 'listening');
  open.push(async () => {
    server.close();
    await once(server, 'close');
  });
  const connected = once(server, 'secureConnection');
  await expect(Promise.all([connected, clientOf(`${host}:${String((server.address() as AddressInfo).port)}`, door, tlsOf('edge')).unary('Admit', {})])).rejects.toMatchObject({ code: 'peer_unavailable' });
  expect(new Set(names)).toEqual(new Set([told]));
});

test('a link with certificates is one connection: frames are agreed on in its handshake', async () => {
  const address = await serve(tlsOf('quota'));
  let connections = 0;
  const proxy = createServer((near) => {
    connections += 1;
    const far = connect(Number(address.split(':')[1]), '127.0.0.1');
    near.pipe(far);
    far.pipe(near);
    for (const [one, other] of [[near, far], [far, near]] as const) one.on('error', () => undefined).on('close', () => other.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  open.push(async () => {
    proxy.close();
    await once(proxy, 'close');
  });
  await clientOf(`127.0.0.1:${String((proxy.address() as AddressInfo).port)}`, 'link', tlsOf('edge')).unary('Admit', {});
  expect(connections).toBe(1);
});

test('renewed files are used without a restart; files that do not fit together change nothing', async () => {
  const clock = createFakeClock();
  const directory = join(root, 'renewed');
  strangers.issue(directory, 'quota');
  const tls = openRpcTls({ RPC_TLS_DIR: directory }, { clock, log: silentLog });
  const address = await serve(tls);
  const connects = (): Promise<string> => clientOf(address, 'unary', tlsOf('edge')).unary('Admit', {}).then(() => 'answered', (fault: { readonly code: string }) => fault.code);
  expect(await connects()).toBe('peer_unavailable');
  ours.issue(directory, 'quota');
  clock.advance(10_000);
  expect(await connects()).toBe('answered');
  // Only part of a set is replaced, as in the middle of a rotation.
  writeFileSync(join(directory, 'tls.key'), 'no key');
  clock.advance(10_000);
  expect(await connects()).toBe('answered');
});

test('without certificates a door listens on loopback only, unless TLS is off; production refuses off', () => {
  const listening = (host: string, environment: Readonly<Record<string, string>>) => () =>
    createRpcServer({ area: 'quota', handlers, host, port: 0, clock: systemClock, log: silentLog, tls: openRpcTls(environment, { clock: createFakeClock(), log: silentLog }) });
  for (const host of ['127.0.0.1', 'localhost', '::1']) expect(listening(host, {})).not.toThrow();
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'quota']) {
    expect(listening(host, {})).toThrow(/RPC_TLS_DIR/);
    expect(listening(host, { RPC_TLS: 'off' })).not.toThrow();
    expect(listening(host, { RPC_TLS_DIR: join(root, 'quota') })).not.toThrow();
  }
  expect(listening('127.0.0.1', { RPC_TLS: 'off', DEPLOYMENT: 'production' })).toThrow(/RPC_TLS: off is refused in production/);
  expect(listening('127.0.0.1', { RPC_TLS_DIR: join(root, 'none') })).toThrow(/RPC_TLS_DIR: ca\.crt cannot be read/);
});

test.each(['with', 'without'])('%s certificates, what grpc-js begins for a client that was closed comes to nothing', async (given) => {
  const connector = clientCredentials(given === 'with' ? tlsOf('edge') : 'off')._createSecureConnector({ path: '127.0.0.1:1' }, {});
  await connector.waitForReady();
  connector.destroy();
  await expect(connector.connect(new Socket())).rejects.toThrow('the client is closed');
});

test('every caller that is named is one of the drawing, for a method that there is', () => {
  const allowed = AREAS.flatMap((area) => [...methodsOf(area).keys()].flatMap((method) => callersOf(area, method).map((caller) => `${caller} > ${area}`)));
  expect([...new Set(allowed)].sort()).toEqual(
    ['billing > accounts', 'edge > accounts', 'edge > billing', 'edge > plugins', 'edge > quota', 'edge > routing', 'edge > worker', 'plugins > sandbox', 'plugins > worker', 'quota > billing', 'worker > accounts', 'worker > billing', 'worker > quota'].sort(),
  );
  for (const area of AREAS) expect(Object.keys(CALLERS[area] ?? {}).filter((method) => !methodsOf(area).has(method))).toEqual([]);
  // The plaintext of accounts' own secrets never passes through edge.
  expect(callersOf('accounts', 'ResolveProviderKey')).toEqual(['worker']);
});

test('what each service calls in the code it may call with its certificate', () => {
  const repository = fileURLToPath(new URL('../../..', import.meta.url));
  const callers = { billing: 'services/billing', plugins: 'services/plugins', quota: 'services/quota', worker: 'libs/worker-kit' };
  const called = Object.entries(callers).flatMap(([caller, folder]) => {
    const files = readdirSync(join(repository, folder, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts') && !/test|proof/.test(file));
    const methods = files.flatMap((file) => [...readFileSync(join(repository, folder, 'src', file), 'utf8').matchAll(/\w(?:<[^(]*>)?\(\s*'([A-Z]\w+)'/g)].map(([, method = '']) => method));
    return [...new Set(methods)].filter((method) => AREAS.some((area) => methodsOf(area).has(method))).map((method) => ({ caller, method }));
  });
  expect(called).toEqual(expect.arrayContaining([{ caller: 'worker', method: 'ResolveProviderKey' }, { caller: 'quota', method: 'Totals' }, { caller: 'billing', method: 'GetAccount' }, { caller: 'plugins', method: 'Run' }]));
  expect(called.filter(({ caller, method }) => !AREAS.some((area) => methodsOf(area).has(method) && callersOf(area, method).includes(caller)))).toEqual([]);
});

test.each([
  [undefined, []],
  ['DNS:edge, DNS:edge.signalbox.svc, IP Address:10.0.0.1', ['edge']],
  ['DNS:worker-openai.signalbox.svc.cluster.local', ['worker']],
  ['URI:spiffe://x/edge, email:edge@x', []],
  // node:tls quotes a name that could be mistaken for another entry.
  ['DNS:"x\\u002c DNS:edge"', ['"x\\u002c DNS:edge"']],
])('%s speaks for %j', (subjectaltname, identities) => {
  expect([...identitiesOf({ subjectaltname })]).toEqual(identities);
});
