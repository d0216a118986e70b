/** Claims of Idempotency-Keys over RPC to accounts, and booked requests over RPC to billing. */
import type { ClaimRef as ClaimRefMessage, ClaimRequestRequest, ClaimRequestResponse__Output, ClaimStanding__Output, EndClaimRequest } from '@signalbox/contracts/accounts';
import type { GetRequestRequest, GetRequestResponse__Output } from '@signalbox/contracts/billing';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { ClaimEnding, ClaimFound, ClaimRef, ClaimsPort, ClaimStanding, LedgerPort } from '../domain/repeats.js';

/** For a replica that shows signs of life but is short of CPU or waits for its store. */
const DEADLINE_MS = 5_000;
/** Without a sign of life for 0.5 s another replica is asked too, so a frozen one costs at most a second. Calls may run twice: a claim, a begin and an end of one request take effect once. */
const SILENCE_MS = 500;
const ENDS: Readonly<Record<ClaimEnding['kind'], 'FREED' | 'ENDED' | 'ABANDONED'>> = { freed: 'FREED', ended: 'ENDED', abandoned: 'ABANDONED' };

function foundOf({ outcome, requestId, costNanoUsd, answer, leaseLeftMs, leftMs, toBegin }: ClaimRequestResponse__Output): ClaimFound {
  switch (outcome) {
    case 'CLAIMED':
      return { outcome, requestId, leaseLeftMs: Number(leaseLeftMs), isToBegin: toBegin };
    case 'RUNNING':
      return { outcome, requestId, leaseLeftMs: Number(leaseLeftMs) };
    case 'OTHER_BODY':
      return { outcome, requestId };
    case 'LEFT':
      return { outcome, requestId, leftMs: Number(leftMs) };
    case 'DONE':
      return { outcome, requestId, costNanoUsd: costNanoUsd === undefined ? undefined : BigInt(costNanoUsd), answer: answer.length === 0 ? undefined : answer };
    case 'CLAIM_OUTCOME_UNSPECIFIED':
      throw new Fault('claims_unavailable', 'accounts gave no outcome for a claim');
  }
}

const standingOf = ({ lost, leaseLeftMs }: ClaimStanding__Output): ClaimStanding => (lost ? { isLost: true } : { isLost: false, leaseLeftMs: Number(leaseLeftMs) });

/** Whatever goes wrong is `claims_unavailable`. */
export function createClaimsClient(accounts: RpcClient): ClaimsPort {
  const call = async <Message extends object, Answer>(method: string, message: Message, requestId: string): Promise<Answer> => {
    try {
      return await accounts.unary<Message, Answer>(method, message, { deadlineMs: DEADLINE_MS, silenceMs: SILENCE_MS, requestId });
    } catch (error) {
      throw new Fault('claims_unavailable', 'claims cannot be read or written', { cause: error });
    }
  };
  return {
    claim: async ({ accountId, keyDigest, requestId }: ClaimRef, bodyDigest, takesOver, tellsBegin) =>
      foundOf(await call<ClaimRequestRequest, ClaimRequestResponse__Output>('ClaimRequest', { accountId, keyDigest, bodyDigest, requestId, takesOver, tellsBegin }, requestId)),
    renew: async (ref) => standingOf(await call<ClaimRefMessage, ClaimStanding__Output>('RenewClaim', ref, ref.requestId)),
    begin: async (ref) => standingOf(await call<ClaimRefMessage, ClaimStanding__Output>('BeginClaim', ref, ref.requestId)),
    end: async (ref, ending) => {
      const told = ending.kind === 'ended' ? { ...(ending.costNanoUsd === undefined ? {} : { costNanoUsd: String(ending.costNanoUsd) }), ...(ending.answer === undefined ? {} : { answer: ending.answer }) } : {};
      await call<EndClaimRequest, object>('EndClaim', { claim: ref, end: ENDS[ending.kind], ...told }, ref.requestId);
    },
  };
}

export function createLedgerClient(billing: RpcClient): LedgerPort {
  return {
    bookedOf: async (accountId, requestId) => {
      let found: GetRequestResponse__Output;
      try {
        found = await billing.unary<GetRequestRequest, GetRequestResponse__Output>('GetRequest', { accountId, requestId }, { deadlineMs: DEADLINE_MS, silenceMs: SILENCE_MS, requestId });
      } catch (error) {
        throw new Fault('store_unavailable', 'the ledger does not answer', { cause: error });
      }
      const { request, attempts } = found;
      if (!found.found || request === null) return undefined;
      const isPaidElsewhere = attempts.some(({ byok, costNanoUsd }) => byok && BigInt(costNanoUsd) > 0n);
      // A model without a price draws on the allotment too.
      const hasTokens = BigInt(request.promptTokens) + BigInt(request.completionTokens) > 0n;
      return { costNanoUsd: BigInt(request.costNanoUsd), isBilled: BigInt(request.chargeNanoUsd) > 0n || hasTokens || isPaidElsewhere };
    },
  };
}
