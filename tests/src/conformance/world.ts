/** Environment of the conformance tests: a running gateway, its upstreams, and its admin API. */
import { startGateway, type Gateway, type GatewayMode } from '../harness/gateway.js';
import { eventually } from './eventually.js';
import { send, type Got, type Sent } from './http.js';
import { startUpstreams, type Upstreams } from './upstreams.js';

export interface LedgerRow {
  readonly seq: number;
  readonly kind: string;
  readonly request_id: string;
  readonly amount_nano_usd: string;
  readonly source: string;
  readonly charged: boolean;
  readonly flags: readonly string[];
  readonly provider: string;
}

export interface TestAccount {
  readonly id: string;
  /** A key with every scope of an account's first key. */
  readonly key: string;
}

export interface World {
  readonly variant: 'A' | 'B';
  readonly mode: GatewayMode;
  readonly gateway: Gateway;
  readonly upstreams: Upstreams;
  /** Tier enterprise: no limits. */
  readonly account: TestAccount;
  /** Addresses of every edge replica. */
  edges(): readonly string[];
  /** A request with the account's key. */
  call(sent: Sent): Promise<Got>;
  /** POST /v1/chat/completions with the account's key. */
  chat(body: object, sent?: Sent): Promise<Got>;
  newAccount(settings: Readonly<Record<string, unknown>>): Promise<TestAccount>;
  admin(method: string, path: string, body?: object): Promise<Got>;
  /** The ledger's rows of a request, as soon as a charge is among them. */
  ledgerOf(accountId: string, requestId: string): Promise<readonly LedgerRow[]>;
  stop(): Promise<void>;
}

/** Any message of a user, answered by each upstream. */
export const HELLO = [{ role: 'user', content: 'hello' }] as const;
export const PINNED = 'openai/gpt-4o-mini';

export async function startWorld(mode: GatewayMode, variant: 'A' | 'B'): Promise<World> {
  const upstreams = await startUpstreams();
  let gateway: Gateway;
  try {
    // Short, so that repeats need not wait a minute for the outcome of a request whose edge was killed.
    const environment = { ...upstreams.environment, CONTRACT_VARIANT: variant, CLAIM_LEASE_SECONDS: '2', PLUGINS_OFF: 'gutenberg' };
    gateway = await startGateway({ mode, environment, ...(mode === 'split' ? { replicas: 'edge=2' } : {}) });
  } catch (error) {
    await upstreams.stop();
    throw error;
  }
  const { baseUrl, adminUrl, adminToken } = gateway;
  const admin: World['admin'] = (method, path, body) => send(adminUrl, { method, path, key: adminToken, ...(body === undefined ? {} : { body }) });
  let accounts = 0;
  const newAccount: World['newAccount'] = async (settings) => {
    accounts += 1;
    const got = await admin('POST', '/admin/accounts', { name: `account ${accounts}`, tier: 'enterprise', ...settings });
    if (got.status !== 201) throw new Error(`No account: ${got.text}`);
    const made = JSON.parse(got.text) as { account: { id: string }; key: { key: string } };
    return { id: made.account.id, key: made.key.key };
  };
  const stop = async (): Promise<void> => {
    await gateway.stop();
    await upstreams.stop();
  };
  let account: TestAccount;
  try {
    account = await newAccount({});
  } catch (error) {
    await stop();
    throw error;
  }
  const call: World['call'] = (sent) => send(baseUrl, { key: account.key, ...sent });
  return {
    variant,
    mode,
    gateway,
    upstreams,
    account,
    edges: () => {
      const ports = gateway.processes().filter(({ role }) => role === 'edge').flatMap(({ ports: { http } }) => (http === undefined ? [] : [`http://127.0.0.1:${http}`]));
      return ports.length === 0 ? [baseUrl] : ports;
    },
    call,
    chat: (body, sent = {}) => call({ ...sent, body }),
    newAccount,
    admin,
    ledgerOf: (accountId, requestId) =>
      eventually(`the ledger holds a charge of ${requestId}`, async () => {
        const { rows } = JSON.parse((await admin('GET', `/admin/ledger?account=${accountId}`)).text) as { rows: readonly LedgerRow[] };
        const own = rows.filter((row) => row.request_id === requestId);
        return own.some(({ kind }) => kind === 'charge') ? own : undefined;
      }),
    stop,
  };
}
