/** An accounts service in memory: keys by digest, outages, answers that wait. */
import type { AuthenticateRequest, AuthenticateResponse__Output, AuthenticateSessionResponse__Output, Change__Output, CreateSessionRequest, CreateSessionResponse__Output, ListChangesRequest, ListChangesResponse__Output, SessionRef, TouchKeysRequest } from '@signalbox/contracts/accounts';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import { createHmac } from 'node:crypto';

export const PEPPER = 'pepper-of-tests-pepper-of-tests-0';

/** Unix seconds, far after every test's clock. */
const SESSION_ENDS_AT = 9_000_000_000;

export interface FakeAccounts extends RpcClient {
  readonly keys: Map<string, Pick<AuthenticateResponse__Output, 'key' | 'account'>>;
  isAway: boolean;
  /** The time by its own clock, in milliseconds since the epoch; 0 = it does not tell. */
  atMs: number;
  /** While set, look-ups wait for it. */
  gate: Promise<void> | undefined;
  lookUps: number;
  /** From the hex digest of a session token to that of its key. */
  readonly sessions: Map<string, string>;
  /** The changes that ListChanges returns; a cursor is their number. */
  readonly changes: Change__Output[];
  /** While set, the answer of ListChanges. */
  listChanges: ((request: ListChangesRequest) => Promise<ListChangesResponse__Output>) | undefined;
  /** Each call of TouchKeys that was answered: when each key was used, in Unix seconds. */
  readonly touches: Readonly<Record<string, number>>[];
  add(key: string, found: Pick<AuthenticateResponse__Output, 'key' | 'account'>): void;
}

const digestOf = (key: string): string => createHmac('sha256', PEPPER).update(key).digest('hex');

export function createFakeAccounts(): FakeAccounts {
  const authenticate = async (request: AuthenticateRequest): Promise<AuthenticateResponse__Output> => {
    accounts.lookUps += 1;
    const digest = Buffer.isBuffer(request.digest) ? request.digest.toString('hex') : '';
    // Read before the wait, as a store does: an answer may be old by the time it arrives.
    const found = accounts.keys.get(digest);
    await accounts.gate;
    if (accounts.isAway) throw new Fault('peer_unavailable', 'accounts is away');
    return found === undefined ? { found: false, key: null, account: null, atMs: '0' } : { found: true, ...found, atMs: String(accounts.atMs) };
  };
  const hex = (digest: unknown): string => (Buffer.isBuffer(digest) ? digest.toString('hex') : '');
  const methods: Readonly<Record<string, (request: never) => Promise<unknown>>> = {
    Authenticate: authenticate,
    CreateSession: async ({ sessionDigest, keyDigest }: CreateSessionRequest): Promise<CreateSessionResponse__Output> => {
      accounts.sessions.set(hex(sessionDigest), hex(keyDigest));
      return { found: true, expiresAt: String(SESSION_ENDS_AT), atMs: String(accounts.atMs) };
    },
    AuthenticateSession: async ({ sessionDigest }: SessionRef): Promise<AuthenticateSessionResponse__Output> => {
      const keyDigest = accounts.sessions.get(hex(sessionDigest));
      const none: AuthenticateResponse__Output = { found: false, key: null, account: null, atMs: '0' };
      return { caller: keyDigest === undefined ? none : await authenticate({ digest: Buffer.from(keyDigest, 'hex') }), expiresAt: String(SESSION_ENDS_AT) };
    },
    ListChanges: async (request: ListChangesRequest): Promise<ListChangesResponse__Output> => {
      if (accounts.isAway) throw new Fault('peer_unavailable', 'accounts is away');
      const { after = '' } = request;
      return accounts.listChanges?.(request) ?? { cursor: String(accounts.changes.length), changes: after === '' ? [] : accounts.changes.slice(Number(after)), unbroken: after !== '', more: false };
    },
    TouchKeys: async ({ touches = [] }: TouchKeysRequest): Promise<object> => {
      if (accounts.isAway) throw new Fault('peer_unavailable', 'accounts is away');
      accounts.touches.push(Object.fromEntries(touches.map(({ keyId = '', usedAt }) => [keyId, Number(usedAt)])));
      return {};
    },
    EndSession: async ({ sessionDigest }: SessionRef): Promise<object> => {
      accounts.sessions.delete(hex(sessionDigest));
      return {};
    },
  };
  const accounts: FakeAccounts = {
    keys: new Map(),
    isAway: false,
    atMs: 0,
    gate: undefined,
    lookUps: 0,
    sessions: new Map(),
    changes: [],
    listChanges: undefined,
    touches: [],
    add: (key, found) => void accounts.keys.set(digestOf(key), found),
    unary: <Request extends object, Response>(method: string, request: Request): Promise<Response> =>
      (methods[method]?.(request as never) as Promise<Response> | undefined) ?? Promise.reject(new Fault('unknown_method', method)),
    stream: () => {
      throw new Fault('unknown_method', 'accounts has no streams');
    },
    isConnected: () => !accounts.isAway,
    close: () => Promise.resolve(),
  };
  return accounts;
}
