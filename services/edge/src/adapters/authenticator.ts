/**
 * Authenticates keys and sessions: a cache in this process, by the key's digest, filled from the accounts service.
 * Entries are dropped when accounts reports a change, by an event on the bus or, in case that is lost, in the change list
 * that changes-feed.ts asks for. While accounts is away a cached key works for 10 minutes; an unknown one is a Fault (503),
 * never a refusal. When keys were last used is reported to accounts a little later.
 */
import type { AuthenticateRequest, AuthenticateResponse__Output, AuthenticateSessionResponse__Output, SessionRef } from '@signalbox/contracts/accounts';
import type { KeyInvalidated, KeyInvalidated__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Bus, Subscription } from '@signalbox/bus/bus';
import { isWellFormedApiKey } from '@signalbox/kernel/api-key';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Variant } from '@signalbox/kernel/tiers';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Secret } from '@signalbox/runtime/secret';
import { LRUCache } from 'lru-cache';
import { createHmac, hash } from 'node:crypto';
import { variantOf } from '../domain/limits.js';
import type { Caller } from '../domain/ports.js';
import { sessionDigest } from '../domain/session-token.js';
import { createCallerCache, type CachedCaller } from './caller-cache.js';
import { createChangesFeed } from './changes-feed.js';
import { createKeyUses } from './key-uses.js';

const CACHE_KEYS_MAX = 50_000;
/** Unknown digests are remembered briefly, so that a flood of one wrong key costs one look-up. */
const UNKNOWN_MS = 2_000;
/** A cached key is rechecked this often, whatever is heard: nobody announces what was changed by hand in the database. */
const RECHECK_MS = 60_000;
/** A cached key is used for this long after the time up to which all changes are known; then accounts is asked first. A revocation must take effect everywhere within a second. */
const UNHEARD_MS_MAX = 900;
/** How long a warm key works while accounts is away. */
const STALE_MS_MAX = 600_000;
const RETRY_AWAY_MS = 500;
const LOOKUPS_AT_ONCE_MAX = 1_024;
/** A key of a running request is looked up again after a change, at most this often while further changes arrive. */
const RENEWALS_MAX = 5;
const LOOKUP_DEADLINE_MS = 1_500;

export type Authentication =
  | { readonly kind: 'caller'; readonly caller: Caller }
  /** Malformed, wrong checksum or unknown. */
  | { readonly kind: 'invalid' }
  /** The secret matched, but the key or its account may not be used. */
  | { readonly kind: 'refused'; readonly state: 'expired' | 'revoked' | 'disabled' | 'suspended' };

interface Entry extends CachedCaller {
  /** The answer as long as the key has not expired meanwhile. */
  readonly judgement: Authentication;
  /** Milliseconds since the epoch by the clock here; Infinity = never. Of the key, or of the session where that is earlier. */
  readonly expiresAtMs: number;
  /** The same moment by the monotonic clock, which is never set and stops while the host sleeps. */
  readonly endsAtMs: number;
}

const INVALID: Authentication = { kind: 'invalid' };
/** Sessions live in the same cache as keys, under names that no digest has. */
const SESSION = 's:';
const EXPIRED: Authentication = { kind: 'refused', state: 'expired' };

/** The answer from a caller's record, without regard to its moment of expiry. */
function judge(caller: Caller): Authentication {
  const { key, account } = caller;
  if (key.status === 'revoked') return { kind: 'refused', state: 'revoked' };
  if (key.status === 'disabled') return { kind: 'refused', state: 'disabled' };
  if (key.status === 'expired') return EXPIRED;
  return account.suspended ? { kind: 'refused', state: 'suspended' } : { kind: 'caller', caller };
}

/** Milliseconds that the clock here is ahead of the clock of accounts; negative = behind; 0 = not known. Without this correction a key that lives a minute could end here a minute too early or too late. */
function aheadMs(answer: AuthenticateResponse__Output | null, nowMs: number): number {
  const toldMs = Number(answer?.atMs ?? 0);
  return toldMs === 0 ? 0 : nowMs - toldMs;
}

/** `expiresAtMs` as a moment of the steady clock. */
function steadyEnd(expiresAtMs: number, clock: Clock): number {
  return clock.monotonicMs() + expiresAtMs - clock.nowMs();
}

/** Infinity for a revoked or disabled key: it is refused as such even after it has expired. */
function expiryOf({ key }: Caller): number {
  return key.expiresAt === undefined || key.status === 'revoked' || key.status === 'disabled' ? Infinity : Number(key.expiresAt) * 1_000;
}

