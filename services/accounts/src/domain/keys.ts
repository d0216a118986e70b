/** The life cycle of a key: active, rotating, disabled, expired, revoked (docs/keys.md). */
import type { Clock } from '@signalbox/kernel/clock';
import { encodeUlid, type IdSource } from '@signalbox/kernel/ids';
import { REMEMBERED_MS } from './claims.js';
import { sameDigest, type SecretMaker } from './secrets.js';
import type { AccountStore, Announcer, Change, InvalidationReason } from './ports.js';
import { KEY_STATUSES, keyStatus, OPERATOR_DEFAULT_SCOPES, type AccountRecord, type KeyLimitsRecord, type KeyRecord, type KeyStatus, type ProviderKeyRecord } from './records.js';
import { EXPIRES_IN_SECONDS_MAX, GRACE_SECONDS_MAX, handedProblem, isLimited, isLooser, KEYS_MAX, limitsProblem, nameProblem, scopesProblem } from './rules.js';

/** Ninety days in seconds. */
const REVOKED_LISTED_SECONDS = 7_776_000;
const LIST_MAX = 100;
/** Error code of the refusal, the same as for a request with that key. */
const REFUSED_ACTORS = { revoked: 'api_key_revoked', expired: 'api_key_expired', disabled: 'invalid_api_key' } as const;
/** Replaces these scopes for a rotated-out secret in its grace period: it may read, but not create a secret that would outlive it. */
const SCOPES_IN_GRACE: Readonly<Record<string, readonly string[]>> = { keys: ['keys:read'], admin: [] };
const NO_DIGEST = new Uint8Array();
export const NO_LIMITS: KeyLimitsRecord = { requestsPerMinute: null, costCaps: [], allowedModels: [] };

export interface SeenKey {
  readonly key: KeyRecord;
  readonly status: KeyStatus;
}
export interface NewKey {
  readonly accountId: string;
  readonly name: string;
  /** Seconds from now; null = never. */
  readonly expiresInSeconds: bigint | null;
  /** Empty = the scopes of the calling key. */
  readonly scopes: readonly string[];
  readonly limits: KeyLimitsRecord;
  /** Empty = the operator. */
  readonly actorKeyId: string;
  /** Digest of the Idempotency-Key, 16 bytes or more: within a day no second key is created with it. Absent or empty = none. */
  readonly repeatDigest?: Uint8Array | undefined;
}
export interface KeyChange {
  readonly name?: string | undefined;
  readonly isDisabled?: boolean | undefined;
  readonly limits?: KeyLimitsRecord | undefined;
  /** The fields of `limits` that are replaced; absent or empty = all. */
  readonly limitNames?: readonly (keyof KeyLimitsRecord)[] | undefined;
}
export type KeyOutcome = SeenKey | { readonly problem: string } | undefined;
export type SecretOutcome = { readonly seen: SeenKey; readonly secret: string } | { readonly problem: string } | undefined;

/**
 * `accountId` empty = the operator: any account. Undefined = no such key there.
 * `actorKeyId` is the calling key, empty = the operator. A key never gets the secret of a key with more scopes or a later expiry (`handedProblem`). A key with limits cannot loosen the limits of any key, its own included.
 */
export interface Keys {
  authenticate(digest: Uint8Array, pepperId: string): Promise<(SeenKey & { readonly account: AccountRecord; readonly providerKeys: readonly ProviderKeyRecord[] }) | undefined>;
  /** False if there are keys, and all their digests use another pepper than the current one: no key would be recognised. */
  isPepperTheirs(): Promise<boolean>;
  /** `secret` is empty if the key was created before, with the same digest. */
  create(wanted: NewKey): Promise<SecretOutcome>;
  get(accountId: string, keyId: string): Promise<SeenKey | undefined>;
  list(accountId: string, limit: number, after: string, status: string): Promise<{ readonly keys: readonly SeenKey[]; readonly hasMore: boolean } | { readonly problem: string }>;
  update(accountId: string, keyId: string, change: KeyChange, actorKeyId: string): Promise<KeyOutcome>;
  /** Safe to repeat: the first time of revocation stays. */
  /** `isCompromised`: running requests with this key are to be aborted. */
  revoke(accountId: string, keyId: string, isCompromised?: boolean): Promise<SeenKey | undefined>;
  rotate(accountId: string, keyId: string, graceSeconds: number, actorKeyId: string): Promise<SecretOutcome>;
  touch(touches: readonly { readonly keyId: string; readonly usedAt: number }[]): Promise<void>;
}

