/** Accounts in memory: keys by digest, an outage, answers that wait. */
import type { AuthenticateRequest, AuthenticateResponse__Output } from '@signalbox/contracts/accounts';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import { createHmac } from 'node:crypto';

export const PEPPER = 'pepper-of-tests-pepper-of-tests-0';

export interface FakeAccounts extends RpcClient {
  readonly keys: Map<string, Pick<AuthenticateResponse__Output, 'key' | 'account'>>;
  isAway: boolean;
  /** While set, look-ups wait for it. */
  gate: Promise<void> | undefined;
  lookUps: number;
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
    return found === undefined ? { found: false, key: null, account: null } : { found: true, ...found };
  };
  const accounts: FakeAccounts = {
    keys: new Map(),
    isAway: false,
    gate: undefined,
    lookUps: 0,
    add: (key, found) => void accounts.keys.set(digestOf(key), found),
    unary: <Request extends object, Response>(method: string, request: Request): Promise<Response> =>
      method === 'Authenticate' ? (authenticate(request) as Promise<Response>) : Promise.reject(new Fault('unknown_method', method)),
    stream: () => {
      throw new Fault('unknown_method', 'accounts has no streams');
    },
    isConnected: () => !accounts.isAway,
    close: () => Promise.resolve(),
  };
  return accounts;
}
