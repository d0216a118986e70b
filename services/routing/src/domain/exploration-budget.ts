/** How much each account may still spend on trying other models: at most 2 % of its requests and 1 % of its cost. */
import { EXPLORATION_SHARE, explorationRoom } from '@signalbox/router-core/exploration';
import type { Plan, Refusal } from '@signalbox/router-core/decide';

const ACCOUNTS_MAX = 20_000;

interface Tally {
  requests: number;
  explored: number;
  /** Expected cost of the account's `auto` requests, in nano-USD. */
  spent: number;
  /** Expected cost beyond the best choice, in nano-USD. */
  spentExploring: number;
}

export interface ExplorationBudget {
  /** Nano-USD that this request may spend on trying another model; undefined = it may not try one. */
  roomOf(accountId: string): number | undefined;
  note(accountId: string, result: Plan | Refusal): void;
}

/** Per replica, in memory, empty at the start: an account explores only in proportion to what it has spent since then. */
export function createExplorationBudget(): ExplorationBudget {
  // A Map iterates in the order of insertion: the first account is the one that was first seen.
  const tallies = new Map<string, Tally>(); // kept: by account.
  return {
    roomOf: (accountId) => {
      const tally = tallies.get(accountId);
      if (accountId === '' || tally === undefined || tally.explored + 1 > (tally.requests + 1) * EXPLORATION_SHARE) return undefined;
      return explorationRoom(tally.spent, tally.spentExploring);
    },
    note: (accountId, result) => {
      // A choice of `auto` that is only a fallback is hardly ever made, and its cost not spent.
      const chosen = result.kind === 'plan' && result.isByAuto ? result.auto?.groups[0] : undefined;
      if (accountId === '' || chosen === undefined || result.kind !== 'plan') return;
      let tally = tallies.get(accountId);
      if (tally === undefined) {
        tally = { requests: 0, explored: 0, spent: 0, spentExploring: 0 };
        tallies.set(accountId, tally);
        if (tallies.size > ACCOUNTS_MAX) {
          const [oldest] = tallies.keys();
          if (oldest !== undefined) tallies.delete(oldest);
        }
      }
      tally.requests += 1;
      tally.spent += chosen.cost;
      if (result.auto?.reason !== 'explored') return;
      tally.explored += 1;
      tally.spentExploring += Math.max(0, chosen.cost - (result.auto.peers[0]?.cost ?? chosen.cost));
    },
  };
}
