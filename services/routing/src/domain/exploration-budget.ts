/** How much each account may still spend on trying other models: at most 2 % of its requests and 1 % of its cost. */
import { LiveMap } from '@signalbox/kernel/live-map';
import { EXPLORATION_SHARE, explorationRoom } from '@signalbox/router-core/exploration';
import type { Plan, Refusal } from '@signalbox/router-core/decide';

const ACCOUNTS_MAX = 20_000;
/** Most decisions whose answer is waited for. Of those that are refused or fail nothing is heard: the older half is forgotten at once. */
const WAITING_MAX = 20_000;

interface Tally {
  /** Requests for `auto` that were answered. */
  requests: number;
  explored: number;
  /** Expected cost of `requests`, in nano-USD. */
  spent: number;
  /** Expected cost beyond the best choice, in nano-USD. */
  spentExploring: number;
}

interface Decided {
  readonly accountId: string;
  /** Expected, in nano-USD. */
  readonly cost: number;
}

export interface ExplorationBudget {
  /** Nano-USD that this request may spend on trying another model; undefined = it may not try one. */
  roomOf(accountId: string): number | undefined;
  /** What a decision explores counts at once, since others are made before its answer; its request and cost only once it is answered. */
  note(decisionId: string, accountId: string, result: Plan | Refusal): void;
  /** A decision was answered; also called for those of other replicas, and more than once. */
  hearAnswer(decisionId: string): void;
}

/** Per replica, in memory, empty at the start: an account explores only in proportion to what it was served since then. Refused requests give no room. */
export function createExplorationBudget(): ExplorationBudget {
  // A Map iterates in the order of insertion: the first account is the one that was first seen.
  const tallies = new Map<string, Tally>(); // kept: by account.
  // Two halves, not the oldest one by one: a Map takes long to find its first key where many before it were deleted.
  let recent = new LiveMap<string, Decided>();
  let older = new LiveMap<string, Decided>();
  const tallyOf = (accountId: string): Tally => {
    const known = tallies.get(accountId);
    if (known !== undefined) return known;
    const tally: Tally = { requests: 0, explored: 0, spent: 0, spentExploring: 0 };
    tallies.set(accountId, tally);
    if (tallies.size > ACCOUNTS_MAX) {
      const [oldest] = tallies.keys();
      if (oldest !== undefined) tallies.delete(oldest);
    }
    return tally;
  };
  return {
    roomOf: (accountId) => {
      const tally = tallies.get(accountId);
      if (accountId === '' || tally === undefined || tally.explored + 1 > (tally.requests + 1) * EXPLORATION_SHARE) return undefined;
      return explorationRoom(tally.spent, tally.spentExploring);
    },
    note: (decisionId, accountId, result) => {
      // A choice of `auto` that is only a fallback is hardly ever made, and its cost not spent.
      const chosen = result.kind === 'plan' && result.isByAuto ? result.auto?.groups[0] : undefined;
      if (accountId === '' || chosen === undefined || result.kind !== 'plan') return;
      if (recent.size >= WAITING_MAX / 2) [older, recent] = [recent, new LiveMap()];
      recent.set(decisionId, { accountId, cost: chosen.cost });
      if (result.auto?.reason !== 'explored') return;
      const tally = tallyOf(accountId);
      tally.explored += 1;
      tally.spentExploring += Math.max(0, chosen.cost - (result.auto.peers[0]?.cost ?? chosen.cost));
    },
    hearAnswer: (decisionId) => {
      const decided = recent.get(decisionId) ?? older.get(decisionId);
      if (decided === undefined) return;
      recent.delete(decisionId);
      older.delete(decisionId);
      const tally = tallyOf(decided.accountId);
      tally.requests += 1;
      tally.spent += decided.cost;
    },
  };
}
