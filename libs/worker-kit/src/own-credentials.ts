/**
 * Accounts' own credentials at this provider. They are fetched from accounts by handle, cached for a short while in this
 * process only, and dropped when accounts announces a change of the account.
 */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import type { ResolveProviderKeyRequest, ResolveProviderKeyResponse__Output } from '@signalbox/contracts/accounts';
import type { KeyInvalidated, KeyInvalidated__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import { Secret } from '@signalbox/runtime/secret';
import { createCredentialPool, type CredentialPool } from './credentials.js';
import type { ProviderAdapter } from './provider.js';

/** With a live subscription a credential is fetched again this often, in case an event was lost; without one, every second. */
const RECHECK_LIVE_MS = 60_000;
const RECHECK_BLIND_MS = 1_000;
/** How long a fetched credential may be used while accounts is away. */
const STALE_MS_MAX = 600_000;
const KEPT_MAX = 5_000;

export interface OwnCredential {
  /** A pool of this one credential; it is benched when the provider refuses it. */
  readonly pool: CredentialPool;
  /** Calls the account's own address, if it has one. */
  readonly adapter: ProviderAdapter;
  /** The address is the account's own: only the guarded dialer may connect to it, and how it behaves tells nothing about the provider. */
  readonly isAtOwnAddress: boolean;
}

export interface OwnCredentials {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Undefined = accounts knows no such credential. Rejects with a Fault when accounts is away and the credential is not cached. Concurrent calls share one question, sent with the first caller's `requestId`. */
  resolve(accountId: string, handle: string, requestId?: string): OwnCredential | undefined | Promise<OwnCredential | undefined>;
  /** Number of cached credentials; for tests. */
  size(): number;
}

export interface OwnCredentialsOptions {
  readonly accounts: RpcClient;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly adapter: ProviderAdapter;
  /** The same provider at another address. Undefined: credentials with an address of their own are not served. */
  readonly adapterAt?: ((baseUrl: string) => ProviderAdapter) | undefined;
}

interface Kept {
  readonly accountId: string;
  readonly credential: OwnCredential;
  readonly fetchedAtMs: number;
}

export function createOwnCredentials({ accounts, bus, clock, adapter, adapterAt }: OwnCredentialsOptions): OwnCredentials {
  const kept = new Map<string, Kept>(); // kept: by credential, for a while.
  const running = new Map<string, Promise<OwnCredential | undefined>>(); // kept: by credential that is not kept.
  const codec = messageCodec<KeyInvalidated, KeyInvalidated__Output>('signalbox.events.v1.KeyInvalidated');
  let subscription: Subscription | undefined;
  let generation = 0;

  const keep = (handle: string, entry: Kept): void => {
    kept.delete(handle);
    kept.set(handle, entry);
    const oldest = kept.size > KEPT_MAX ? kept.keys().next().value : undefined;
    if (oldest !== undefined) kept.delete(oldest);
  };

  const credentialOf = (secret: Secret, baseUrl: string): OwnCredential | undefined => {
    const isAtOwnAddress = baseUrl !== '';
    const at = isAtOwnAddress ? adapterAt?.(baseUrl) : adapter;
    return at === undefined ? undefined : { pool: createCredentialPool([secret], clock), adapter: at, isAtOwnAddress };
  };

  const ask = async (accountId: string, handle: string, requestId: string): Promise<OwnCredential | undefined> => {
    const begun = generation;
    const answer = await accounts.unary<ResolveProviderKeyRequest, ResolveProviderKeyResponse__Output>('ResolveProviderKey', { accountId, provider: adapter.provider, handle }, { requestId });
    const before = kept.get(handle);
    if (!answer.found) {
      kept.delete(handle);
      return undefined;
    }
    // A handle always names the same credential, so what is known about it (above all its bench) is kept.
    const credential = before?.credential ?? credentialOf(new Secret(answer.secret), answer.baseUrl);
    if (credential !== undefined && begun === generation) keep(handle, { accountId, credential, fetchedAtMs: clock.monotonicMs() });
    return credential;
  };

  const askOnce = (accountId: string, handle: string, requestId: string): Promise<OwnCredential | undefined> => {
    const key = `${accountId} ${handle}`;
    let asking = running.get(key);
    if (asking === undefined) {
      asking = ask(accountId, handle, requestId).finally(() => running.delete(key));
      running.set(key, asking);
    }
    return asking;
  };

  return {
    start: async () => {
      subscription = await bus.listen('keys.v1.revoked', ({ payload }) => {
        generation += 1;
        running.clear();
        try {
          const { keyId, accountId } = codec.decode(payload);
          // Only one API key was revoked: no credential changed.
          if (keyId !== '') return;
          for (const [handle, entry] of kept) if (entry.accountId === accountId) kept.delete(handle);
        } catch {
          kept.clear();
        }
      });
    },
    stop: async () => subscription?.stop(),
    resolve: (accountId, handle, requestId = '') => {
      const entry = kept.get(handle);
      if (entry === undefined || entry.accountId !== accountId) return askOnce(accountId, handle, requestId);
      const ageMs = clock.monotonicMs() - entry.fetchedAtMs;
      if (ageMs < (bus.isConnected() ? RECHECK_LIVE_MS : RECHECK_BLIND_MS)) return entry.credential;
      if (ageMs > STALE_MS_MAX) return askOnce(accountId, handle, requestId);
      return askOnce(accountId, handle, requestId).catch(() => entry.credential);
    },
    size: () => kept.size,
  };
}
