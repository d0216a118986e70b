/** Asks quota to extend a hold. */
import type { HeartbeatRequest, HeartbeatResponse__Output } from '@signalbox/contracts/quota';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { ExtendHold } from './hold-growth.js';

/**
 * Extends a hold by a heartbeat. A hold that quota does not have, or that belongs to an earlier epoch of its store, has lost
 * its limits: neither a grant nor a refusal means anything then, so this throws a Fault `quota_unavailable`.
 */
export function extendingAt(quota: RpcClient, writer: string): ExtendHold {
  return async (accountId, requestId, toNanoUsd, toTokens, heldIn, draw = null) => {
    const request: HeartbeatRequest = { writer, holds: [{ accountId, requestId, extendToNanoUsd: toNanoUsd.toString(), extendToTokens: toTokens.toString(), draw }] };
    const { refusedRequestIds, unheldRequestIds, epoch } = await quota.unary<HeartbeatRequest, HeartbeatResponse__Output>('Heartbeat', request, { requestId });
    if (unheldRequestIds.includes(requestId) || (heldIn !== '' && heldIn !== epoch)) throw new Fault('quota_unavailable', 'the hold was lost');
    return !refusedRequestIds.includes(requestId);
  };
}
