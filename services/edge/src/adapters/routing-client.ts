/** Routing over RPC. */
import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault, toFault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { RoutingPort } from '../domain/ports.js';

/** Without a sign of life for this long another replica is asked, so a frozen one costs a request one second. One that is only busy, as after its start, is waited for. */
const SILENCE_MS = 1_000;
const DECIDE_DEADLINE_MS = 5_000;

/**
 * A decision has no side effects, so it is asked for once more when the replica that had the request was lost. Any other
 * failure is a Fault `routing_unavailable`: a request is never sent anywhere without a decision.
 */
export function createRoutingClient(client: RpcClient, clock: Pick<Clock, 'monotonicMs'>): RoutingPort {
  const ask = (request: DecideRequest, deadlineMs: number): Promise<DecideResponse__Output> => client.unary<DecideRequest, DecideResponse__Output>('Decide', request, { deadlineMs, silenceMs: SILENCE_MS, requestId: request.requestId ?? '' });
  return {
    decide: async (request) => {
      const endMs = clock.monotonicMs() + DECIDE_DEADLINE_MS;
      try {
        return await ask(request, DECIDE_DEADLINE_MS).catch((error: unknown) => {
          if (toFault(error).code !== 'link_lost') throw error;
          return ask(request, Math.max(1, Math.ceil(endMs - clock.monotonicMs())));
        });
      } catch (error) {
        throw new Fault('routing_unavailable', 'routing gave no decision', { cause: error });
      }
    },
    // No plan is kept here: see kept-plans.ts.
    doubt: () => undefined,
  };
}
