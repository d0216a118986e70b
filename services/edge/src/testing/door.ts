/** The public port on a free loopback port, with all other services in memory. */
import { createRunningRequests } from '../domain/running-requests.js';
import { createSessionNames } from '../domain/session-name.js';
import { createMemoryBus } from '@signalbox/bus/memory';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { Fault } from '@signalbox/kernel/fault';
import { createIdSource } from '@signalbox/kernel/ids';
import type { RpcClient } from '@signalbox/rpc/call';
import { createMetrics } from '@signalbox/runtime/metrics';
import { Secret } from '@signalbox/runtime/secret';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { createAuthenticator } from '../adapters/authenticator.js';
import { createBodyRoom } from '../domain/body-room.js';
import type { Unread } from '../domain/reader-pace.js';
import { createRepeats, type Booked } from '../domain/repeats.js';
import { createRequestPlaces, type RequestPlaces } from '../domain/request-places.js';
import { createEdgeMetrics, type EdgeMetrics } from '../metrics.js';
import type { AccessLog } from '../routes/chat-completions/access-log.js';
import { createChatHandler } from '../routes/chat-completions/handler.js';
import { createGate } from '../routes/gate.js';
import { createRepeatGate } from '../routes/repeat-gate.js';
import { createSite } from '../routes/site.js';
import { createPublicServer } from '../server.js';
import { createFakeAccounts, PEPPER, type FakeAccounts } from './accounts.js';
import { createFakeClaims, type FakeClaims } from './claims.js';
import { accountWith, keyWith, plannedAt, planWith } from './callers.js';
import { createFakeNeighbours, type FakeNeighbours } from './neighbours.js';

export const BODY_BYTES_MAX = 1_024 * 1_024;
const BODY_ROOM_BYTES = 4 * BODY_BYTES_MAX;

