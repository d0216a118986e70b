/** How quota is asked to make a hold grow. */
import type { HeartbeatRequest, HeartbeatResponse__Output } from '@signalbox/contracts/quota';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { ExtendHold } from './hold-growth.js';

/**
 * A heartbeat that asks for more. What is not held, or was held in a life of the store that is over, has lost its limits:
 * a refusal is no word about them, and a grant looked at none. Then nobody can say.
 */
export function extendingAt(quota: RpcClient, writer: string): ExtendHold {
  return async (accountId, requestId, toNanoUsd, toTokens, heldIn, draw = null) => {
    const request: HeartbeatRequest = { writer, holds: [{ accountId, requestId, extendToNanoUsd: toNanoUsd.toString(), extendToTokens: toTokens.toString(), draw }] };
    const { refusedRequestIds, unheldRequestIds, epoch } = await quota.unary<HeartbeatRequest, HeartbeatResponse__Output>('Heartbeat', request, { requestId });
    if (unheldRequestIds.includes(requestId) || (heldIn !== '' && heldIn !== epoch)) throw new Fault('quota_unavailable', 'the hold was lost');
    return !refusedRequestIds.includes(requestId);
  };
}
