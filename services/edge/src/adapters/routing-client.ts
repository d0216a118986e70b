import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { RoutingPort } from '../domain/ports.js';

/** One that is frozen costs a request a second; one that has much to do, as right after a start, is waited for. */
const SILENCE_MS = 1_000;
const DECIDE_DEADLINE_MS = 5_000;

/** Routing over rpc; whatever goes wrong is `routing_unavailable`: nothing is ever routed past it. */
export function createRoutingClient(client: RpcClient): RoutingPort {
  return {
    decide: async (request) => {
      try {
        return await client.unary<DecideRequest, DecideResponse__Output>('Decide', request, { deadlineMs: DECIDE_DEADLINE_MS, silenceMs: SILENCE_MS, requestId: request.requestId ?? '' });
      } catch (error) {
        throw new Fault('routing_unavailable', 'no decision', { cause: error });
      }
    },
    // Each is asked for.
    doubt: () => undefined,
  };
}
