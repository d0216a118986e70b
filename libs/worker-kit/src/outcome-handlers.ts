/** RPC handlers that write the outcomes told by edge into the journal, one or several at a time. */
import type { OutcomeRequest__Output, OutcomesRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import type { Journal } from './journal.js';

export interface OutcomeHandlers {
  readonly Outcome: (request: OutcomeRequest__Output) => Promise<object>;
  readonly Outcomes: (request: OutcomesRequest__Output) => Promise<object>;
}

/** The handlers answer once every outcome that the worker would not conclude by itself is in the log. They throw the journal's Faults, and `bad_message` for a missing outcome. */
export function outcomeHandlers(journal: Pick<Journal, 'outcome'>): OutcomeHandlers {
  const tell = async ({ requestId, attempt, outcome, followed: isFollowed, reserve: isReserve }: OutcomeRequest__Output): Promise<void> => {
    if (outcome === 'OUTCOME_UNSPECIFIED') throw new Fault('bad_message', 'outcome missing');
    await journal.outcome(requestId, attempt, outcome, true, { isFollowed, isReserve });
  };
  return {
    Outcome: async (request) => {
      await tell(request);
      return {};
    },
    Outcomes: async ({ outcomes }) => {
      await Promise.all(outcomes.map(tell));
      return {};
    },
  };
}