export interface Door {
  readonly url: string;
  readonly server: Server;
  readonly key: string;
  readonly accounts: FakeAccounts;
  readonly neighbours: FakeNeighbours;
  /** Answers of billing, by method; for any other method billing is away. */
  readonly books: Map<string, (message: Readonly<Record<string, unknown>>) => object>;
  /** Answers of routing, by method; any other method answers with no models. */
  readonly routes: Map<string, (message: Readonly<Record<string, unknown>>) => object>;
  readonly metrics: EdgeMetrics;
  readonly claims: FakeClaims;
  /** Booked requests, by request id. */
  readonly booked: Map<string, Booked>;
  readonly takenOver: readonly string[];
  /** Why answers were given up for their readers. */
  readonly unread: readonly Unread[];
  isHealthy: boolean;
  /** False as while draining. */
  isOpen: boolean;
  /** Cuts requests as for a compromised key; returns how many. */
  cutKey(keyId: string): number;
  /** Stops requests as at the end of a drain. */
  stopRunning(): void;
  /** GET of any path, with the key. */
  get(path: string, init?: RequestInit): Promise<Response>;
  /** POST of a chat completion; `body` as JSON unless it is text already. */
  chat(body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** A plain connection on which `text` was sent. */
  raw(text: string): Socket;
  stop(): Promise<void>;
}

/** The plan is one provider, `a`. */
export async function startDoor({ dashboardDir, accessLog, plugins, places = createRequestPlaces(1_000) }: { readonly dashboardDir?: string; readonly places?: RequestPlaces; readonly plugins?: RpcClient | undefined; readonly accessLog?: AccessLog | undefined } = {}): Promise<Door> {
  const neighbours = createFakeNeighbours(planWith([plannedAt('a')]));
  const { clock } = neighbours;
  const accounts = createFakeAccounts();
  const key = makeApiKey(randomBytes);
  accounts.add(key, { key: keyWith(), account: accountWith() });
  const makeId = createIdSource(clock, randomBytes);
  const authenticator = createAuthenticator({ accounts, bus: createMemoryBus({ clock }), clock, pepper: new Secret(PEPPER), variant: 'A' });
  await authenticator.start();
  const metrics = createEdgeMetrics(createMetrics({ service: 'edge', withProcessMetrics: false }), new Set(['a']));
  const unread: Unread[] = [];
  const gate = createGate({ authenticator, quota: neighbours.quota, clock, variant: 'A', pepper: new Secret(PEPPER), makeId, onError: (_route, error) => metrics.error(error.code ?? 'none'), onUnread: (why) => void unread.push(why) });
  const claims = createFakeClaims(clock);
  const booked = new Map<string, Booked>();
  const takenOver: string[] = [];
  const repeats = createRepeatGate({
    repeats: createRepeats({ claims, ledger: { bookedOf: (_accountId, requestId) => Promise.resolve(booked.get(requestId)) }, clock, onTakenOver: (_accountId, requestId) => void takenOver.push(requestId) }),
    gate, clock, pepper: new Secret(PEPPER),
  });
  const running = createRunningRequests();
  const chat = createChatHandler({ running, repeats, sessionNames: createSessionNames(PEPPER), gate, neighbours, makeId, clock, bodyBytesMax: BODY_BYTES_MAX, bodies: createBodyRoom(BODY_ROOM_BYTES), places, metrics, accessLog });
  const routes: Door['routes'] = new Map();
  const routing: RpcClient = {
    ...accounts,
    unary: async <Asked extends object, Answer>(method: string, message: Asked): Promise<Answer> => {
      const answer = routes.get(method) ?? ((): object => ({ models: [], unsetProviders: [], nearestModel: '', nearestProvider: '', similarModels: [], snapshotId: '', allowModels: [], denyModels: [], allowProviders: [], denyProviders: [] }));
      return Promise.resolve(answer(message as Readonly<Record<string, unknown>>) as Answer);
    },
  };
  const books: Door['books'] = new Map();
  const billing: RpcClient = {
    ...accounts,
    unary: <Asked extends object, Answer>(method: string, message: Asked): Promise<Answer> => {
      const answer = books.get(method);
      return answer === undefined ? Promise.reject(new Fault('peer_unavailable', 'billing is away')) : Promise.resolve(answer(message as Readonly<Record<string, unknown>>) as Answer);
    },
  };
  const server = createPublicServer({ chat, site: createSite({ gate, repeats, accounts, routing, billing, plugins, providers: new Set(['a', 'google-vertex', 'google-ai-studio']), quota: routing, authenticator, pepper: new Secret(PEPPER), clock, randomBytes, dashboardDir, makeId }), gate, makeId, clock, isFull: places.isFull, isOpen: () => door.isOpen, isHealthy: () => door.isHealthy });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const authorization = `Bearer ${key}`;
  const door: Door = {
    url,
    server,
    key,
    accounts,
    neighbours,
    claims,
    booked,
    takenOver,
    unread,
    books,
    routes,
    metrics,
    isHealthy: true,
    isOpen: true,
    cutKey: (keyId) => running.cut(keyId),
    stopRunning: () => running.stop(),
    get: (path, init = {}) => fetch(url + path, { ...init, headers: { authorization, ...init.headers } }),
    chat: (body, headers = {}) =>
      fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: { authorization, 'content-type': 'application/json', ...headers }, body: typeof body === 'string' ? body : JSON.stringify(body) }),
    raw: (text) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(text);
      return socket;
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return door;
}

export const hello = { model: 'auto', messages: [{ role: 'user', content: 'Hi' }] };

/** The raw HTTP text of a chat completion; `lines`: further headers, `length`: the value of Content-Length. */
export const chatText = (key: string, body: string, { lines = '', length = Buffer.byteLength(body) } = {}): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${lines}authorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`;

/** Status, type and code of an error. */
export async function errorOf(response: Response): Promise<readonly [number, unknown, unknown]> {
  const { error } = (await response.json()) as { error: { type: string; code: string | null } };
  return [response.status, error.type, error.code];
}

/** Everything that arrives on a connection until it closes or `until` was seen. */
export async function readRaw(socket: Socket, until?: string): Promise<string> {
  let text = '';
  for await (const part of socket) {
    text += String(part);
    if (until !== undefined && text.includes(until)) break;
  }
  return text;
}