/** Applies a change to the limits stored at that moment, so that two concurrent changes of different limits both last. */
function limitsAfter(current: KeyLimitsRecord, { limits, limitNames = [] }: KeyChange): KeyLimitsRecord {
  if (limits === undefined || limitNames.length === 0) return limits ?? current;
  return { ...current, ...Object.fromEntries(limitNames.map((name) => [name, limits[name]])) };
}

/** Derives the key's id from the digest. Two concurrent calls get the same id, and the store accepts only one of them. */
function repeatedId(digest: Uint8Array): string {
  const bytes = Buffer.from(digest);
  return `key_${encodeUlid(bytes.readUIntBE(0, 6), bytes, 6)}`;
}

/** A new key's record. */
export function newKeyRecord(fields: Pick<KeyRecord, 'id' | 'accountId' | 'name' | 'prefix' | 'scopes' | 'createdAt' | 'expiresAt' | 'limits'>): KeyRecord {
  return { ...fields, lastUsedAt: null, revokedAt: null, isDisabled: false, graceEndsAt: null };
}

/** Problem of a change of a key's limits by `actor`. */
function loosenedProblem(actor: KeyRecord, current: KeyRecord, { limits, isDisabled }: KeyChange): string | undefined {
  if (!isLimited(actor.limits)) return undefined;
  if (limits !== undefined && isLooser(limits, current.limits)) return 'insufficient_scope: limits may only be tightened by a key that has limits of its own.';
  return isDisabled === false && current.isDisabled ? 'insufficient_scope: disabled may not be taken off by a key that has limits of its own.' : undefined;
}

