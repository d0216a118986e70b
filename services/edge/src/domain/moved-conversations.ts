/**
 * Conversations answered by a fallback, because the endpoint that routing chose first had failed. Routing remembers its
 * choice and would send the next turn there again, while the prompt cache is at the fallback. Best effort, in memory, per
 * edge.
 */
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Clock } from '@signalbox/kernel/clock';
import type { AttemptReport } from './answer.js';
import type { Turn } from './turn.js';

/** Routing assumes a prompt cache for the same time. */
const WARM_MS = 300_000;
const CONVERSATIONS_MAX = 10_000;

export interface MovedConversations {
  /** Endpoint that answered the previous turn, if it was a fallback; else empty. */
  homeOf(turn: Turn): string;
  /** A turn was answered, by the last of `attempts`. */
  answered(turn: Turn, plan: DecideResponse__Output, attempts: readonly AttemptReport[]): void;
}

/** The digest by which routing recognizes a conversation. */
export const sessionOf = ({ request }: Turn): string => request.session;

const keyOf = (turn: Turn): string => `${turn.caller.account.id}|${sessionOf(turn)}`;

/** Only requests to `auto` matter here. Of requests whose data must not be kept, nothing is remembered, not even the endpoint. */
const isRemembered = ({ request }: Turn): boolean => request.promptText !== '' && !request.zdr && request.dataCollection !== 'deny';

export function createMovedConversations(clock: Pick<Clock, 'monotonicMs'>): MovedConversations {
  // A Map iterates in the order of insertion.
  const homes = new Map<string, { readonly endpointId: string; readonly untilMs: number }>(); // kept: of conversations that moved to another endpoint alone.
  return {
    homeOf: (turn) => {
      if (homes.size === 0 || !isRemembered(turn)) return '';
      const home = homes.get(keyOf(turn));
      return home === undefined || home.untilMs < clock.monotonicMs() ? '' : home.endpointId;
    },
    answered: (turn, { attempts: planned }, attempts) => {
      const last = attempts.at(-1);
      const answering = planned.find(({ provider, model }) => provider === last?.provider && model === last.model);
      const hasMoved = answering !== undefined && answering !== planned[0];
      if ((!hasMoved && homes.size === 0) || !isRemembered(turn)) return;
      const key = keyOf(turn);
      homes.delete(key);
      if (!hasMoved) return;
      homes.set(key, { endpointId: answering.endpointId, untilMs: clock.monotonicMs() + WARM_MS });
      const [oldest] = homes.size > CONVERSATIONS_MAX ? homes.keys() : [];
      if (oldest !== undefined) homes.delete(oldest);
    },
  };
}
