/** Dashboard sessions: created with a key, with that key's rights; ended by disuse, age, sign-out or the key's own end. */
import type { Clock } from '@signalbox/kernel/clock';
import type { Keys, SeenKey } from './keys.js';
import type { Announcer, Change, SessionRecord, SessionStore } from './ports.js';

/** Most sessions per secret. The oldest are deleted, so that repeated sign-ins do not fill the table. */
const SESSIONS_OF_SECRET_MAX = 50;
/** Edge asks again after this long at the latest and reports no use before (RECHECK_MS there). */
const USE_UNTOLD_SECONDS = 60;
/** Length of a SHA-256 digest. */
const DIGEST_BYTES = 32;

export interface SessionsOptions {
  readonly store: SessionStore;
  readonly keys: Pick<Keys, 'authenticate'>;
  readonly announcer: Announcer;
  readonly clock: Clock;
  readonly idleSeconds: number;
  readonly absoluteSeconds: number;
}

/** Sessions are identified by the digest of their token; the token itself never gets here. */
export interface Sessions {
  /** Undefined if the key may not be used. */
  create(digest: Uint8Array, keyDigest: Uint8Array, pepperId: string): Promise<SessionRecord | undefined>;
  /** Returns the session and marks it as used now; undefined if there is none or it has ended. Does not check its key. */
  use(digest: Uint8Array): Promise<SessionRecord | undefined>;
  /** Ends the session at every replica of edge. Safe to repeat. */
  end(digest: Uint8Array, pepperId: string): Promise<void>;
}

export function createSessions({ store, keys, announcer, clock, idleSeconds, absoluteSeconds }: SessionsOptions): Sessions {
  const nowSeconds = (): number => Math.floor(clock.nowMs() / 1_000);
  // Edge drops cache entries by key, so the key's other sessions and the key itself are merely looked up again.
  const ended = ({ key }: SeenKey): Change => ({ keyId: key.id, accountId: key.accountId, reason: 'session_ended' });
  return {
    create: async (digest, keyDigest, pepperId) => {
      if (digest.length !== DIGEST_BYTES) return undefined;
      const found = await keys.authenticate(keyDigest, pepperId);
      if (found === undefined || (found.status !== 'active' && found.status !== 'rotating') || found.account.suspended) return undefined;
      const createdAt = nowSeconds();
      const session: SessionRecord = { digest, keyDigest, createdAt, lastUsedAt: createdAt, expiresAt: createdAt + absoluteSeconds };
      // Sessions deleted to make room end at every edge too.
      if (await store.insert(session, SESSIONS_OF_SECRET_MAX, ended(found))) announcer.invalidated(ended(found));
      return session;
    },
    use: async (digest) => {
      const session = await store.find(digest);
      const now = nowSeconds();
      if (session === undefined || session.expiresAt <= now || session.lastUsedAt + USE_UNTOLD_SECONDS + idleSeconds <= now) return undefined;
      if (session.lastUsedAt < now) await store.touch(digest, now);
      return session;
    },
    end: async (digest, pepperId) => {
      const session = await store.find(digest);
      if (session === undefined) return;
      const found = await keys.authenticate(session.keyDigest, pepperId);
      const told = found === undefined ? undefined : ended(found);
      if ((await store.remove(digest, told)) !== undefined && told !== undefined) announcer.invalidated(told);
    },
  };
}