export interface AuthenticatorOptions {
  readonly accounts: RpcClient;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly pepper: Secret;
  readonly variant: Variant;
  /** The key was declared compromised: its running requests must be ended. */
  readonly onCompromised?: (keyId: string) => void;
  /** True while any request runs: changes are then always polled often, since a compromised key ends its requests. Absent: always true. */
  readonly isServing?: () => boolean;
  /** True while a request runs with the key: after a change it is then looked up at once, not only by the next request. Absent: never. */
  readonly isRunning?: (keyId: string) => boolean;
  /** Keys and sessions remembered at most. */
  readonly keysMax?: number;
}

export interface Authenticator {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Synchronous for a warm key. Rejects with a Fault `accounts_unavailable` only for a well-formed key that is not cached. The look-up carries the `requestId` of the first request that asks. */
  authenticate(key: string, requestId?: string): Authentication | Promise<Authentication>;
  /** As `authenticate`, for the token of a dashboard's session; one that has ended is `invalid`. */
  authenticateSession(token: string, requestId?: string): Authentication | Promise<Authentication>;
  /** When a cached session ends at the latest, in Unix seconds; undefined when it is not cached. */
  sessionEndSeconds(token: string): number | undefined;
  /** Drops what is cached of a key, or of a whole account where `keyId` is empty. */
  invalidate(changed: { readonly keyId: string; readonly accountId: string; readonly isCompromised: boolean }): void;
  /** Drops a session that has just been ended here; other replicas are told by an event. */
  forgetSession(token: string): void;
  /** The latest cached record of the caller's key, even if it is refused by now; the caller itself when nothing is cached. Makes no call. */
  present(caller: Caller): Caller;
  /** HMAC-SHA-256 of a key or token under the pepper, and the pepper's id: accounts stores keys by these. */
  digest(key: string): { readonly digest: Buffer; readonly pepperId: string };
  /** True for a key that is cached and may be used: no look-up is needed. */
  isWarm(key: string): boolean;
  /** As `isWarm`, for the token of a session. */
  isWarmSession(token: string): boolean;
  /** Keys that are cached, of any age; for tests and metrics. */
  size(): number;
  /** Index entries of cached keys: one by key and one by account for each; for tests. */
  indexed(): number;
  /** Since the start: presented keys answered from the cache, those that had to wait for accounts, and those that cannot be keys. */
  counts(): { readonly cached: number; readonly lookedUp: number; readonly malformed: number };
}

