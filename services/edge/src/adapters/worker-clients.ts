import type { DispatchEvent__Output, DispatchRequest, OutcomeRequest, TendRequest } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import type { WorkersPort } from '../domain/ports.js';

const OUTCOME_DEADLINE_MS = 2_000;
/** An outcome is told again for a minute, while its worker restarts: what a dead worker never hears of it charges as delivered. */
const OUTCOME_RETRIES_MS = 60_000;
/** At first, while a client may be waiting for it; then a quarter of what has passed. */
const OUTCOME_RETRY_MS = 250;
const OUTCOMES_WAITING_MAX = 10_000;
const NOBODY_THERE = Promise.resolve();

/** One client for each provider. */
export function createWorkerClients(clients: ReadonlyMap<string, RpcClient>, clock: Clock, attemptDeadlineMs: number): WorkersPort {
  let waiting = 0;
  const tell = (client: RpcClient, request: OutcomeRequest, sinceMs: number): Promise<void> =>
    client.unary<OutcomeRequest, object>('Outcome', request, { deadlineMs: OUTCOME_DEADLINE_MS, requestId: request.requestId ?? '' }).then(
      () => undefined,
      () => tellAgain(client, request, sinceMs),
    );
  const tellAgain = (client: RpcClient, request: OutcomeRequest, sinceMs: number): Promise<void> | undefined => {
    const passedMs = clock.monotonicMs() - sinceMs;
    if (passedMs >= OUTCOME_RETRIES_MS || waiting >= OUTCOMES_WAITING_MAX) return undefined;
    waiting += 1;
    return new Promise((resolve) => {
      clock.setTimer(
        Math.max(OUTCOME_RETRY_MS, passedMs / 4),
        () => {
          waiting -= 1;
          void tell(client, request, sinceMs).then(resolve);
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
    tellOutcome: (provider, accountId, requestId, attempt, outcome, { isFollowed = false, isReserve = false } = {}) => {
      const client = clients.get(provider);
      return client === undefined ? NOBODY_THERE : tell(client, { accountId, requestId, attempt, outcome, followed: isFollowed, reserve: isReserve }, clock.monotonicMs());
    },
    tend: (provider, requestId, attempt) => {
      // A worker that does not know the call waits longer by itself.
      clients.get(provider)?.unary<TendRequest, object>('Tend', { requestId, attempt }, { deadlineMs: OUTCOME_DEADLINE_MS, requestId }).catch(() => undefined);
    },
  };
}
