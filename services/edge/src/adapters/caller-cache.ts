/** The cache of callers: looked up by digest, and dropped by key or account when either is changed. */
import { LRUCache } from 'lru-cache';
import type { Caller } from '../domain/ports.js';

const UNKNOWN_KEYS_MAX = 5_000;

export interface CachedCaller {
  /** Undefined = accounts does not know the key. */
  readonly caller: Caller | undefined;
  readonly fetchedAtMs: number;
}

export interface CallerCache<Entry extends CachedCaller> {
  /** The entry of a key that exists. When the cache is full, the least recently used one is dropped. */
  get(digest: string): Entry | undefined;
  /** As `get`, but does not count as use. */
  peek(digest: string): Entry | undefined;
  /** The entry of a key that accounts does not know. */
  unknown(digest: string): Entry | undefined;
  /** Keeps what accounts said about a known or unknown key. */
  keep(digest: string, entry: Entry): void;
  delete(digest: string): void;
  clear(): void;
  /** Drops what is cached of a key, or of a whole account, and returns it. */
  drop(of: 'key' | 'account', id: string): readonly { readonly digest: string; readonly caller: Caller | undefined }[];
  /** Records that `after` replaced `before`. */
  succeed(before: Caller, after: Caller): void;
  /** The latest record that replaced `caller`, even if it is refused by now; `caller` itself when there is none. */
  present(caller: Caller): Caller;
  /** Keys that are cached, of any age. */
  size(): number;
  /** Index entries: one by key and one by account for each cached key. */
  indexed(): number;
}

export function createCallerCache<Entry extends CachedCaller>(keysMax: number): CallerCache<Entry> {
  const digestsOf = {
    key: new Map<string, Set<string>>(), // kept: by key, as long as it is cached.
    account: new Map<string, Set<string>>(), // kept: by account with a cached key.
  };
  const index = (map: Map<string, Set<string>>, id: string, digest: string): void => {
    const set = map.get(id);
    if (set === undefined) map.set(id, new Set([digest]));
    else set.add(digest);
  };
  const unindex = (map: Map<string, Set<string>>, id: string | undefined, digest: string): void => {
    if (id === undefined) return;
    const set = map.get(id);
    set?.delete(digest);
    if (set?.size === 0) map.delete(id);
  };
  const known = new LRUCache<string, Entry>({
    max: keysMax,
    // A digest always belongs to the same key and account: setting it again changes nothing here.
    dispose: ({ caller }, digest, reason) => {
      if (reason === 'set') return;
      unindex(digestsOf.key, caller?.key.id, digest);
      unindex(digestsOf.account, caller?.account.id, digest);
    },
  });
  // Separate from the keys that exist, so that a flood of wrong keys never displaces those.
  const unknown = new LRUCache<string, Entry>({ max: UNKNOWN_KEYS_MAX });
  // From a record to the one that replaced it: a second notice of a change must not bring back what was known before the first.
  const successors = new WeakMap<Caller, Caller>();

  return {
    get: (digest) => known.get(digest),
    peek: (digest) => known.peek(digest),
    unknown: (digest) => unknown.get(digest),
    keep: (digest, entry) => {
      const { caller } = entry;
      if (caller === undefined) {
        known.delete(digest);
        unknown.set(digest, entry);
        return;
      }
      index(digestsOf.key, caller.key.id, digest);
      index(digestsOf.account, caller.account.id, digest);
      const before = known.peek(digest)?.caller;
      if (before !== undefined) successors.set(before, caller);
      known.set(digest, entry);
      unknown.delete(digest);
    },
    delete: (digest) => void known.delete(digest),
    clear: () => {
      known.clear();
      unknown.clear();
    },
    drop: (of, id) =>
      [...(digestsOf[of].get(id) ?? [])].map((digest) => {
        const caller = known.peek(digest)?.caller;
        known.delete(digest);
        return { digest, caller };
      }),
    succeed: (before, after) => void (after !== before && successors.set(before, after)),
    present: (caller) => {
      let latest: Entry | undefined;
      for (const digest of digestsOf.key.get(caller.key.id) ?? []) {
        const entry = known.peek(digest);
        if (entry !== undefined && entry.fetchedAtMs >= (latest?.fetchedAtMs ?? 0)) latest = entry;
      }
      if (latest?.caller !== undefined) return latest.caller;
      let now = caller;
      for (let next = successors.get(now); next !== undefined; next = successors.get(now)) now = next;
      return now;
    },
    size: () => known.size,
    indexed: () => Object.values(digestsOf).reduce((sum, map) => [...map.values()].reduce((all, set) => all + set.size, sum), 0),
  };
}