export function createAuthenticator({ accounts, bus, clock, pepper, variant, onCompromised = () => undefined, isServing = () => true, isRunning = () => false, keysMax = CACHE_KEYS_MAX }: AuthenticatorOptions): Authenticator {
  const cache = createCallerCache<Entry>(keysMax);
  // From the SHA-256 of a presented key to its digest: computing the HMAC costs more than the rest of a warm look-up.
  const digests = new LRUCache<string, string>({ max: keysMax });
  const running = new Map<string, Promise<Entry>>(); // kept: look-ups of keys that are not warm.
  const pepperText = pepper.unwrap();
  const pepperId = hash('sha256', pepperText, 'hex').slice(0, 8);
  const codec = messageCodec<KeyInvalidated, KeyInvalidated__Output>('signalbox.events.v1.KeyInvalidated');
  let subscription: Subscription | undefined;
  // Monotonic milliseconds. Every change to an entry that was read after this moment is known.
  let unbrokenMs = -Infinity;
  const counts = { cached: 0, lookedUp: 0, malformed: 0 };
  let generation = 0;
  // Monotonic milliseconds of the latest failed look-up; undefined while accounts answers.
  let failedAtMs: number | undefined;

  /** A look-up that is under way may bring what no longer holds: no further request may wait for it, and its answer is not kept. */
  const outdateRunning = (): void => {
    generation += 1;
    running.clear();
  };

  const drop = (of: 'key' | 'account', id: string): void => {
    for (const { digest, caller } of cache.drop(of, id)) if (caller !== undefined && isRunning(caller.key.id)) void renew(digest, caller);
  };

  /** What accounts says, and the session's end in milliseconds since the epoch (Infinity for a key). */
  const ask = async (name: string, requestId: string): Promise<{ readonly answer: AuthenticateResponse__Output | null; readonly endsAtMs: number }> => {
    if (!name.startsWith(SESSION)) {
      const answer = await accounts.unary<AuthenticateRequest, AuthenticateResponse__Output>('Authenticate', { digest: Buffer.from(name, 'hex'), pepperId }, { deadlineMs: LOOKUP_DEADLINE_MS, requestId });
      return { answer, endsAtMs: Infinity };
    }
    const digest = Buffer.from(name.slice(SESSION.length), 'hex');
    const { caller, expiresAt } = await accounts.unary<SessionRef, AuthenticateSessionResponse__Output>('AuthenticateSession', { sessionDigest: digest, pepperId }, { deadlineMs: LOOKUP_DEADLINE_MS, requestId });
    return { answer: caller, endsAtMs: Number(expiresAt) * 1_000 };
  };

  const lookUp = (digest: string, requestId: string): Promise<Entry> => {
    const already = running.get(digest);
    if (already !== undefined) return already;
    if (running.size >= LOOKUPS_AT_ONCE_MAX) return Promise.reject(new Fault('accounts_unavailable', 'too many look-ups at once'));
    const begun = generation;
    const promise: Promise<Entry> = ask(digest, requestId)
      .then(
        ({ answer, endsAtMs }): Entry => {
          const caller = answer !== null && answer.key !== null && answer.account !== null && answer.found ? { key: answer.key, account: answer.account, variant: variantOf(answer.account, variant) } : undefined;
          const expiresAtMs = caller === undefined ? Infinity : Math.min(expiryOf(caller), endsAtMs) + aheadMs(answer, clock.nowMs());
          const entry: Entry = { caller, judgement: caller === undefined ? INVALID : judge(caller), expiresAtMs, endsAtMs: steadyEnd(expiresAtMs, clock), fetchedAtMs: clock.monotonicMs() };
          // An invalidation that arrived meanwhile may concern this very answer: use it once, do not keep it.
          failedAtMs = undefined;
          if (begun !== generation) return entry;
          cache.keep(digest, entry);
          return entry;
        },
        (error: unknown) => {
          failedAtMs = clock.monotonicMs();
          throw new Fault('accounts_unavailable', 'the key could not be looked up', { cause: error });
        },
      )
      .finally(() => {
        if (running.get(digest) === promise) running.delete(digest);
      });
    running.set(digest, promise);
    return promise;
  };

  /** Looks a key up again, repeatedly while changes arrive meanwhile, since they may concern this key. If accounts is away, the next request asks. */
  const renew = async (digest: string, before: Caller): Promise<void> => {
    let begun: number | undefined;
    try {
      for (let asked = 0; asked < RENEWALS_MAX && begun !== generation; asked += 1) {
        begun = generation;
        const { caller } = await lookUp(digest, '');
        // A look-up that was joined may be the one that brought what was dropped.
        if (caller !== undefined) cache.succeed(before, caller);
      }
    } catch {
      // The next request asks.
    }
  };

  /** While accounts is away a warm key does not wait: it is rechecked in the background, at most each half second. */
  const lookUpUnlessAway = (digest: string, nowMs: number, requestId: string): Promise<Entry> | undefined => {
    if (failedAtMs !== undefined && nowMs - failedAtMs < RETRY_AWAY_MS) return undefined;
    const fresh = lookUp(digest, requestId);
    if (isAway()) fresh.catch(() => undefined);
    return fresh;
  };

  /** Milliseconds since an entry was known to be current. */
  const unheardMs = ({ fetchedAtMs }: Entry, nowMs: number): number => nowMs - (fetchedAtMs > unbrokenMs ? Math.max(fetchedAtMs, feed.currentMs()) : fetchedAtMs);

  /** Over by the wall clock but not by the monotonic one: the clock was set, or the host slept. Accounts is asked. */
  const seemsOver = ({ expiresAtMs, endsAtMs }: Entry, nowMs: number): boolean => expiresAtMs <= clock.nowMs() && endsAtMs > nowMs;

  const entryOf = (digest: string, requestId = ''): Entry | Promise<Entry> => {
    const nowMs = clock.monotonicMs();
    feed.use(nowMs);
    const cached = cache.get(digest);
    if (cached === undefined) {
      const missing = cache.unknown(digest);
      return missing !== undefined && nowMs - missing.fetchedAtMs < UNKNOWN_MS ? missing : lookUp(digest, requestId);
    }
    const ageMs = nowMs - cached.fetchedAtMs;
    if (ageMs < RECHECK_MS && !seemsOver(cached, nowMs)) {
      if (unheardMs(cached, nowMs) < UNHEARD_MS_MAX) return cached;
      // One answer brings the changes of all keys.
      const caughtUp = feed.catchingUp();
      if (caughtUp !== undefined && !isAway()) return caughtUp.then(() => entryOf(digest, requestId));
    }
    if (ageMs > STALE_MS_MAX) return lookUp(digest, requestId);
    const fresh = lookUpUnlessAway(digest, nowMs, requestId);
    return fresh === undefined || isAway() ? cached : fresh.catch(() => cached);
  };

  const answerOf = ({ judgement, endsAtMs }: Entry): Authentication => (endsAtMs <= clock.monotonicMs() ? EXPIRED : judgement);

  const sessionName = (token: string): string => SESSION + sessionDigest(pepperText, token).toString('hex');
  const isWarmName = (name: string): boolean => {
    const entry = cache.peek(name);
    return entry !== undefined && answerOf(entry).kind === 'caller';
  };

  const presentedOf = (key: string): string => hash('sha256', key, 'base64');

  /** Undefined when the text is not a well-formed key. */
  const digestOf = (key: string, presented: string): string | undefined =>
    digests.get(presented) ?? (isWellFormedApiKey(key) ? createHmac('sha256', pepperText).update(key).digest('hex') : undefined);

  const invalidate: Authenticator['invalidate'] = ({ keyId, accountId, isCompromised }) => {
    outdateRunning();
    if (keyId === '') drop('account', accountId);
    else drop('key', keyId);
    if (isCompromised && keyId !== '') onCompromised(keyId);
  };

  const changed = ({ keyId, accountId, reason }: Pick<KeyInvalidated__Output, 'keyId' | 'accountId' | 'reason'>): void => invalidate({ keyId, accountId, isCompromised: reason === 'compromised' });
  const feed = createChangesFeed({
    accounts,
    clock,
    onChange: changed,
    onBreak: () => {
      outdateRunning();
      unbrokenMs = clock.monotonicMs();
    },
    isServing,
  });
  const isAway = (): boolean => failedAtMs !== undefined || feed.isAway();
  const uses = createKeyUses({ accounts, clock });

  return {
    invalidate,
    start: async () => {
      subscription = await bus.listen('keys.v1.revoked', ({ payload }) => {
        try {
          changed(codec.decode(payload));
        } catch {
          // What was invalidated cannot be read: recheck everything.
          outdateRunning();
          cache.clear();
        }
      });
      feed.start();
      uses.start();
    },
    stop: async () => {
      feed.stop();
      await uses.stop();
      await subscription?.stop();
    },
    authenticate: (key, requestId) => {
      const presented = presentedOf(key);
      const digest = digestOf(key, presented);
      if (digest === undefined) {
        counts.malformed += 1;
        return INVALID;
      }
      const answer = (entry: Entry): Authentication => {
        if (entry.caller !== undefined) digests.set(presented, digest);
        const authentication = answerOf(entry);
        if (authentication.kind === 'caller') uses.note(authentication.caller.key.id);
        return authentication;
      };
      const entry = entryOf(digest, requestId);
      if (!(entry instanceof Promise)) {
        counts.cached += 1;
        return answer(entry);
      }
      counts.lookedUp += 1;
      return entry.then(answer);
    },
    authenticateSession: (token, requestId) => {
      const entry = entryOf(sessionName(token), requestId);
      const answer = (found: Entry): Authentication => (found.caller !== undefined && found.endsAtMs <= clock.monotonicMs() ? INVALID : found.judgement);
      return entry instanceof Promise ? entry.then(answer) : answer(entry);
    },
    sessionEndSeconds: (token) => {
      const entry = cache.peek(sessionName(token));
      return entry === undefined || entry.expiresAtMs === Infinity ? undefined : Math.floor(entry.expiresAtMs / 1_000);
    },
    forgetSession: (token) => {
      outdateRunning();
      cache.delete(sessionName(token));
    },
    present: (caller) => cache.present(caller),
    digest: (key) => ({ digest: createHmac('sha256', pepperText).update(key).digest(), pepperId }),
    isWarm: (key) => {
      const digest = digestOf(key, presentedOf(key));
      return digest !== undefined && isWarmName(digest);
    },
    isWarmSession: (token) => isWarmName(sessionName(token)),
    size: () => cache.size(),
    indexed: () => cache.indexed(),
    counts: () => counts,
  };
}
