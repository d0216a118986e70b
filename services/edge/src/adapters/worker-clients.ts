import type { DispatchEvent__Output, DispatchRequest, OutcomeRequest, TendRequest } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import type { WorkersPort } from '../domain/ports.js';

const OUTCOME_DEADLINE_MS = 2_000;
/** An outcome is told again for a minute, while its worker restarts: what a dead worker never hears of it charges as delivered. */
const OUTCOME_TRIES_MAX = 16;
/** Often at first, while a client may be waiting for it. */
const OUTCOME_RETRY_MS = 250;
const OUTCOME_SOON_TRIES = 8;
const OUTCOME_RETRY_MS_MAX = 16_000;
const OUTCOMES_WAITING_MAX = 10_000;
const NOBODY_THERE = Promise.resolve();

/** One client for each provider. */
export function createWorkerClients(clients: ReadonlyMap<string, RpcClient>, clock: Clock, attemptDeadlineMs: number): WorkersPort {
  let waiting = 0;
  const tell = (client: RpcClient, request: OutcomeRequest, attemptsLeft: number): Promise<void> =>
    client.unary<OutcomeRequest, object>('Outcome', request, { deadlineMs: OUTCOME_DEADLINE_MS, requestId: request.requestId ?? '' }).then(
      () => undefined,
      () => tellAgain(client, request, attemptsLeft - 1),
    );
  const tellAgain = (client: RpcClient, request: OutcomeRequest, attemptsLeft: number): Promise<void> | undefined => {
    if (attemptsLeft <= 0 || waiting >= OUTCOMES_WAITING_MAX) return undefined;
    waiting += 1;
    return new Promise((resolve) => {
      clock.setTimer(
        Math.min(OUTCOME_RETRY_MS * 2 ** Math.max(0, OUTCOME_TRIES_MAX - attemptsLeft - OUTCOME_SOON_TRIES), OUTCOME_RETRY_MS_MAX),
        () => {
          waiting -= 1;
          void tell(client, request, attemptsLeft).then(resolve);
        },
        { unref: true },
      );
    });
  };
  return {
    dispatch: (provider, request, listener) =>
      clients.get(provider)?.stream<DispatchRequest, DispatchEvent__Output>(
        'Dispatch',
        request,
        { onMessage: (event) => listener.onEvent(event), onEnd: (fault) => listener.onEnd(fault) },
        { deadlineMs: attemptDeadlineMs, requestId: request.requestId ?? '' },
      ),
    tellOutcome: (provider, accountId, requestId, attempt, outcome, isFollowed = false) => {
      const client = clients.get(provider);
      return client === undefined ? NOBODY_THERE : tell(client, { accountId, requestId, attempt, outcome, followed: isFollowed }, OUTCOME_TRIES_MAX);
    },
    tend: (provider, requestId, attempt) => {
      // A worker that does not know the call waits longer by itself.
      clients.get(provider)?.unary<TendRequest, object>('Tend', { requestId, attempt }, { deadlineMs: OUTCOME_DEADLINE_MS, requestId }).catch(() => undefined);
    },
  };
}
