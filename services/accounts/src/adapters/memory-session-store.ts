/** Sessions in memory, for tests. */
import type { SessionRecord, SessionStore } from '../domain/ports.js';
import { createMemoryChangeLog, type MemoryChangeLog } from './memory-change-log.js';

export function createMemorySessionStore(log: MemoryChangeLog = createMemoryChangeLog()): SessionStore {
  const sessions = new Map<string, SessionRecord>();
  const hex = (digest: Uint8Array): string => Buffer.from(digest).toString('hex');
  return {
    insert: async (session, keptMax, told) => {
      for (const [name, { expiresAt }] of sessions) if (expiresAt <= session.createdAt) sessions.delete(name);
      const older = [...sessions.entries()].filter(([, { keyDigest }]) => hex(keyDigest) === hex(session.keyDigest)).sort(([, one], [, other]) => other.createdAt - one.createdAt);
      const gone = older.slice(keptMax - 1);
      for (const [name] of gone) sessions.delete(name);
      sessions.set(hex(session.digest), session);
      if (gone.length > 0) log.add(told);
      return gone.length > 0;
    },
    find: async (digest) => sessions.get(hex(digest)),
    touch: async (digest, usedAt) => {
      const session = sessions.get(hex(digest));
      if (session !== undefined) sessions.set(hex(digest), { ...session, lastUsedAt: Math.max(session.lastUsedAt, usedAt) });
    },
    remove: async (digest, told) => {
      const session = sessions.get(hex(digest));
      sessions.delete(hex(digest));
      if (session !== undefined) log.add(told);
      return session;
    },
  };
}