export function createKeys({ store, announcer, clock, ids, secrets }: { readonly store: AccountStore; readonly announcer: Announcer; readonly clock: Clock; readonly ids: IdSource; readonly secrets: SecretMaker }): Keys {
  const nowSeconds = (): number => Math.floor(clock.nowMs() / 1_000);
  const seen = (key: KeyRecord): SeenKey => ({ key, status: keyStatus(key, nowSeconds()) });
  const isVisible = (accountId: string, key: KeyRecord | undefined): key is KeyRecord => key !== undefined && (accountId === '' || key.accountId === accountId);
  const findVisible = async (accountId: string, keyId: string): Promise<KeyRecord | undefined> => {
    const key = await store.findKey(keyId);
    return isVisible(accountId, key) ? key : undefined;
  };
  const changed = ({ id, accountId }: KeyRecord, reason: InvalidationReason): Change => ({ keyId: id, accountId, reason });
  const finalProblem = (key: KeyRecord): string | undefined => {
    const status = keyStatus(key, nowSeconds());
    return status === 'revoked' || status === 'expired' ? `key_id names a key that is ${status}.` : undefined;
  };

  /** Edge may accept a key for a moment after its end; its calls here are then refused. */
  const actorProblem = (actor: KeyRecord | undefined): string | undefined => {
    if (actor === undefined) return undefined;
    const status = keyStatus(actor, nowSeconds());
    return status === 'active' || status === 'rotating' ? undefined : `${REFUSED_ACTORS[status]}: The API key that asks is ${status}.`;
  };

  return {
    isPepperTheirs: async () => {
      const { hasThis, hasAny } = await store.peppersOfSecrets(secrets.pepperId);
      return hasThis || !hasAny;
    },
    authenticate: async (digest, pepperId) => {
      const found = await store.findSecret(digest);
      if (found === undefined || found.secret.pepperId !== pepperId || !sameDigest(found.secret.digest, digest)) return undefined;
      const { secret, account, providerKeys } = found;
      const { validUntil } = secret;
      if (validUntil === null) return { ...seen(found.key), account, providerKeys };
      // A rotated-out secret ends with its grace period, and callers that cache the answer must see that end.
      if (validUntil <= nowSeconds()) return { key: { ...found.key, revokedAt: found.key.revokedAt ?? validUntil }, status: 'revoked', account, providerKeys };
      const scopes = found.key.scopes.flatMap((scope) => SCOPES_IN_GRACE[scope] ?? [scope]);
      const key = { ...found.key, scopes, expiresAt: Math.min(found.key.expiresAt ?? validUntil, validUntil) };
      return { ...seen(key), account, providerKeys };
    },

    create: async ({ accountId, name, expiresInSeconds, scopes: wanted, limits, actorKeyId, repeatDigest = NO_DIGEST }) => {
      if ((await store.findAccount(accountId)) === undefined) return undefined;
      const actor = actorKeyId === '' ? undefined : await findVisible(accountId, actorKeyId);
      if (actorKeyId !== '' && actor === undefined) return undefined;
      const allowed = actor?.scopes ?? OPERATOR_DEFAULT_SCOPES;
      const scopes = wanted.length === 0 ? allowed : [...new Set(wanted)];
      const problem =
        actorProblem(actor) ??
        nameProblem(name) ??
        scopesProblem(scopes) ??
        limitsProblem(limits) ??
        (expiresInSeconds !== null && (expiresInSeconds < 1n || expiresInSeconds > BigInt(EXPIRES_IN_SECONDS_MAX)) ? `expires_in must be a whole number of seconds from 1 to ${EXPIRES_IN_SECONDS_MAX}.` : undefined);
      if (problem !== undefined) return { problem };
      const createdAt = nowSeconds();
      const expiresAt = expiresInSeconds === null ? null : createdAt + Number(expiresInSeconds);
      const looser = actor === undefined ? undefined : handedProblem(actor, { scopes, limits, expiresAt });
      if (looser !== undefined) return { problem: looser };
      const made = secrets.make();
      const insert = async (id: string): Promise<{ readonly key: KeyRecord; readonly was: Awaited<ReturnType<AccountStore['insertKey']>> }> => {
        const key = newKeyRecord({ id, accountId, name, prefix: made.prefix, scopes, createdAt, expiresAt, limits });
        return { key, was: await store.insertKey(key, { digest: made.digest, pepperId: secrets.pepperId, keyId: id, validUntil: null }, KEYS_MAX) };
      };
      let { key, was } = await insert(repeatDigest.length === 0 ? ids('key') : repeatedId(repeatDigest));
      if (typeof was === 'object') {
        if (was.accountId === accountId && createdAt - was.createdAt <= REMEMBERED_MS / 1_000) return { seen: seen(was), secret: '' };
        // The Idempotency-Key is reused more than a day later.
        ({ key, was } = await insert(ids('key')));
      }
      return was === 'made' ? { seen: seen(key), secret: made.secret } : { problem: `An account has at most ${KEYS_MAX} keys that are neither revoked nor expired.` };
    },

    get: async (accountId, keyId) => {
      const key = await findVisible(accountId, keyId);
      return key === undefined ? undefined : seen(key);
    },

    list: async (accountId, limit, after, status) => {
      if (limit < 1 || limit > LIST_MAX) return { problem: `limit must be from 1 to ${LIST_MAX}.` };
      const wanted = KEY_STATUSES.find((known) => known === status);
      if (status !== '' && wanted === undefined) return { problem: `status must be among ${KEY_STATUSES.join(', ')}.` };
      if (after !== '' && (await findVisible(accountId, after)) === undefined) return { problem: 'after must be the id of a key of this account.' };
      const now = nowSeconds();
      const found = await store.listKeys(accountId, { limit: limit + 1, afterId: after === '' ? undefined : after }, { nowSeconds: now, revokedSince: now - REVOKED_LISTED_SECONDS, status: wanted });
      return { keys: found.slice(0, limit).map((key) => ({ key, status: keyStatus(key, now) })), hasMore: found.length > limit };
    },

    update: async (accountId, keyId, change, actorKeyId) => {
      const wrong = (change.name === undefined ? undefined : nameProblem(change.name)) ?? (change.limits === undefined ? undefined : limitsProblem(change.limits));
      if ((await findVisible(accountId, keyId)) === undefined) return undefined;
      if (wrong !== undefined) return { problem: wrong };
      const actor = actorKeyId === '' ? undefined : await findVisible(accountId, actorKeyId);
      if (actorKeyId !== '' && actor === undefined) return undefined;
      let problem: string | undefined;
      const key = await store.updateKey(
        keyId,
        (current) => {
          // If a key changes itself, its currently stored limits apply, not those read a moment ago.
          const by = keyId === actorKeyId ? current : actor;
          const limits = limitsAfter(current.limits, change);
          problem = actorProblem(by) ?? finalProblem(current) ?? (by === undefined ? undefined : loosenedProblem(by, current, change.limits === undefined ? change : { ...change, limits }));
          if (problem !== undefined) return current;
          return { ...current, name: change.name ?? current.name, isDisabled: change.isDisabled ?? current.isDisabled, limits };
        },
        (after) => (problem === undefined ? changed(after, 'updated') : undefined),
      );
      if (key === undefined) return undefined;
      if (problem !== undefined) return { problem };
      announcer.invalidated(changed(key, 'updated'));
      return seen(key);
    },

    revoke: async (accountId, keyId, isCompromised = false) => {
      if ((await findVisible(accountId, keyId)) === undefined) return undefined;
      const reason = isCompromised ? 'compromised' : 'revoked';
      // Announced on a repeat too: the repeat may be the one that says `isCompromised`, which aborts running requests.
      const key = await store.updateKey(keyId, (current) => (current.revokedAt === null ? { ...current, revokedAt: nowSeconds() } : current), (after) => changed(after, reason));
      if (key === undefined) return undefined;
      announcer.invalidated(changed(key, reason));
      return seen(key);
    },

    rotate: async (accountId, keyId, graceSeconds, actorKeyId) => {
      if ((await findVisible(accountId, keyId)) === undefined) return undefined;
      if (graceSeconds < 0 || graceSeconds > GRACE_SECONDS_MAX) return { problem: `grace_seconds must be a whole number from 0 to ${GRACE_SECONDS_MAX}.` };
      const actor = actorKeyId === '' ? undefined : await findVisible(accountId, actorKeyId);
      if (actorKeyId !== '' && actor === undefined) return undefined;
      const made = secrets.make();
      const endsAt = nowSeconds() + graceSeconds;
      let problem: string | undefined;
      const key = await store.rotateKey(
        keyId,
        (current) => {
          const by = keyId === actorKeyId ? current : actor;
          problem = actorProblem(by) ?? finalProblem(current) ?? (current.isDisabled ? 'key_id names a key that is disabled.' : undefined) ?? (actor === undefined || keyId === actorKeyId ? undefined : handedProblem(actor, current));
          return problem === undefined ? { ...current, prefix: made.prefix, graceEndsAt: endsAt } : current;
        },
        { digest: made.digest, pepperId: secrets.pepperId, keyId, validUntil: null },
        endsAt,
        (after) => changed(after, 'rotated'),
      );
      if (key === undefined) return undefined;
      if (problem !== undefined) return { problem };
      announcer.invalidated(changed(key, 'rotated'));
      return { seen: seen(key), secret: made.secret };
    },

    touch: (touches) => store.touchKeys(touches),
  };
}
