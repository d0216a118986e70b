/** Remembers which endpoint served each conversation, so that `auto` can weigh the cost of moving it. Best effort, in memory. */
import type { Clock } from '@signalbox/kernel/clock';
import type { HeldConversation } from '@signalbox/router-core/request';

/** Providers keep a prompt cache for five to ten minutes after its last use. */
const WARM_MS = 300_000;
const CONVERSATIONS_MAX = 20_000;

interface Home {
  readonly endpointId: string;
  readonly promptTokens: number;
  readonly atMs: number;
}

export interface Conversations {
  /** The endpoint that served the conversation last, while its prompt cache is probably warm. */
  find(accountId: string, session: string): HeldConversation | undefined;
  note(accountId: string, session: string, endpointId: string, promptTokens: number): void;
}

export function createConversations(clock: Clock): Conversations {
  // A Map iterates in the order of insertion: the first entry is the least recently used conversation.
  const homes = new Map<string, Home>(); // kept: by conversation, until thousands came since: what leaves is old whichever table held it.
  const keyOf = (accountId: string, session: string): string => `${accountId}|${session}`;
  return {
    find: (accountId, session) => {
      if (session === '') return undefined;
      const home = homes.get(keyOf(accountId, session));
      return home === undefined || clock.monotonicMs() - home.atMs > WARM_MS ? undefined : { endpointId: home.endpointId, cachedTokens: home.promptTokens };
    },
    note: (accountId, session, endpointId, promptTokens) => {
      if (session === '') return;
      const key = keyOf(accountId, session);
      homes.delete(key);
      homes.set(key, { endpointId, promptTokens, atMs: clock.monotonicMs() });
      if (homes.size <= CONVERSATIONS_MAX) return;
      const [oldest] = homes.keys();
      if (oldest !== undefined) homes.delete(oldest);
    },
  };
}
