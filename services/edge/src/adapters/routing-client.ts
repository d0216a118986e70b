import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault, toFault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { RoutingPort } from '../domain/ports.js';

/** One that is frozen costs a request a second; one that has much to do, as right after a start, is waited for. */
const SILENCE_MS = 1_000;
const DECIDE_DEADLINE_MS = 5_000;

/**
 * Routing over rpc. A decision changes nothing, so it is asked for once more where the replica that had the question was lost;
 * whatever else goes wrong is `routing_unavailable`: nothing is ever routed past it.
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
        throw new Fault('routing_unavailable', 'no decision', { cause: error });
      }
    },
    // Each is asked for.
    doubt: () => undefined,
  };
}
