/** Quota over RPC: admissions with their retry, and what edge decides itself while quota is away. */
import type { Draw } from '@signalbox/contracts/common';
import type { AdmitRequest, AdmitResponse__Output, HeartbeatRequest, HeartbeatResponse__Output, ReleaseRequest } from '@signalbox/contracts/quota';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault, FAULTS, toFault } from '@signalbox/kernel/fault';
import { spreadMs } from '@signalbox/kernel/spread';
import { LEASE_MS } from '@signalbox/ledger-core/account-state';
import type { RpcClient } from '@signalbox/rpc/call';
import type { LocalAdmission } from '../domain/local-admission.js';
import type { QuotaPort } from '../domain/ports.js';

/** A killed quota replica costs one retry within 300 ms. Waiting for live holds to end happens in edge, not within this call. */
const ADMIT_SILENCE_MS_DEFAULT = 150;
/** Limit of an admission with its retry, while quota shows signs of life but is short of CPU or waits for the ledger. */
const ADMIT_DEADLINE_MS = 5_000;
const RELEASE_DEADLINE_MS = 2_000;
/** A failed release of a draw is retried each second until the lease is over, since the advance keeps it reserved for longer than one request. */
const RELEASE_AGAIN_MS = 1_000;
const EXTEND_DEADLINE_MS = 2_000;

/** Retry-After while quota is away: 2 to 5 s, spread by request. */
const waitOf = (requestId: string): number => spreadMs(requestId, 2_000, 3_000);

/**
 * Admission is an upsert by request id, so it may safely run twice: at another replica when the first gives no sign of life
 * for `silenceMs`, and once more when it was lost or failed. While quota is away, `local` decides; where it will not, and for
 * any other failure, a Fault `quota_unavailable` is thrown.
 */
export function createQuotaClient(client: RpcClient, clock: Pick<Clock, 'monotonicMs' | 'setTimer'>, silenceMs = ADMIT_SILENCE_MS_DEFAULT, local?: LocalAdmission): QuotaPort {
  const release = (accountId: string, requestId: string, draw?: Draw): void => {
    const endMs = clock.monotonicMs() + LEASE_MS;
    const tell = (): void => {
      client.unary<ReleaseRequest, object>('Release', { accountId, requestId, draw: draw ?? null }, { deadlineMs: RELEASE_DEADLINE_MS, requestId }).catch(() => {
        if (draw !== undefined && clock.monotonicMs() + RELEASE_AGAIN_MS < endMs) clock.setTimer(RELEASE_AGAIN_MS, tell, { unref: true });
      });
    };
    tell();
  };
  const limitMs = Math.max(ADMIT_DEADLINE_MS, 2 * silenceMs);
  const admit = async (request: AdmitRequest): Promise<AdmitResponse__Output> => {
    const endMs = clock.monotonicMs() + limitMs;
    const ask = (deadlineMs: number): Promise<AdmitResponse__Output> => client.unary<AdmitRequest, AdmitResponse__Output>('Admit', request, { deadlineMs, silenceMs, requestId: request.requestId ?? '' });
    try {
      return await ask(limitMs);
    } catch (error) {
      // A silent replica has already been followed by another within this call.
      if (toFault(error).code === 'deadline_exceeded') throw error;
      return ask(Math.max(1, Math.ceil(endMs - clock.monotonicMs())));
    }
  };
  return {
    admit: async (request) => {
      try {
        return await admit(request);
      } catch (error) {
        // An admission that timed out may have been stored: its hold must not stay for the whole lease.
        release(request.accountId ?? '', request.requestId ?? '');
        const { code } = toFault(error);
        // Only while quota is away (503) does edge decide by itself. Other errors concern the request.
        const admission = FAULTS[code].httpStatus === 503 ? local?.admit(request) : undefined;
        if (admission !== undefined) return admission;
        throw new Fault('quota_unavailable', 'the request could not be admitted', { cause: error, retryAfterMs: toFault(error).retryAfterMs ?? waitOf(request.requestId ?? '') });
      }
    },
    release,
    extend: async (accountId, requestId, toNanoUsd, toTokens, heldIn, draw) => {
      try {
        const request: HeartbeatRequest = { writer: '', holds: [{ accountId, requestId, extendToNanoUsd: String(toNanoUsd), extendToTokens: String(toTokens), draw: draw ?? null }] };
        const { refusedRequestIds, unheldRequestIds, epoch } = await client.unary<HeartbeatRequest, HeartbeatResponse__Output>('Heartbeat', request, { deadlineMs: EXTEND_DEADLINE_MS, requestId });
        // When the hold was lost, so were the limits it counted against: neither a refusal nor a grant means anything.
        if (unheldRequestIds.length > 0 || (heldIn !== '' && heldIn !== epoch)) throw new Fault('quota_unavailable', 'the hold was lost');
        return refusedRequestIds.length === 0;
      } catch (error) {
        throw new Fault('quota_unavailable', 'the hold could not be extended', { cause: error, retryAfterMs: toFault(error).retryAfterMs ?? waitOf(requestId) });
      }
    },
  };
}
